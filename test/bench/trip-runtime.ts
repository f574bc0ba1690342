// Stands in for the runtime of a gateway: transforms on the main thread, each after a bare trip of its body to a thread and back. What
// isolation costs beyond that is the product's own doing.
import type { RuntimeOptions } from '../../src/transforms/runtime.ts'
import { startEcho } from './echo.ts'
import { createTransformRuntime as createInlineRuntime, type RuntimeStandIn } from './inline-runtime.ts'

export function createTransformRuntime(options: RuntimeOptions): RuntimeStandIn {
  const runtime = createInlineRuntime(options)
  const starting = startEcho()
  return {
    ...runtime,
    load: async (wanted) => {
      const { trip } = await starting
      const transforms = await runtime.load(wanted)
      return new Map(
        [...transforms].map(([key, transform]) => [
          key,
          {
            ...transform,
            run: async (call) => {
              await trip(call.body)
              return transform.run(call)
            },
          },
        ]),
      )
    },
  }
}
