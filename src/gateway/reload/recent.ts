// Counts the recent kept deliveries that a new generation would change, for the log of a reload and for saves that may have to wait.
import type { KeptQuery } from '../../store/queries.ts'
import { isSameJson } from '../../base/json.ts'
import { configFile, envFile } from '../config/text.ts'
import type { Log } from '../../base/log.ts'
import type { Generation } from '../generation/generation.ts'
import type { Candidate } from './candidate.ts'
import type { Replay } from '../replay/replay.ts'

export type CompareKept = (
  before: Generation,
  after: Generation,
  query: KeptQuery & { readonly limitMs: number },
) => Promise<Replay>

/** Of `of` recent deliveries, `differ` would have another result. `isWhole`: whether all of them were read and compared in time. */
export type RecentChange = { readonly differ: number; readonly of: number; readonly isWhole: boolean }
/** The changes, by the label in the log line: a module, hookloom.jsonc, or .env. */
export type RecentChanges = ReadonlyMap<string, RecentChange>

const notCompared: RecentChange = { differ: 0, of: 0, isWhole: false }
const recentDeliveries = 20

/**
 * Compares recent deliveries. The result has an entry for each module with new code, and one for a new configuration or a new environment of
 * transforms. Parked deliveries do not count, because they run again anyway. Never rejects: if the store cannot be read, the comparison is
 * incomplete, and a save then waits if `hooks.transforms.hold` is set.
 */
export async function compareRecent(
  compare: CompareKept | undefined,
  { before, after, limitMs }: { before: Candidate; after: Candidate; limitMs: number },
): Promise<RecentChanges> {
  const changes = new Map<string, RecentChange>()
  const until = performance.now() + limitMs
  for (const [label, mappings] of compare === undefined ? [] : listChanged(before, after)) {
    const query = { limit: recentDeliveries, mappings, limitMs: until - performance.now() }
    const found = await compare?.(before.generation, after.generation, query).catch(() => undefined)
    if (found === undefined) {
      changes.set(label, notCompared)
      continue
    }
    const counted = found.deliveries.filter(({ recorded }) => recorded?.decision !== 'park')
    const lost = found.notLoaded.length
    const differ = counted.filter((one) => one.class !== 'same').length + lost
    changes.set(label, { differ, of: counted.length + lost, isWhole: found.notRun === 0 })
  }
  return changes
}

/** Each label, with the mappings that its change affects; undefined if the change affects all mappings. */
function listChanged(before: Candidate, after: Candidate): [string, string[] | undefined][] {
  const mappings = [before, after].flatMap(({ generation }) => generation.mappings)
  const modules = after.modules.filter(({ kind }) => kind === 'live').map(({ module }) => module)
  const ofModules = modules.flatMap((module): [string, string[]][] => {
    const ids = mappings.filter(({ mapping }) => mapping.transform?.module === module).map(({ id }) => id)
    return ids.length === 0 ? [] : [[module, [...new Set(ids)]]]
  })
  const differs = (key: 'config' | 'env') => !isSameJson(before.generation[key], after.generation[key])
  if (differs('config')) return [...ofModules, [configFile, undefined]]
  return differs('env') ? [...ofModules, [envFile, undefined]] : ofModules
}

/** Logs what the version that is live now changes. It may be ready after a newer save that does not go live, so it names no save. */
export function logRecent(log: Log, changes: RecentChanges): void {
  for (const [label, found] of changes) {
    if (found.differ > 0) log.info({}, `${label}, as it is live: ${describeDifference(found)}: hookloom replay`)
    else if (!found.isWhole)
      log.info({}, `${label}, as it is live: not all of the last deliveries could be compared in time`)
  }
}

function describeDifference({ differ, of }: RecentChange): string {
  return of === 1 ? 'the last delivery would differ' : `${differ} of the last ${of} deliveries would differ`
}

/** Whether a save must wait for `hookloom publish`, because it changes a delivery or because the comparison is incomplete. */
export function mustWait(changes: RecentChanges): boolean {
  return [...changes.values()].some(({ differ, isWhole }) => differ > 0 || !isWhole)
}

export function logWaiting(log: Log, changes: RecentChanges): void {
  for (const [label, found] of changes) {
    if (found.differ === 0 && found.isWhole) continue
    const why = found.isWhole ? describeDifference(found) : 'the last deliveries could not be compared'
    log.warn({}, `${label} waits: ${why}. "hookloom replay" shows them, "hookloom publish" makes it live.`)
  }
}
