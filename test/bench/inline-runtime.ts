// Stands in for the runtime of a gateway: transforms on the main thread, with nothing between them and the loop. What isolation
// costs is the difference.
import { loadTransforms } from '../inline-transforms.ts'
import type { RuntimeOptions, TransformRuntime } from '../../src/transforms/runtime.ts'

/** What a gateway asks of a runtime. */
export type RuntimeStandIn = Omit<TransformRuntime, 'state'>

export function createTransformRuntime(_options: RuntimeOptions): RuntimeStandIn {
  const nothing = async () => {}
  return {
    load: ({ root, refs, settings: { timeoutMs } }) => loadTransforms({ root, refs, timeoutMs }),
    serve: () => {},
    inputs: () => [],
    createReplayThreads: () => ({ of: (transforms) => transforms, close: nothing }),
    onRetry: () => {},
    close: nothing,
  }
}
