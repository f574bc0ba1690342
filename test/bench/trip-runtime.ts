// A stand-in for the runtime of transforms that runs them on the main thread, after it has sent the body to a thread and back. Compared
// with it, the runtime shows the part of the cost of isolation that is Hookloom's own.
import type { RuntimeOptions } from '../../src/core/transforms/runtime.ts'
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
