// Counts running turns. Finds what keeps a key from starting: its blocker, such as a limit that is reached. Makes keys ready when their blocker has room.
import type { FlowSettings, SharedLimits } from '../core/model/flow.ts'
import { type EarlyReads, readFlowSettings, readLabels } from './flow-script.ts'
import { type Dialect, run, type Script } from './script.ts'
import type { Row } from './rows.ts'
import { sessionMark } from './rules.ts'

/** The maximum number of keys that one script makes ready for each blocker. */
const openedAtOnce = 200

export type Place = Pick<FlowSettings, 'limits'> & { readonly id: number; readonly ring: string; readonly key: string }

/** The names of the counts that a running turn of this key is part of. */
export function listCountNames({ id, ring, key, limits }: Place): string[] {
  return [
    `key:${id}`,
    `mapping:${ring}`,
    ...limits.flatMap((limit) => [`limit:${limit}`, `slot:${JSON.stringify([limit, key])}`]),
  ]
}

export type TurnCounts = Map<string, number>

export function addToCounts(counts: TurnCounts, names: readonly string[]): void {
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
}

export const selectRunning = `SELECT j.flow, f.ring, f.key, f.settings FROM jobs j JOIN job_flow f ON f.job_seq = j.seq
  WHERE j.state = 'running' AND j.ended_at IS NULL`

/** Counts the running turns. `held`: the labels of holds. A held session counts as full, so that its keys wait. */
export function* countRunning(held: readonly string[], early?: EarlyReads): Script<TurnCounts> {
  const rows = early?.running ?? (yield* run(selectRunning))
  const counts: TurnCounts = new Map(held.map((label) => [`hold:${label}`, openedAtOnce]))
  for (const row of rows) {
    const { limits } = readFlowSettings(row)
    addToCounts(
      counts,
      listCountNames({ id: Number(row['flow']), ring: String(row['ring']), key: String(row['key']), limits }),
    )
  }
  return counts
}

/** `<max> <name>`: the key waits until the count `name` is less than `max`. */
const nameBlocker = (max: number, name: string) => `${max} ${name}`

/**
 * The text in flow_keys.blocker: the blocker of the key, and the line of the key. The free room of a blocker is offered to each line, because a
 * line that a hold or a limit keeps back does not use it.
 */
export function toStoredBlocker(blocker: string, line: string): string {
  return `${blocker}\n${line}`
}

/** The blocker of a job whose session is held: the key waits until the hold has ended. */
export function findHeldSession(job: Row, held: readonly string[]): string | undefined {
  const sessions = held.filter((label) => label.startsWith(sessionMark))
  if (sessions.length === 0) return undefined
  const own = readLabels(job)
  const label = sessions.find((session) => own.includes(session))
  return label === undefined ? undefined : nameBlocker(openedAtOnce, `hold:${label}`)
}

/** The maximum number of blockers that one script visits. */
const visitedAtOnce = 1000

const selectBlockers = `WITH RECURSIVE b (blocker) AS (SELECT min(blocker) FROM flow_keys WHERE state = 'blocked' AND blocker > $1
    UNION ALL SELECT (SELECT min(blocker) FROM flow_keys WHERE state = 'blocked' AND blocker > b.blocker) FROM b WHERE b.blocker IS NOT NULL)
  SELECT blocker FROM b WHERE blocker IS NOT NULL LIMIT ${visitedAtOnce}`

/** The cursor with the last visited blocker, if there are more blockers than one script visits. */
const placeName = 'flow/blocker'
const selectPlace = `SELECT value FROM cursors WHERE name = '${placeName}'`
const setPlace = `INSERT INTO cursors (name, value) VALUES ('${placeName}', $1) ON CONFLICT (name) DO UPDATE SET value = excluded.value`

/** The blockers to visit. If there are too many for one script, each script continues after the last one, so that none is left out. */
function* readBlockers(): Script<Row[]> {
  const first = yield* run(selectBlockers, '')
  if (first.length < visitedAtOnce) return first
  const [place] = yield* run(selectPlace)
  const after = String(place?.['value'] ?? '')
  const page = after === '' ? first : yield* run(selectBlockers, after)
  yield* run(setPlace, page.length < visitedAtOnce ? '' : String(page.at(-1)?.['blocker']))
  return page
}

/** Makes blocked keys ready: for each blocker, as many keys as it has room for. Returns whether any blocker had room. */
export function* unblockKeys(counts: TurnCounts, dialect: Dialect): Script<boolean> {
  const blockers = (yield* readBlockers()).map(({ blocker }) => {
    // a line is JSON, without a line break
    const [, max, name = ''] = /^(\d+) ([^]*)\n.*$/.exec(String(blocker)) ?? []
    return { blocker: String(blocker), max: Number(max), name }
  })
  const lanes = blockers
    .filter(({ name }) => name.startsWith(laneMark))
    .map(({ name }) => [name.slice(laneMark.length)] as const)
  const used = yield* findUsedLanes(lanes, dialect)
  let hadRoom = false
  for (const { blocker, max, name } of blockers) {
    const free = max - (used.has(name) ? 1 : (counts.get(name) ?? 0))
    if (free <= 0) continue
    hadRoom = true
    yield* run(
      `UPDATE flow_keys SET state = 'ready', blocker = NULL WHERE id IN
        (SELECT id FROM flow_keys WHERE state = 'blocked' AND blocker = $1 ORDER BY rank, id LIMIT $2)`,
      blocker,
      Math.min(free, openedAtOnce),
    )
  }
  return hadRoom
}

const laneMark = 'lane:'

/** The names of the counts of those lanes that have an unfinished job. */
function* findUsedLanes(lanes: readonly (readonly [lane: string])[], { rows }: Dialect): Script<ReadonlySet<string>> {
  if (lanes.length === 0) return new Set()
  const isUsed = 'EXISTS (SELECT 1 FROM jobs j WHERE j.lane = r.name AND j.ended_at IS NULL)'
  const found = yield* run(
    `SELECT r.name FROM (${rows('$1', { name: 'text' })}) r WHERE ${isUsed}`,
    JSON.stringify(lanes),
  )
  return new Set(found.map(({ name }) => laneMark + String(name)))
}

/** The blocker that keeps only this key from starting now, while other keys of its line may start. */
export function findBlocker(
  { id, key, limits: names }: Place,
  given: {
    readonly settings: FlowSettings
    /** The lane of the key's next job, if another job is in this lane. */
    readonly usedLane: Row[string] | null
    readonly counts: TurnCounts
    readonly limits: SharedLimits
  },
): string | undefined {
  const { settings, usedLane, counts, limits } = given
  const counted = [
    [settings.perKey, `key:${id}`] as const,
    ...names.map((name) => {
      const max = Object.hasOwn(limits, name) ? limits[name]?.perKey : undefined
      return [max ?? Infinity, `slot:${JSON.stringify([name, key])}`] as const
    }),
  ]
  for (const [max, name] of counted) if ((counts.get(name) ?? 0) >= max) return nameBlocker(max, name)
  return typeof usedLane === 'string' ? nameBlocker(1, laneMark + usedLane) : undefined
}
