// The operations on jobs. They run inside the writer's transaction.
import { settleTurns } from '../accounts.ts'
import { claimFlows, hintColumns } from '../flow.ts'
import { endHolds } from '../holds.ts'
import { clockSetBackMs, leaseLostReason, rowDamagedReason } from '../rules.ts'
import type { Database, Row, SqlValue } from './driver.ts'
import { addFailure } from './failures.ts'
import type { JobValues, OperationOf, Results } from './operations.ts'
import { dialect, insertFlow, newFence, returnToFlow, runScript, selectPlain, startJob, planOf } from './flow.ts'
import { findHeldLabels, holdBack, letTasksPass, precededTasks } from './holds.ts'
import { openLane } from './lanes.ts'
import { insertEvents, writeTurn } from './sessions.ts'
import { writeJob } from './report-row.ts'
import { isJobIntact, sums } from './sums.ts'

const insertJob = `INSERT INTO jobs (id, delivery_seq, planned, lane, state, steps, created_at, run_at, ended_at, labels, flow, stands_for, sum, work_sum, gate)
  VALUES (?1, CASE WHEN ?11 IS NULL THEN ?2 END, ?3, ?4, ?5, ?6, ?7, ?7, ?8, ?9, ?10, ?11, ?12, ?13, CASE WHEN ?10 IS NOT NULL THEN 3 WHEN ?4 IS NULL OR ?8 IS NOT NULL THEN 0
    ELSE EXISTS (SELECT 1 FROM jobs WHERE lane = ?4 AND ended_at IS NULL) END)`

/** The columns of `jobs` that a copy keeps, with the id of the job's delivery. */
export const selectJob = `SELECT j.id, ${planOf} AS planned, j.state, j.attempts, j.created_at, j.run_at, j.locked_until,
    j.last_error, j.failing_since, j.failures, j.steps, j.posts, j.fence, j.seq, j.delivery_seq,
    j.lane, j.stands_for, j.ended_at, j.ended_by, j.labels, j.flow, j.queued_again, j.budget, j.sum, j.work_sum, d.id AS delivery_id
  FROM jobs j LEFT JOIN deliveries d ON d.seq = j.delivery_seq`

/** A wake in the row of its delivery has the seq of the delivery less this number, so that it precedes all jobs that have a row. */
export const wakeOffset = 2 ** 52
/** The wakes in the rows of deliveries, with the columns of `selectJob`. */
export const selectWake = `SELECT wake_id AS id, plan AS planned, 'done' AS state, 0 AS attempts, settled_at AS created_at,
    settled_at AS run_at, settled_at AS ended_at, NULL AS locked_until, NULL AS last_error, NULL AS failing_since,
    NULL AS failures, NULL AS lane, NULL AS stands_for, NULL AS ended_by, NULL AS labels, NULL AS flow, 0 AS queued_again, NULL AS budget, NULL AS sum, NULL AS work_sum,
    wake_steps AS steps, '[]' AS posts, 0 AS fence, seq - ${wakeOffset} AS seq,
    seq AS delivery_seq, id AS delivery_id
  FROM deliveries`

const buildSelectDue = (condition: string) => `SELECT j.seq, j.fence FROM jobs j
  WHERE j.state = 'queued' AND j.gate = 0 AND j.ended_at IS NULL ${condition} ORDER BY j.seq LIMIT ?`
const selectDue = buildSelectDue('')
/** There are few tasks: the index `jobs_standing` has them. */
const selectDueTasks = buildSelectDue(
  `AND j.seq IN (SELECT seq FROM jobs WHERE stands_for IS NOT NULL AND state = 'queued')`,
)

/** The jobs in the JSON array `?1` of seqs. `readable`: 0 if a row is damaged. */
const selectClaimed = `SELECT *, json_valid(planned) AND json_valid(steps) AND json_valid(posts)
    AND json_valid(coalesce(failures, '[]')) AND json_valid(coalesce(labels, '[]')) AS readable
  FROM (${selectJob} WHERE j.seq IN (SELECT value FROM json_each(?1))) ORDER BY seq`

const selectRunning = `SELECT seq, lane, EXISTS (SELECT 1 FROM endings WHERE job_seq = seq) AS must_end FROM jobs WHERE state = 'running' AND ended_at IS NULL`

const selectLeased = `SELECT j.seq, j.lane, j.steps, j.posts, j.work_sum, d.id AS delivery_id,
    (${planOf}) ->> '$.agentId' AS agent_id, (${planOf}) ->> '$.sessionKey' AS session_key,
    EXISTS (SELECT 1 FROM json_each(j.steps) WHERE value ->> '$.name' IN (SELECT value FROM json_each(?3))) AS recorded,
    e.state AS ending
  FROM jobs j LEFT JOIN deliveries d ON d.seq = j.delivery_seq LEFT JOIN endings e ON e.job_seq = j.seq
  WHERE j.id = ?1 AND j.fence = ?2 AND j.state = 'running'`

const whereLater = `state = 'queued' AND gate = 2`
/** INDEXED BY: with another index, SQLite would read every job that waits for a retry. */
const openLater = `UPDATE jobs INDEXED BY jobs_later SET gate = 0 WHERE ${whereLater}`
const startPlain = `UPDATE jobs SET state = 'running', fence = ${newFence}, locked_until = ? WHERE seq IN (SELECT value FROM json_each(?))`

/** `chores`: whether a claim has more to do than to start jobs, because a lease or a wait is over, or because of a hold or a task that waits in a lane. */
const claimHints = `SELECT ${hintColumns('?1')},
  EXISTS (SELECT 1 FROM jobs WHERE state = 'queued' AND gate = 0 AND ended_at IS NULL) AS plain,
  EXISTS (SELECT 1 FROM jobs WHERE state = 'running' AND ended_at IS NULL AND locked_until <= ?1)
    OR EXISTS (SELECT 1 FROM jobs INDEXED BY jobs_later WHERE ${whereLater} AND run_at <= ?1)
    OR EXISTS (SELECT 1 FROM jobs INDEXED BY jobs_later WHERE ${whereLater} AND run_at > ?1 + ${clockSetBackMs})
    OR EXISTS (SELECT 1 FROM holds) OR EXISTS (SELECT 1 FROM ${precededTasks}) AS chores`

type Batch = {
  deliverySeq: number
  deliveryId: string
  at: number
  jobs: readonly JobValues[]
  /** The plan in the row of the delivery. */
  plan: SqlValue | undefined
}

export function insertJobs(db: Database, { deliverySeq, deliveryId, at, jobs, plan = null }: Batch): void {
  for (const { id, planned, lane, state, steps, labels, flow, events, standsFor } of jobs) {
    const endedAt = state === 'done' ? at : null
    const { seq } = db.run(
      insertJob,
      id,
      deliverySeq,
      planned,
      lane,
      state,
      steps,
      at,
      endedAt,
      labels,
      flow ? 0 : null,
      standsFor,
      sums.job({
        id,
        delivery_seq: standsFor === null ? deliverySeq : null,
        stands_for: standsFor,
        planned: planned === '' ? plan : planned,
      }),
      sums.work({ steps, posts: '[]' }),
    )
    if (flow !== undefined) insertFlow(db, { flow, seq, deliverySeq, at })
    insertEvents(db, events, { deliveryId, at })
  }
}

/** Usually one statement finds that nothing is due, and four start jobs. */
export function claim(db: Database, operation: OperationOf<'claim'>): Results['claim'] {
  const { at, limit, leaseMs, limits, only } = operation
  const first = db.get(claimHints, at)
  const held = first?.['chores'] === 0 ? [] : doChores(db, operation)
  // the next claim goes on, so that appends can run in between
  if (held === undefined) return { rows: [], ended: [], isSorted: false }
  const { chores: _, ...hints } = (first?.['chores'] === 0 ? first : db.get(claimHints, at)) ?? {}
  const most = only === undefined ? limit : 0
  const flows = { now: at, limit: most, leaseMs, limits, held, dialect, selectPlain, startJob }
  const { started, ended, isSorted } = runScript(db, claimFlows(flows, hints), at)
  const lapsed = new Map<SqlValue, SqlValue>([...started].map(([seq, job]) => [seq, job['lapsed'] ?? null]))
  if (hints['plain'] === 1)
    for (const [seq, fence] of claimPlain(db, { at, limit: limit - started.size, leaseMs, only }))
      lapsed.set(seq, fence)
  if (lapsed.size === 0) return { rows: [], ended, isSorted }
  const claimed = db.all(selectClaimed, JSON.stringify([...lapsed.keys()]))
  const isReadable = (job: Row) => job['readable'] === 1 && isJobIntact(job)
  for (const job of claimed) if (!isReadable(job)) endDamaged(db, job, at)
  const rows = claimed.filter(isReadable)
  return { rows: rows.map((row) => ({ ...row, lapsed: lapsed.get(row['seq'] ?? null) ?? null })), ended, isSorted }
}

/** What comes before a claim: ends leases, waits and holds that are over. Returns the labels that are held; undefined if it must be called again. */
function doChores(db: Database, { at, limit }: OperationOf<'claim'>): readonly string[] | undefined {
  requeueRunning(db, db.all(`${selectRunning} AND locked_until <= ?`, at), at)
  db.run(`${openLater} AND run_at <= ?`, at)
  db.run(`${openLater} AND run_at > ?`, at + clockSetBackMs)
  runScript(db, endHolds(), at)
  const held = findHeldLabels(db, at)
  if (held.length > 0 && !holdBack(db, held, limit)) return undefined
  letTasksPass(db, held, at)
  return held
}

/** A damaged row must not prevent the claim of other jobs. */
function endDamaged(db: Database, { seq = null, lane = null }: Row, at: number): void {
  const sql = `UPDATE jobs SET state = 'dead', ended_at = ?, locked_until = NULL, last_error = ? WHERE seq = ?`
  db.run(sql, at, rowDamagedReason, seq)
  openLane(db, lane, at)
}

/** Claims jobs without a flow. Returns their seqs, each with the fence of its expired lease, or null. */
function claimPlain(
  db: Database,
  { at, limit, leaseMs, only }: Pick<OperationOf<'claim'>, 'at' | 'limit' | 'leaseMs' | 'only'>,
): Map<SqlValue, SqlValue> {
  if (limit <= 0) return new Map()
  const due = db.all(only === 'tasks' ? selectDueTasks : selectDue, limit)
  const lapsed = new Map(due.map(({ seq = null, fence = null }) => [seq, fence === 0 ? null : fence]))
  if (lapsed.size > 0) db.run(startPlain, at + leaseMs, JSON.stringify([...lapsed.keys()]))
  return lapsed
}

/** Queues the jobs that a dead owner left running. Only a new owner may call it, before it leases jobs itself. */
export function requeueOrphans(db: Database, at: number): void {
  requeueRunning(db, db.all(selectRunning), at)
}

/** Ends the jobs that must end, and queues the others again. The attempt counts, so that a job that crashes its gateway ends. The next claim returns the old fence. */
function requeueRunning(db: Database, expired: readonly Row[], at: number): void {
  const running = expired.filter((job) => job['must_end'] !== 1)
  for (const job of expired) if (job['must_end'] === 1) endAsAsked(db, job, at)
  for (const { seq = null, lane = null } of running) {
    db.run(
      `UPDATE jobs SET state = 'queued', queued_again = 1, locked_until = NULL, attempts = attempts + 1, last_error = ?1, run_at = ?2,
        gate = ?3, ${addFailure('?2', '?1')} WHERE seq = ?4`,
      leaseLostReason,
      at,
      toGate(lane),
      seq,
    )
    returnToFlow(db, seq, at)
  }
  for (const { lane = null } of running) openLane(db, lane, at)
}

/** The gate of a job that is queued again: closed if it has a lane, until openLane opens it. */
export function toGate(lane: SqlValue): number {
  return lane === null ? 0 : 1
}

export function report(db: Database, operation: OperationOf<'report'>): boolean {
  const { id, fence, steps, at } = operation
  const job = db.get(selectLeased, id, fence, JSON.stringify(steps.map(({ name }) => name)))
  if (!job) {
    const ended = db.get('SELECT state FROM jobs WHERE id = ? AND fence = ? AND ended_at IS NOT NULL', id, fence)
    return ended?.['state'] === operation.outcome.kind
  }
  runScript(db, settleTurns(id, operation.settled, dialect), at)
  if (job['ending'] !== null) {
    endReported(db, operation, job)
    return false
  }
  const { seq = null, lane = null, recorded } = job
  const fresh = recorded === 0 ? operation : { ...operation, steps: [] }
  writeJob(db, fresh, job)
  if (recorded === 0) recordTurn(db, operation, job)
  endAttempt(db, operation, { seq, lane: operation.leavesLane ? null : lane, at })
  if (operation.leavesLane || operation.outcome.kind === 'done') openLane(db, lane, at)
  return true
}

/** Writes only the posts of the report, which show what was sent. Any outcome ends the job, because nobody works on it then. */
function endReported(db: Database, report: OperationOf<'report'>, job: Row): void {
  const { outcome, posts, at } = report
  if (posts !== undefined)
    writeJob(db, { ...report, steps: [], leavesLane: false, leaseMs: undefined, outcome: { kind: 'goes on' } }, job)
  if (outcome.kind !== 'goes on') endAsAsked(db, job, at)
}

/** Ends a running job as `endings` says. */
export function endAsAsked(db: Database, { seq = null, lane = null }: Row, at: number): void {
  db.run(
    `UPDATE jobs SET state = e.state, ended_at = ?2, locked_until = NULL, last_error = e.reason, ended_by = e.ended_by
      FROM endings e WHERE e.job_seq = ?1 AND jobs.seq = ?1`,
    seq,
    at,
  )
  db.run('DELETE FROM endings WHERE job_seq = ?', seq)
  openLane(db, lane, at)
}

function recordTurn(db: Database, operation: OperationOf<'report'>, job: Row): void {
  const { delivery_id: deliveryId = null, agent_id: agentId = null, session_key: sessionKey = null } = job
  insertEvents(db, operation.events, { deliveryId, at: operation.at })
  writeTurn(db, operation, { agentId, sessionKey })
}

type Place = { seq: SqlValue; lane: SqlValue; at: number }

/** Queues the job again, or ends it as dead. */
function endAttempt(db: Database, { outcome }: OperationOf<'report'>, { seq, lane, at }: Place): void {
  switch (outcome.kind) {
    case 'goes on':
    case 'done':
      return
    case 'release':
      db.run(
        `UPDATE jobs SET state = 'queued', queued_again = 1, fence = 0, locked_until = NULL, budget = NULL, run_at = ?, gate = ? WHERE seq = ?`,
        at,
        toGate(lane),
        seq,
      )
      returnToFlow(db, seq, at)
      break
    case 'retry':
      db.run(
        `UPDATE jobs SET state = 'queued', queued_again = 1, fence = 0, locked_until = NULL, budget = NULL, attempts = attempts + ?1, last_error = ?2,
          run_at = ?3, gate = ?4, failing_since = coalesce(failing_since, ?5)${outcome.isDelay ? '' : `, ${addFailure('?5', '?2', '?7')}`}
          WHERE seq = ?6`,
        outcome.counted ? 1 : 0,
        outcome.error,
        at + outcome.afterMs,
        lane === null ? 2 : 1,
        at,
        seq,
        ...(outcome.isDelay ? [] : [outcome.spentMs ?? null]),
      )
      returnToFlow(db, seq, at)
      break
    case 'dead':
      db.run(
        `UPDATE jobs SET state = 'dead', locked_until = NULL, attempts = attempts + ?1, ended_at = ?2, last_error = coalesce(?3, last_error),
          ${addFailure('?2', '?3')} WHERE seq = ?4`,
        outcome.counted ? 1 : 0,
        at,
        outcome.error,
        seq,
      )
  }
  openLane(db, lane, at)
}
