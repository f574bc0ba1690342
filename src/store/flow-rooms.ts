// Where running turns are counted, and the keys that wait for room.
import type { FlowSettings, SharedLimits } from '../model/config/flow.ts'
import { type Dialect, readFlowSettings, run, type Script } from './flow-script.ts'
import type { Row } from './rows.ts'
import { sessionMark } from './rules.ts'

/** The maximum number of keys that one script opens for each blocker. */
const openedAtOnce = 200

export type Place = Pick<FlowSettings, 'limits'> & { readonly id: number; readonly ring: string; readonly key: string }

/** Everything in which running turns are counted, by name. */
export function listRooms({ id, ring, key, limits }: Place): string[] {
  return [
    `key:${id}`,
    `mapping:${ring}`,
    ...limits.flatMap((limit) => [`limit:${limit}`, `slot:${JSON.stringify([limit, key])}`]),
  ]
}

export type Rooms = Map<string, number>

export function countInRooms(rooms: Rooms, names: readonly string[]): void {
  for (const name of names) rooms.set(name, (rooms.get(name) ?? 0) + 1)
}

/** `held`: the labels of holds. A hold of a session fills the room in which its keys wait. */
export function* countRunning(held: readonly string[]): Script<Rooms> {
  const rows = yield* run(`SELECT j.flow, f.ring, f.key, f.settings FROM jobs j JOIN job_flow f ON f.job_seq = j.seq
    WHERE j.state = 'running' AND j.ended_at IS NULL`)
  const rooms: Rooms = new Map(held.map((label) => [`hold:${label}`, openedAtOnce]))
  for (const row of rows) {
    const { limits } = readFlowSettings(row)
    countInRooms(
      rooms,
      listRooms({ id: Number(row['flow']), ring: String(row['ring']), key: String(row['key']), limits }),
    )
  }
  return rooms
}

/** `<most> <name>`: the key waits until fewer than `most` are counted under the name. */
const nameBlocker = (most: number, name: string) => `${most} ${name}`

/**
 * flow_keys.blocker: what keeps the key from starting, and its line. Each line gets the free room of a blocker, because a line that a hold or
 * a limit keeps back does not use it.
 */
export function toStoredBlocker(blocker: string, line: string): string {
  return `${blocker}\n${line}`
}

/** The blocker of a job whose session a hold keeps back: the key waits until the hold has ended. */
export function findHeldSession({ labels }: Row, held: readonly string[]): string | undefined {
  const sessions = held.filter((label) => label.startsWith(sessionMark))
  if (sessions.length === 0) return undefined
  // as: the planner makes them
  const own = JSON.parse(String(labels ?? '[]')) as string[]
  const label = sessions.find((session) => own.includes(session))
  return label === undefined ? undefined : nameBlocker(openedAtOnce, `hold:${label}`)
}

const selectBlockers = `WITH RECURSIVE b (blocker) AS (SELECT min(blocker) FROM flow_keys WHERE state = 'blocked'
    UNION ALL SELECT (SELECT min(blocker) FROM flow_keys WHERE state = 'blocked' AND blocker > b.blocker) FROM b WHERE b.blocker IS NOT NULL)
  SELECT blocker FROM b WHERE blocker IS NOT NULL LIMIT 1000`

/** Opens as many keys of a blocker as it has room for. */
export function* unblockKeys(rooms: Rooms, dialect: Dialect): Script<void> {
  const blockers = (yield* run(selectBlockers)).map(({ blocker }) => {
    // a line is JSON, without a line break
    const [, most, name = ''] = /^(\d+) ([^]*)\n.*$/.exec(String(blocker)) ?? []
    return { blocker: String(blocker), most: Number(most), name }
  })
  const lanes = blockers
    .filter(({ name }) => name.startsWith(laneMark))
    .map(({ name }) => [name.slice(laneMark.length)] as const)
  const used = yield* findUsedLanes(lanes, dialect)
  for (const { blocker, most, name } of blockers) {
    const free = most - (used.has(name) ? 1 : (rooms.get(name) ?? 0))
    if (free <= 0) continue
    yield* run(
      `UPDATE flow_keys SET state = 'ready', blocker = NULL WHERE id IN
        (SELECT id FROM flow_keys WHERE state = 'blocked' AND blocker = $1 ORDER BY rank, id LIMIT $2)`,
      blocker,
      Math.min(free, openedAtOnce),
    )
  }
}

const laneMark = 'lane:'

/** The names of these lanes that have an unfinished job. */
function* findUsedLanes(lanes: readonly (readonly [lane: string])[], { rows }: Dialect): Script<ReadonlySet<string>> {
  if (lanes.length === 0) return new Set()
  const isUsed = 'EXISTS (SELECT 1 FROM jobs j WHERE j.lane = r.name AND j.ended_at IS NULL)'
  const found = yield* run(
    `SELECT r.name FROM (${rows('$1', { name: 'text' })}) r WHERE ${isUsed}`,
    JSON.stringify(lanes),
  )
  return new Set(found.map(({ name }) => laneMark + String(name)))
}

/** The blocker that keeps this key from starting now, although other keys of its line may start. */
export function findBlocker(
  { id, key, limits: names }: Place,
  given: {
    readonly settings: FlowSettings
    /** The session of its next job, if another job is in it. */
    readonly usedLane: Row[string] | null
    readonly rooms: Rooms
    readonly limits: SharedLimits
  },
): string | undefined {
  const { settings, usedLane, rooms, limits } = given
  const counted = [
    [settings.perKey, `key:${id}`] as const,
    ...names.map((name) => {
      const most = Object.hasOwn(limits, name) ? limits[name]?.perKey : undefined
      return [most ?? Infinity, `slot:${JSON.stringify([name, key])}`] as const
    }),
  ]
  for (const [most, name] of counted) if ((rooms.get(name) ?? 0) >= most) return nameBlocker(most, name)
  return typeof usedLane === 'string' ? nameBlocker(1, laneMark + usedLane) : undefined
}
