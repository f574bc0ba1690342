// How new jobs change the row of their key: its line, and when its next turn is due.
import type { FlowSettings } from '../model/config/flow.ts'
import { type FlowClaim, type LineFacts, run, type Script } from './flow-script.ts'
import type { Row } from './rows.ts'
import { sessionMark } from './rules.ts'

export type NewFlowJob = {
  readonly seq: number
  readonly id: string
  readonly createdAt: number
  readonly isQueued: boolean
  /** True: the job was dead, and an operator queued it again. */
  readonly isQueuedAgain: boolean
  readonly ring: string
  readonly key: string
  readonly labels: string
  readonly settings: FlowSettings
}

/** A row of flow_keys. */
export type Known = {
  readonly id: number
  readonly state: string
  readonly line: string
  readonly dueAt: number
  readonly firstAt: number
  /** The first job that waits: its seq, and whether it was queued again. */
  readonly head: number | undefined
  readonly isQueuedAgain: boolean
  /** Whether the key has a job that waits or runs. */
  readonly isBusy: boolean
}

export type EndedRow = readonly [seq: number, state: string, reason: string, endedBy: string | null]

/** The new jobs of a key. `kept`: those that become turns. `ended`: the others, unless they run already. */
export type KeyGroup = {
  readonly jobs: readonly NewFlowJob[]
  readonly newest: NewFlowJob
  readonly known: Known | undefined
  readonly kept: readonly NewFlowJob[]
  readonly ended: readonly EndedRow[]
}

export const toName = ({ ring, key }: Pick<NewFlowJob, 'ring' | 'key'>) => JSON.stringify([ring, key])

/** Whether the first job that waits is a retry, which waits for its own time. */
const waitsForRetry = ({ known, newest }: KeyGroup) =>
  known?.isQueuedAgain === true && newest.settings.onNew !== 'replace'
/** Whether a job of the key that was not queued again waits. */
const isWaiting = (group: KeyGroup) =>
  waitsForRetry(group) || (group.known?.head !== undefined && !group.known.isQueuedAgain)
/** Whether the key stays as it is: one whose turn is due already does not wait again. */
const isUnmoved = (group: KeyGroup) => waitsForRetry(group) || (isWaiting(group) && group.known?.state !== 'later')

/** Whether a quiet period of the key begins, or continues. */
export const isMoved = (group: KeyGroup) => group.known !== undefined && group.kept.length > 0 && !isUnmoved(group)

/** Whether another job of the key than before will start next: the newest one, or an older one that was dead. */
export function isReviewed(group: KeyGroup): boolean {
  const { known, newest, kept } = group
  return (
    kept[0] !== undefined &&
    isUnmoved(group) &&
    (newest.settings.onNew === 'gather' || kept[0].seq < Number(known?.head))
  )
}

/** With `gather`, the newest job may start before the time of a retry: the claim checks again which job is next. */
export const toReviewed = ({ known, newest, kept }: KeyGroup): Row => ({
  flow: known?.id ?? null,
  queued_again: newest.settings.onNew === 'gather' || kept[0]?.isQueuedAgain === true ? 1 : 0,
})

/** Writes the rows of keys that got jobs. Returns the ids of new ones by name. */
export function* writeKeys(
  groups: readonly KeyGroup[],
  { now, dialect }: FlowClaim,
): Script<ReadonlyMap<string, number>> {
  const moved: (string | number)[][] = []
  const renamed: (string | number)[][] = []
  const added: (string | number)[][] = []
  for (const group of groups) {
    const { known, newest, kept } = group
    const line = toLine(newest)
    if (known === undefined) added.push([newest.ring, newest.key, line, ...toMoments(group, now)])
    else if (kept.length === 0) continue
    else if (isMoved(group)) moved.push([known.id, line, ...toMoments(group, now)])
    else if (line !== known.line) renamed.push([known.id, line])
  }
  const moments = { new_state: 'text', new_rank: 'bigint', due: 'bigint', since: 'bigint' } as const
  if (moved.length > 0) {
    const rows = dialect.rows('$1', { key_id: 'bigint', new_line: 'text', ...moments })
    const sql = `UPDATE flow_keys SET line = r.new_line, state = r.new_state, rank = r.new_rank, due_at = r.due, first_at = r.since,
      blocker = NULL FROM (${rows}) r WHERE id = r.key_id`
    yield* run(sql, JSON.stringify(moved))
  }
  if (renamed.length > 0) {
    const rows = dialect.rows('$1', { key_id: 'bigint', new_line: 'text' })
    yield* run(`UPDATE flow_keys SET line = r.new_line FROM (${rows}) r WHERE id = r.key_id`, JSON.stringify(renamed))
  }
  if (added.length === 0) return new Map()
  const rows = dialect.rows('$1', { ring: 'text', key: 'text', line: 'text', ...moments })
  const sql = `INSERT INTO flow_keys (ring, key, line, state, rank, due_at, first_at)
    SELECT ring, key, line, new_state, new_rank, due, since FROM (${rows}) r RETURNING id, ring, key`
  const inserted = yield* run(sql, JSON.stringify(added))
  return new Map(inserted.map(({ id, ring, key }) => [toName({ ring: String(ring), key: String(key) }), Number(id)]))
}

/** State, rank, due_at and first_at of a key whose wait begins, or goes on. */
function toMoments(group: KeyGroup, now: number): readonly (string | number)[] {
  const { known, newest, kept, jobs } = group
  const { delayMs, maxDelayMs, headStartMs } = newest.settings
  const waiting = isWaiting(group) ? known : undefined
  const firstAt = waiting?.firstAt ?? kept[0]?.createdAt ?? now
  let dueAt = waiting?.dueAt ?? Infinity
  // a request that arrived after the quiet period ended does not begin it anew
  for (const { createdAt } of jobs) if (createdAt < dueAt) dueAt = Math.min(createdAt + delayMs, firstAt + maxDelayMs)
  if (delayMs === 0) dueAt = Math.min(now, dueAt)
  const state = kept.length === 0 ? 'idle' : dueAt > now ? 'later' : 'ready'
  return [state, dueAt - headStartMs, dueAt, firstAt]
}

function toLine({ ring, labels, settings: { total, limits, headStartMs } }: NewFlowJob): string {
  // as: the planner makes them
  const shared = (JSON.parse(labels) as string[]).filter((label) => !label.startsWith(sessionMark))
  const facts: LineFacts = { ring, total: total ?? null, limits, labels: shared, headStartMs }
  return JSON.stringify(facts)
}
