// Sorts new jobs of flows: gives each one its key (`jobs.flow`), and ends the jobs that `onNew` or `maxQueued` does not keep.
import { cancelJobs } from './flow-ends.ts'
import {
  type EndedRow,
  type KeyGroup,
  isRescheduled,
  hasNewNextJob,
  type KnownKey,
  type NewFlowJob,
  toKeyName,
  toReviewRow,
  writeKeys,
} from './flow-keys.ts'
import {
  type FlowClaim,
  jobsOfKey,
  readFlowSettings,
  readLabels,
  readyColumns,
  makeKeysReady,
  toEndedColumns,
  whereQueued,
} from './flow-script.ts'
import { type Dialect, run, type Script } from './script.ts'
import type { Row } from './rows.ts'

/** The maximum number of new jobs that one script sorts. */
const sortedAtOnce = 100

/** The new jobs with their keys: one statement, however many keys there are. */
const selectUnsorted = `SELECT u.*, k.id AS key_id, k.state AS key_state, k.line, k.due_at, k.first_at, h.seq AS head,
    h.queued_again AS head_again, CASE WHEN (SELECT b.seq FROM ${jobsOfKey('b', 'k.id')} LIMIT 1) IS NOT NULL THEN 1 ELSE 0 END AS busy
  FROM (SELECT j.*, f.ring, f.key, f.settings FROM (SELECT n.seq, n.id, n.delivery_seq, n.created_at, n.queued_again, n.state, n.labels
      FROM ${jobsOfKey('n', '0')} LIMIT ${sortedAtOnce}) j JOIN job_flow f ON f.job_seq = j.seq) u
    LEFT JOIN flow_keys k ON k.ring = u.ring AND k.key = u.key
    LEFT JOIN jobs h ON h.seq = (SELECT q.seq FROM ${jobsOfKey('q', 'k.id', whereQueued('q'))} LIMIT 1)
  ORDER BY u.seq`

/**
 * Sorts new jobs, in order of arrival, and carries out cancels. Returns false if there is more to do before a turn may start.
 * Jobs are written before keys, as in every other transaction. Running jobs are ended before queued ones, because a report of another gateway may queue
 * a running job again in between: then it is ended with the queued ones.
 */
export function* sortJobs(claim: FlowClaim, hasCancels: boolean): Script<boolean> {
  const cancelled = hasCancels ? yield* cancelJobs(claim) : { ended: [], isDone: true }
  const rows = yield* run(selectUnsorted)
  const groups = groupByKey(rows)
  yield* endNew(
    groups.flatMap(({ ended }) => ended),
    claim,
  )
  const replaced = groups.filter(({ newest, kept }) => newest.settings.onNew === 'replace' && kept.length > 0)
  yield* endRunning(replaced, claim)
  const ended = [...cancelled.ended, ...(yield* replaceQueued(replaced, claim))]
  yield* setKeys(groups, ({ known }) => known?.id, claim)
  ended.push(...(yield* dropOldest(groups, claim)))
  const ids = yield* writeKeys(groups, claim)
  yield* setKeys(groups, ({ known, newest }) => (known === undefined ? ids.get(toKeyName(newest)) : undefined), claim)
  // leaves out the keys whose quiet period has just begun: `makeKeysReady` would end this period
  const rescheduled = new Set(groups.filter(isRescheduled).map(({ known }) => known?.id))
  const left = ended.filter(({ flow }) => !rescheduled.has(Number(flow)))
  yield* makeKeysReady([...left, ...groups.filter(hasNewNextJob).map(toReviewRow)], claim.dialect)
  return rows.length < sortedAtOnce && cancelled.isDone
}

function groupByKey(rows: readonly Row[]): KeyGroup[] {
  const groups = new Map<string, { readonly jobs: NewFlowJob[]; readonly known: KnownKey | undefined }>()
  for (const row of rows) {
    const job = toNewJob(row)
    const group = groups.get(toKeyName(job))
    if (group === undefined) groups.set(toKeyName(job), { jobs: [job], known: readKnownKey(row) })
    else group.jobs.push(job)
  }
  return [...groups.values()].flatMap(({ jobs, known }) => {
    const newest = jobs.at(-1)
    return newest === undefined ? [] : [{ jobs, newest, known, ...chooseTurns(jobs, known) }]
  })
}

function toNewJob(row: Row): NewFlowJob {
  return {
    seq: Number(row['seq']),
    id: String(row['id']),
    createdAt: Number(row['created_at']),
    isQueued: row['state'] === 'queued',
    isQueuedAgain: row['queued_again'] === 1,
    ring: String(row['ring']),
    key: String(row['key']),
    labels: readLabels(row),
    settings: readFlowSettings(row),
  }
}

function readKnownKey(row: Row): KnownKey | undefined {
  if (row['key_id'] === null) return undefined
  return {
    id: Number(row['key_id']),
    state: String(row['key_state']),
    line: String(row['line']),
    dueAt: Number(row['due_at']),
    firstAt: Number(row['first_at']),
    head: row['head'] === null ? undefined : Number(row['head']),
    isQueuedAgain: row['head_again'] === 1,
    isBusy: row['busy'] === 1,
  }
}

const supersededReason = 'A newer request of its key replaced it.'
const skippedReason = 'A turn of its key was waiting or running when it arrived.'
const describeFull = (max: number) => `More than ${max} turns of its key waited (maxQueued), so the oldest was dropped.`

/** Decides which new jobs become turns, and how the others end. */
function chooseTurns(all: readonly NewFlowJob[], known: KnownKey | undefined): Pick<KeyGroup, 'kept' | 'ended'> {
  const jobs = all.filter(({ isQueued }) => isQueued)
  const newest = jobs.at(-1)
  if (newest === undefined) return { kept: [], ended: [] }
  const { onNew, maxQueued = Infinity } = newest.settings
  if (onNew === 'skip') {
    const kept = known?.isBusy === true ? [] : jobs.slice(0, 1)
    return { kept, ended: jobs.slice(kept.length).map(({ seq }) => [seq, 'skipped', skippedReason, null]) }
  }
  const kept = jobs.slice(-Math.min(onNew === 'replace' ? 1 : maxQueued, jobs.length))
  const [state, reason, by] =
    onNew === 'replace' ? ['superseded', supersededReason, newest.id] : ['dropped', describeFull(maxQueued), null]
  return { kept, ended: jobs.slice(0, jobs.length - kept.length).map(({ seq }) => [seq, state, reason, by]) }
}

/** The `FlowEnd` of each state that `chooseTurns` returns. */
const newEnd = `CASE jobs.state WHEN 'skipped' THEN 'skip' WHEN 'superseded' THEN 'replace' ELSE 'maxQueued' END`

function* endNew(ended: readonly EndedRow[], { now, dialect }: FlowClaim): Script<void> {
  if (ended.length === 0) return
  const rows = dialect.rows('$1', { job_seq: 'bigint', new_state: 'text', reason: 'text', by_id: 'text' })
  const sql = `UPDATE jobs SET state = r.new_state, ended_at = $2, last_error = r.reason, ended_by = r.by_id FROM (${rows}) r
    WHERE seq = r.job_seq AND state = 'queued' RETURNING ${toEndedColumns(newEnd)}`
  yield* run(sql, JSON.stringify(ended), now)
}

/** Asks running jobs to end. A running job may have no key until now, as in a copied store. */
function* endRunning(replaced: readonly KeyGroup[], { now, dialect }: FlowClaim): Script<void> {
  const insert = `INSERT INTO endings (job_seq, at, state, ended_by, reason)
    SELECT j.seq, CAST($2 AS bigint), 'superseded', r.by_id, CAST($3 AS text)`
  const isRunning = `j.ended_at IS NULL AND j.state = 'running'`
  const known = replaced.flatMap(({ known: key, newest }) =>
    key === undefined ? [] : [[key.id, newest.seq, newest.id]],
  )
  if (known.length > 0) {
    const rows = dialect.rows('$1', { key_id: 'bigint', before: 'bigint', by_id: 'text' })
    const sql = `${insert} FROM (${rows}) r JOIN jobs j ON j.flow = r.key_id WHERE ${isRunning} AND j.seq < r.before ON CONFLICT DO NOTHING`
    yield* run(sql, JSON.stringify(known), now, supersededReason)
  }
  const copied = replaced.flatMap(({ jobs, newest }) =>
    jobs.filter(({ isQueued, seq }) => !isQueued && seq < newest.seq).map(({ seq }) => [seq, newest.id]),
  )
  if (copied.length > 0) {
    const rows = dialect.rows('$1', { running_seq: 'bigint', by_id: 'text' })
    const sql = `${insert} FROM (${rows}) r JOIN jobs j ON j.seq = r.running_seq WHERE ${isRunning} ON CONFLICT DO NOTHING`
    yield* run(sql, JSON.stringify(copied), now, supersededReason)
  }
}

/** Returns the jobs that it ended, for `makeKeysReady`. */
function* replaceQueued(replaced: readonly KeyGroup[], { now, dialect }: FlowClaim): Script<Row[]> {
  const known = replaced.flatMap(({ known: key, newest }) =>
    key === undefined ? [] : [[key.id, newest.seq, newest.id]],
  )
  if (known.length === 0) return []
  const rows = dialect.rows('$1', { key_id: 'bigint', before: 'bigint', by_id: 'text' })
  return yield* run(
    `UPDATE jobs SET state = 'superseded', ended_at = $2, last_error = $3, ended_by = r.by_id FROM (${rows}) r
      WHERE flow = r.key_id AND ended_at IS NULL AND state = 'queued' AND seq < r.before RETURNING ${toEndedColumns(`'replace'`)}, ${readyColumns}`,
    JSON.stringify(known),
    now,
    supersededReason,
  )
}

/** Writes the keys of new jobs that become turns and of jobs that run already. `find`: finds the key of a group. */
function* setKeys(
  groups: readonly KeyGroup[],
  find: (group: KeyGroup) => number | undefined,
  { dialect }: FlowClaim,
): Script<void> {
  const set = groups.flatMap((group) => {
    const id = find(group)
    const jobs = group.jobs.filter((job) => !job.isQueued || group.kept.includes(job))
    return id === undefined ? [] : jobs.map(({ seq }) => [seq, id])
  })
  if (set.length === 0) return
  const rows = dialect.rows('$1', { job_seq: 'bigint', key_id: 'bigint' })
  yield* run(`UPDATE jobs SET flow = r.key_id FROM (${rows}) r WHERE seq = r.job_seq`, JSON.stringify(set))
}

/** Returns the jobs that it ended, for `makeKeysReady`. */
function* dropOldest(groups: readonly KeyGroup[], { now, dialect }: FlowClaim): Script<Row[]> {
  const full = new Map<number, number[]>()
  for (const { known, newest } of groups) {
    const { maxQueued } = newest.settings
    if (known !== undefined && maxQueued !== undefined) full.set(maxQueued, [...(full.get(maxQueued) ?? []), known.id])
  }
  const ended: Row[] = []
  for (const [max, ids] of full) ended.push(...(yield* dropOldestOf(ids, { max, now, dialect })))
  return ended
}

function* dropOldestOf(
  ids: readonly number[],
  { max, now, dialect }: { readonly max: number; readonly now: number; readonly dialect: Dialect },
): Script<Row[]> {
  return yield* run(
    `UPDATE jobs SET state = 'dropped', ended_at = $2, last_error = $3 WHERE seq IN (
      SELECT j.seq FROM (${dialect.rows('$1', { key_id: 'bigint' })}) r JOIN jobs j ON j.flow = r.key_id
      WHERE j.ended_at IS NULL AND j.state = 'queued' AND j.seq <= (SELECT q.seq FROM jobs q
        WHERE q.flow = r.key_id AND q.ended_at IS NULL AND q.state = 'queued' ORDER BY q.seq DESC LIMIT 1 OFFSET $4)
      ORDER BY j.seq LIMIT ${sortedAtOnce}) RETURNING ${toEndedColumns(`'maxQueued'`)}, ${readyColumns}`,
    JSON.stringify(ids.map((id) => [id])),
    now,
    describeFull(max),
    max,
  )
}
