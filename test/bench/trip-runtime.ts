// Replaces the runtime of a gateway: transforms run on the main thread, each after its body was sent to a thread and back. Any cost of
// isolation beyond that is ours.
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
