// Whether a gateway would start here with every module working: checks the configuration, every template, every module and its fixtures.
import { assemble } from '../gateway/reload/assemble.ts'
import { type Context, withProgress } from './terminal/context.ts'
import { exitCodes, Problem } from '../core/model/problem.ts'
import { createBench } from './checks/bench.ts'
import { checkShadows } from './checks/shadows.ts'
import { readStore } from './gateway/stored.ts'
import { loadGeneration } from './types.ts'
import { findPlaceWarnings } from '../gateway/replay/place-warnings.ts'
import { findPathWarnings } from '../gateway/replay/path-warnings.ts'
import {
  buildFailure,
  checkConfig,
  type CheckFinding,
  checkMappings,
  checkWarnings,
  findKnownSenders,
  printFindings,
} from './checks/findings.ts'

export async function check(context: Context, { types = false }: { readonly types?: boolean } = {}): Promise<number> {
  const { loaded, findings } = checkConfig(context)
  if (loaded === undefined) return printFindings(context, findings)
  const assembling = assemble(context.dir, loaded.config)
  const mappings = await withProgress(context, 'Building the transforms', () =>
    checkMappings(context, loaded, assembling),
  )
  const warnings = checkWarnings(loaded, await findKnownSenders(assembling))
  const shadows = await checkShadows(context, loaded)
  const typed = types ? [await checkTransformTypes(context)] : []
  const used = await checkMappingUse(context)
  return printFindings(context, [...findings, ...mappings, ...shadows, ...used, ...typed, ...warnings])
}

/** Warns of paths in templates and conditions that no known request has, and of statuses and replies that cannot be shown or sent. Returns
 * nothing if the configuration is invalid, which `checkMappings` reports, or if the store cannot be read. */
async function checkMappingUse(context: Context): Promise<CheckFinding[]> {
  try {
    const parts = { dir: context.dir, generation: await loadGeneration(context) }
    const found = await readStore(context, undefined, (store) => findPathWarnings({ ...parts, store }))
    const warnings = found ?? (await findPathWarnings({ ...parts, store: undefined }))
    return [...findPlaceWarnings(parts.generation), ...warnings].map(({ mappingId, text }) => ({
      name: `mapping ${mappingId}`,
      ok: false,
      severity: 'warning',
      detail: text,
    }))
  } catch (error) {
    if (error instanceof Problem) return []
    throw error
  }
}

/** Checks the types in the modules of the configuration and of its presets. `checkMappings` reports modules that do not load. */
async function checkTransformTypes(context: Context): Promise<CheckFinding> {
  const { checkTypes, toTypesFinding } = await import('./checks/types.ts')
  const bench = createBench(context)
  try {
    const { root, modules } = await bench.load([])
    return toTypesFinding(checkTypes({ dir: context.dir, root, modules }, true))
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    return buildFailure('types', error.message, exitCodes[error.kind])
  } finally {
    await bench.close()
  }
}
