// A stand-in for the runtime of transforms that runs them directly on the main thread. Compared with it, the runtime shows the cost of
// isolation.
import { loadTransforms } from '../inline-transforms.ts'
import type { RuntimeOptions, TransformRuntime } from '../../src/core/transforms/runtime.ts'

/** The parts of a runtime that a gateway uses. */
export type RuntimeStandIn = Omit<TransformRuntime, 'state'>

export function createTransformRuntime(_options: RuntimeOptions): RuntimeStandIn {
  const doNothing = async () => {}
  return {
    load: ({ root, refs, settings: { timeoutMs } }) => loadTransforms({ root, refs, timeoutMs }),
    serve: () => {},
    inputs: () => [],
    createReplayThreads: () => ({ of: (transforms) => transforms, close: doNothing }),
    close: doNothing,
  }
}
