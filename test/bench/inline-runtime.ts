// Stands in for the runtime of a gateway: transforms on the main thread, with nothing between them and the loop. What isolation
// costs is the difference.
import { loadTransforms } from '../inline-transforms.ts'
import type { RuntimeOptions, TransformRuntime } from '../../src/transforms/runtime.ts'

/** What a gateway asks of a runtime. */
export type RuntimeStandIn = Omit<TransformRuntime, 'state'>

export function createTransformRuntime({ limits }: RuntimeOptions): RuntimeStandIn {
  const nothing = async () => {}
  return {
    load: ({ root, refs }) => loadTransforms({ root, refs, timeoutMs: limits().timeoutMs }),
    inputs: () => [],
    aside: () => ({ env: {}, of: (transforms) => transforms, close: nothing }),
    onRetry: () => {},
    close: nothing,
  }
}
