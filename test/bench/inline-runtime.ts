// Stands in for the runtime of a gateway: transforms on the main thread, with nothing between them and the loop. What isolation
// costs is the difference.
import { loadTransforms } from '../inline-transforms.ts'
import type { RuntimeOptions, TransformRuntime } from '../../src/loader/runtime.ts'

export function createTransformRuntime({
  limits,
}: RuntimeOptions): Pick<TransformRuntime, 'load' | 'inputs' | 'close'> {
  return {
    load: ({ root, refs }) => loadTransforms({ root, refs, timeoutMs: limits().timeoutMs }),
    inputs: () => [],
    close: async () => {},
  }
}
