// How new jobs change the row of their key: its line, and when its next turn is due.
import type { FlowSettings } from '../core/model/flow.ts'
import type { FlowClaim, LineFacts } from './flow-script.ts'
import { run, type Script } from './script.ts'
import type { Row } from './rows.ts'
import { sessionMark } from './rules.ts'

export type NewFlowJob = {
  readonly seq: number
  readonly id: string
  readonly createdAt: number
  readonly isQueued: boolean
  /** True: the job was dead, and was queued again. */
  readonly isQueuedAgain: boolean
  readonly ring: string
  readonly key: string
  readonly labels: readonly string[]
  readonly settings: FlowSettings
}

/** A row of flow_keys, with facts about the jobs of the key. */
export type KnownKey = {
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

/** The new jobs of a key. `kept`: the queued jobs that become turns. `ended`: the other queued jobs. */
export type KeyGroup = {
  readonly jobs: readonly NewFlowJob[]
  readonly newest: NewFlowJob
  readonly known: KnownKey | undefined
  readonly kept: readonly NewFlowJob[]
  readonly ended: readonly EndedRow[]
}

export const toKeyName = ({ ring, key }: Pick<NewFlowJob, 'ring' | 'key'>) => JSON.stringify([ring, key])

/** Whether the first waiting job is a retry that the new jobs do not replace: it waits for its own time. */
const waitsForRetry = ({ known, newest }: KeyGroup) =>
  known?.isQueuedAgain === true && newest.settings.onNew !== 'replace'
/** Whether the key waits already for its next turn. A retry that the new jobs replace does not count. */
const isWaiting = (group: KeyGroup) =>
  waitsForRetry(group) || (group.known?.head !== undefined && !group.known.isQueuedAgain)
/** Whether the key keeps its due time: a key that is due already does not wait again. */
const hasSameDueTime = (group: KeyGroup) => waitsForRetry(group) || (isWaiting(group) && group.known?.state !== 'later')

/** Whether a quiet period begins or continues, for a key that has a row already. */
export const isRescheduled = (group: KeyGroup) =>
  group.known !== undefined && group.kept.length > 0 && !hasSameDueTime(group)

/** Whether the next job to start has changed: to the newest job, or to an older job that was dead. */
export function hasNewNextJob(group: KeyGroup): boolean {
  const { known, newest, kept } = group
  return (
    kept[0] !== undefined &&
    hasSameDueTime(group) &&
    (newest.settings.onNew === 'gather' || kept[0].seq < Number(known?.head))
  )
}

/**
 * A row for `makeKeysReady`, so that the claim checks again which job of the key is next. With `gather`, the newest job may start before the time of
 * a retry.
 */
export const toReviewRow = ({ known, newest, kept }: KeyGroup): Row => ({
  flow: known?.id ?? null,
  queued_again: newest.settings.onNew === 'gather' || kept[0]?.isQueuedAgain === true ? 1 : 0,
})

/** Writes the rows of keys that got jobs. Returns the ids of the new keys, by name. */
export function* writeKeys(
  groups: readonly KeyGroup[],
  { now, dialect }: FlowClaim,
): Script<ReadonlyMap<string, number>> {
  const rescheduled: (string | number)[][] = []
  const withNewLine: (string | number)[][] = []
  const added: (string | number)[][] = []
  for (const group of groups) {
    const { known, newest, kept } = group
    const line = toLineText(newest)
    if (known === undefined) added.push([newest.ring, newest.key, line, ...computeMoments(group, now)])
    else if (kept.length === 0) continue
    else if (isRescheduled(group)) rescheduled.push([known.id, line, ...computeMoments(group, now)])
    else if (line !== known.line) withNewLine.push([known.id, line])
  }
  const moments = { new_state: 'text', new_rank: 'bigint', due: 'bigint', since: 'bigint' } as const
  if (rescheduled.length > 0) {
    const rows = dialect.rows('$1', { key_id: 'bigint', new_line: 'text', ...moments })
    const sql = `UPDATE flow_keys SET line = r.new_line, state = r.new_state, rank = r.new_rank, due_at = r.due, first_at = r.since,
      blocker = NULL FROM (${rows}) r WHERE id = r.key_id`
    yield* run(sql, JSON.stringify(rescheduled))
  }
  if (withNewLine.length > 0) {
    const rows = dialect.rows('$1', { key_id: 'bigint', new_line: 'text' })
    yield* run(
      `UPDATE flow_keys SET line = r.new_line FROM (${rows}) r WHERE id = r.key_id`,
      JSON.stringify(withNewLine),
    )
  }
  if (added.length === 0) return new Map()
  const rows = dialect.rows('$1', { ring: 'text', key: 'text', line: 'text', ...moments })
  const sql = `INSERT INTO flow_keys (ring, key, line, state, rank, due_at, first_at)
    SELECT ring, key, line, new_state, new_rank, due, since FROM (${rows}) r RETURNING id, ring, key`
  const inserted = yield* run(sql, JSON.stringify(added))
  return new Map(inserted.map(({ id, ring, key }) => [toKeyName({ ring: String(ring), key: String(key) }), Number(id)]))
}

/** The state, rank, due_at and first_at of a key whose wait begins or continues. */
function computeMoments(group: KeyGroup, now: number): readonly (string | number)[] {
  const { known, newest, kept, jobs } = group
  const { delayMs, maxDelayMs, headStartMs } = newest.settings
  const waiting = isWaiting(group) ? known : undefined
  const firstAt = waiting?.firstAt ?? kept[0]?.createdAt ?? now
  let dueAt = waiting?.dueAt ?? Infinity
  // a request that arrived after the quiet period ended does not start it again
  for (const { createdAt } of jobs) if (createdAt < dueAt) dueAt = Math.min(createdAt + delayMs, firstAt + maxDelayMs)
  if (delayMs === 0) dueAt = Math.min(now, dueAt)
  const state = kept.length === 0 ? 'idle' : dueAt > now ? 'later' : 'ready'
  return [state, dueAt - headStartMs, dueAt, firstAt]
}

function toLineText({ ring, labels, settings: { total, limits, headStartMs } }: NewFlowJob): string {
  const shared = labels.filter((label) => !label.startsWith(sessionMark))
  const facts: LineFacts = { ring, total: total ?? null, limits, labels: shared, headStartMs }
  return JSON.stringify(facts)
}
