// Which turns of flows start: one algorithm for all engines, as a script of SQL statements that each engine runs in one transaction, under a
// lock that only one claim can have.
//
// A new job has no key yet: `flow` is 0. The next claim sorts it: it gives the job its key, or ends the job.
//
// flow_keys has a row for each key with unfinished jobs. Its rank is the moment from which the key waits for a turn, less its head start:
//
//   idle ──▶ later ──▶ ready ──▶ (a turn starts) ──▶ ready, behind the others
//             ▲ retry    │ ▲
//             └──────────┤ │ the blocker has room
//                        ▼ │
//                      blocked
//
// A line is the set of keys that share mapping, limits, labels and head start. A line that has no room is left out as a whole, and a blocked
// key is not read again before its blocker has room. So a claim reads some rows for each line, each running job and each free slot, however
// many jobs wait.
import { countRunning, unblockKeys } from './flow-blockers.ts'
import type { EarlyReads, FlowClaim, FlowClaimed } from './flow-script.ts'
import type { Script } from './script.ts'
import { collectEnded } from './flow-script.ts'
import { run } from './script.ts'
import { expireJobs } from './flow-ends.ts'
import { sortJobs } from './flow-sort.ts'
import { gatheredReason, startTurns } from './flow-turns.ts'
import type { EndedRun } from './records.ts'
import type { Row } from './rows.ts'

const openedAtOnce = 200
const noTurns: Omit<FlowClaimed, 'ended'> = { started: new Map(), isSorted: true }

const existsColumn = (rows: string, name: string) =>
  `CASE WHEN EXISTS (SELECT 1 FROM ${rows}) THEN 1 ELSE 0 END AS ${name}`

// not EXISTS: for it, Postgres reads the table instead of the index if its statistics suggest that a row is found soon. Not min() either, because Postgres
// plans it twice
const isDueColumn = (first: string, now: string, name: string) =>
  `CASE WHEN (SELECT ${first}) <= ${now} THEN 1 ELSE 0 END AS ${name}`

const isFoundColumn = (first: string, name: string) =>
  `CASE WHEN (SELECT ${first}) IS NULL THEN 0 ELSE 1 END AS ${name}`

/** The lowest key of an unfinished job: 0 if a job has no key yet; null if no unfinished job has a flow. */
export const firstFlow = 'flow FROM jobs WHERE flow IS NOT NULL AND ended_at IS NULL ORDER BY flow LIMIT 1'

/** The kinds of work that a claim would find, as columns with 0 or 1. Each column reads one row. `now`: an SQL expression. */
export const hintColumns = (now: string) =>
  [
    isDueColumn(firstFlow, '0', 'unsorted'),
    existsColumn('flow_cancels', 'cancels'),
    isDueColumn('expires_at FROM job_flow WHERE expires_at IS NOT NULL ORDER BY expires_at LIMIT 1', now, 'expired'),
    isDueColumn(`due_at FROM flow_keys WHERE state = 'later' ORDER BY due_at LIMIT 1`, now, 'due'),
    isFoundColumn(`line FROM flow_keys WHERE state = 'ready' ORDER BY line LIMIT 1`, 'ready'),
    existsColumn(`flow_keys WHERE state = 'blocked'`, 'blocked'),
    existsColumn(`flow_keys WHERE state = 'idle'`, 'idle'),
  ].join(', ')

/** The moment from which a claim may find work, in milliseconds since the epoch; null if there is none. */
export const selectNextFlow = `SELECT min(at) AS at FROM (
  SELECT 0 AS at WHERE (SELECT ${firstFlow}) <= 0 OR EXISTS (SELECT 1 FROM flow_cancels)
    OR EXISTS (SELECT 1 FROM flow_keys WHERE state = 'ready') OR EXISTS (SELECT 1 FROM flow_keys WHERE state = 'blocked')
  UNION ALL SELECT * FROM (SELECT due_at FROM flow_keys WHERE state = 'later' ORDER BY due_at LIMIT 1) l
  UNION ALL SELECT * FROM (SELECT expires_at FROM job_flow WHERE expires_at IS NOT NULL ORDER BY expires_at LIMIT 1) e) n`

/** Starts the turns that are due and have room. `hints`: the `hintColumns`, and `plain`: whether a job without a flow may be due. */
export function* claimFlows(claim: FlowClaim, hints: Row, early?: EarlyReads): Script<FlowClaimed> {
  const ended: EndedRun[] = []
  return { ...(yield* collectEnded(openAndStart(claim, hints, early), ended)), ended }
}

function* openAndStart(claim: FlowClaim, hints: Row, reads?: EarlyReads): Script<Omit<FlowClaimed, 'ended'>> {
  const { now, dialect } = claim
  const { plain, ...own } = hints
  if (Object.values(own).every((hint) => hint === 0)) return noTurns
  const hasCancels = own['cancels'] === 1
  const isSorted = (own['unsorted'] === 0 && !hasCancels) || (yield* sortJobs(claim, hasCancels))
  // a cancel may wait for jobs that are not sorted yet, and comes before expiry
  if (own['expired'] === 1 && isSorted) yield* expireJobs(claim)
  if (own['due'] === 1) yield* run(openDue, now, openedAtOnce)
  const keepsKeys = own['unsorted'] === 0 && !hasCancels
  const counts = yield* countRunning(claim.held, keepsKeys ? reads : undefined)
  const isUnblocked = own['blocked'] === 1 && (yield* unblockKeys(counts, dialect))
  const early = keepsKeys && own['expired'] === 0 && own['due'] === 0 && !isUnblocked ? reads : undefined
  if (own['idle'] === 1) yield* run(deleteIdle)
  // a job that is not sorted yet may replace one that would start
  if (!isSorted || claim.limit <= 0) return { ...noTurns, isSorted }
  return { started: yield* startTurns(counts, claim, { hasPlain: plain === 1, early }), isSorted }
}

const openDue = `UPDATE flow_keys SET state = 'ready' WHERE id IN
  (SELECT id FROM flow_keys WHERE state = 'later' AND due_at <= $1 ORDER BY due_at LIMIT $2)`
const deleteIdle = `DELETE FROM flow_keys WHERE id IN (SELECT k.id FROM flow_keys k WHERE k.state = 'idle'
  AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.flow = k.id AND j.ended_at IS NULL) ORDER BY k.id LIMIT 16)`

/** Reopens the key `$2` after one of its jobs was queued again, due at `$1`. If its first queued job is due earlier, so is the key. */
const reopenKey = `UPDATE flow_keys SET state = 'later', blocker = NULL,
  due_at = CASE WHEN state = 'later' AND due_at < $1 THEN due_at ELSE coalesce((SELECT CASE WHEN run_at < $1 THEN run_at END
    FROM jobs WHERE flow = $2 AND ended_at IS NULL AND state = 'queued' ORDER BY seq LIMIT 1), $1) END WHERE id = $2`

/** For jobs that were queued again: makes the key of each job due when the job is due. */
export function* reopenKeys(jobs: readonly Row[]): Script<void> {
  for (const { flow = null, run_at: runAt = null } of jobs) if (flow !== null) yield* run(reopenKey, runAt, flow)
}

/** The seqs of the jobs whose messages the job `$1` reads. */
export const selectGathered = `SELECT j.seq FROM jobs j WHERE j.ended_by = $1 AND j.last_error = '${gatheredReason}'`
