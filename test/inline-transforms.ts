// Runs transforms in the thread of a test or a benchmark, without isolation. An endless loop is not stopped; a gateway runs transforms in
// worker threads, see src/core/transforms/runtime.ts.
import type { TransformRef } from '../src/core/model/mapping.ts'
import { Problem, toProblemRecord } from '../src/core/model/problem.ts'
import { toTransformKey } from '../src/core/model/transform.ts'
import type { Transform, TransformCall, TransformOutcome } from '../src/core/model/transform.ts'
import { buildModule } from '../src/core/transforms/modules/build.ts'
import type { Bundle } from '../src/core/transforms/modules/build.ts'
import { type Callable, startCall, toFailedOutcome, buildTimeoutProblem } from '../src/core/transforms/worker/call.ts'
import { evaluateBundle, pickExport } from '../src/core/transforms/modules/evaluate.ts'
import type { Evaluated } from '../src/core/transforms/modules/evaluate.ts'
import { buildLoadProblem, buildStandIn } from '../src/core/transforms/modules/bundle-cache.ts'
import { installProvided } from '../src/core/transforms/modules/provided.ts'
import { resolveModule } from '../src/core/transforms/root.ts'
import { attemptWithin } from '../src/base/time.ts'

/**
 * Loads the modules that the refs name, each once. A module that is missing, does not build or does not load becomes a placeholder that
 * fails every delivery with the reason. Rejects only with `config-invalid`, for a ref that leads out of the root.
 * @param root a real path from `resolveTransformsRoot`
 * @param timeoutMs limit of one call, and of a module's top level
 */
export async function loadTransforms({
  root,
  refs,
  timeoutMs,
}: {
  root: string
  refs: readonly TransformRef[]
  timeoutMs: number
}): Promise<ReadonlyMap<string, Transform>> {
  await installProvided()
  const modules = new Map<string, Promise<LoadedModule | Problem>>()
  const transforms = new Map<string, Transform>()
  for (const { module } of refs) {
    if (!modules.has(module)) modules.set(module, loadModule(root, module, timeoutMs))
  }
  await Promise.all(modules.values())
  for (const ref of refs) {
    const loaded = await modules.get(ref.module)
    if (loaded !== undefined) transforms.set(toTransformKey(ref), toTransform(ref, loaded, timeoutMs))
  }
  return transforms
}

type LoadedModule = { bundle: Bundle; evaluated: Evaluated }

async function loadModule(root: string, module: string, timeoutMs: number): Promise<LoadedModule | Problem> {
  try {
    const bundle = await buildModule({ root, file: await resolveModule(root, module) })
    return { bundle, evaluated: await evaluateBundle(bundle, timeoutMs) }
  } catch (error) {
    const problem = buildLoadProblem(module, error)
    if (problem.code === 'config-invalid') throw problem
    return problem
  }
}

function toTransform(ref: TransformRef, loaded: LoadedModule | Problem, timeoutMs: number): Transform {
  try {
    if (loaded instanceof Problem) throw loaded
    const call = pickExport(loaded.evaluated, ref.export)
    const { label, locate } = loaded.evaluated
    return {
      module: ref.module,
      hash: loaded.bundle.hash,
      problem: undefined,
      run: (input) => callTransform({ label, call, locate, timeoutMs }, input),
    }
  } catch (error) {
    return buildStandIn(ref.module, toProblemRecord(buildLoadProblem(ref.module, error)))
  }
}

async function callTransform(
  callable: Callable & { readonly timeoutMs: number },
  { head, body, syntax }: TransformCall,
): Promise<TransformOutcome> {
  const { label, timeoutMs } = callable
  const log: string[] = []
  const started = startCall(callable, { head: structuredClone(head), body, syntax }, log)
  const ended = await attemptWithin(timeoutMs, () => started)
  if (ended.kind === 'late') return toFailedOutcome(buildTimeoutProblem(label, timeoutMs), [...log])
  const outcome = await started
  return outcome.kind === 'returned' ? { kind: 'returned', value: JSON.parse(outcome.json), log: outcome.log } : outcome
}
