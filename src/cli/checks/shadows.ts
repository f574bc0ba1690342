// Whether the shadows of transforms load. A gateway starts even if a shadow does not load, but then it compares nothing.
import { formatPlacedIssue, type LoadedConfig } from '../../gateway/config/config.ts'
import { toIssue } from '../../core/model/issue.ts'
import { exitCodes, Problem } from '../../core/model/problem.ts'
import { toTransformKey } from '../../core/model/transform.ts'
import { withShadow } from '../../gateway/replay/shadow.ts'
import type { Context } from '../terminal/context.ts'
import { createBench } from './bench.ts'
import { buildFailure, type CheckFinding } from './findings.ts'

/** One finding for each shadow of the configuration. If the mappings cannot be loaded, there is none: `checkMappings` reports that. */
export async function checkShadows(context: Context, { config, text }: LoadedConfig): Promise<CheckFinding[]> {
  const shadowed = config.hooks.mappings.flatMap((mapping, index) => {
    const { transform: ref } = mapping.transform?.shadow === undefined ? {} : withShadow(mapping)
    return ref === undefined ? [] : [{ index, ref, key: toTransformKey(ref) }]
  })
  if (shadowed.length === 0) return []
  const mappings = config.hooks.mappings.map(withShadow)
  const bench = createBench({ ...context, isShadow: true })
  try {
    const { parts } = await bench.load([], { ...config, hooks: { ...config.hooks, mappings } })
    const first = shadowed.filter(({ key }, at) => shadowed.findIndex((other) => other.key === key) === at)
    return first.map(({ index, ref, key }): CheckFinding => {
      const name = `shadow ${ref.module}`
      const { problem, hash } = parts.transforms.get(key) ?? {}
      if (problem === undefined) return { name, ok: true, detail: `builds and loads (${hash?.slice(0, 12)})` }
      const issue = toIssue(['hooks', 'mappings', index, 'transform', 'shadow'], 'does not load.')
      const detail = [problem.detail, problem.frame, formatPlacedIssue(issue, text)]
      return buildFailure(name, detail.filter((part) => part !== undefined).join('\n'), exitCodes.broken)
    })
  } catch (error) {
    if (error instanceof Problem) return []
    throw error
  } finally {
    await bench.close()
  }
}
