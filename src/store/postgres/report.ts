// A worker's report. It runs in a transaction, under the lock of the job's row.
import type { JobReport } from '../records.ts'
import { deleteMessages } from '../trim.ts'
import { lockWaiting, settleSpending } from './budgets.ts'
import { addFailure } from './failures.ts'
import { dialect, runScript } from './flow.ts'
import { endAsAskedSql, isEnding, leaveLane, returnToFlow } from './holds.ts'
import { planOnce } from './naming.ts'
import type { Query } from './pool.ts'
import { mustEnd, type ReportCall, writeReports } from './reports.ts'

type LeasedJob = { readonly seq: number; readonly agentId: string; readonly sessionKey: string }

/** Writes any report. The usual ones share a transaction: see `reportAll`. */
export async function report(
  query: Query,
  { call, now }: { readonly call: ReportCall; readonly now: string },
): Promise<boolean> {
  const { job, what } = call
  const { posts, settled = [], outcome } = what
  await lockWaiting(
    query,
    settled.map(({ name }) => name),
  )
  const [row] = await query(
    `${planOnce} SELECT j.seq, j.agent_id, j.session_key, ${mustEnd}::int AS must_end FROM jobs j
      WHERE j.id = $1 AND j.fence = $2 AND j.state = 'running' FOR UPDATE OF j`,
    job.id,
    job.fence,
  )
  if (row === undefined) {
    const sql = 'SELECT state FROM jobs WHERE id = $1 AND fence = $2 AND ended_at IS NOT NULL'
    const [ended] = await query(sql, job.id, job.fence)
    return ended !== undefined && ended['state'] === outcome?.kind
  }
  const leased = {
    seq: Number(row['seq']),
    agentId: String(row['agent_id']),
    sessionKey: String(row['session_key']),
  }
  await settleSpending(query, { id: job.id, settled, now })
  // if a job must end, its report writes only the spending and the posts, which show what was sent
  if (row['must_end'] === 1 || (queuesAgain(what) && (await isEnding(query, leased.seq)))) {
    if (posts !== undefined)
      await query('UPDATE job_parts SET posts = $2 WHERE job_seq = $1', leased.seq, JSON.stringify(posts))
    if (outcome !== undefined) await query(endAsAskedSql(now, 'j.seq = $1'), leased.seq)
    return false
  }
  const [written] = await writeReports(query, { calls: [call], seqs: [leased.seq], now })
  await endAttempt(query, { leased, what, now })
  if (written?.['recorded'] !== 1) await keepSession(query, { leased, what, now })
  return true
}

function queuesAgain({ outcome }: JobReport): boolean {
  return outcome?.kind === 'retry' || outcome?.kind === 'release'
}

type Recording = { readonly leased: LeasedJob; readonly what: JobReport; readonly now: string }

/** Writes what a session keeps of a turn. Its row is locked until the commit, so this comes last. */
async function keepSession(query: Query, { leased: { agentId, sessionKey }, what, now }: Recording): Promise<void> {
  const { keeps, runnerState, recipient } = what
  if (keeps !== undefined) await runScript(query, deleteMessages({ agentId, sessionKey }, keeps, dialect), now)
  if (runnerState !== undefined) {
    const text = runnerState === null ? null : JSON.stringify(runnerState)
    const set = 'UPDATE sessions SET runner_state = $3 WHERE agent_id = $1 AND session_key = $2'
    await query(set, agentId, sessionKey, text)
  }
  if (recipient !== undefined) {
    const set = `INSERT INTO sessions (agent_id, session_key, updated_at, recipient_channel, recipient_to) VALUES ($1, 'main', ${now}, $2, $3)
      ON CONFLICT (agent_id, session_key) DO UPDATE SET recipient_channel = $2, recipient_to = $3,
        updated_at = greatest(sessions.updated_at, excluded.updated_at)`
    await query(set, agentId, recipient.channel, recipient.to)
  }
}

/** Queues the job again, or ends it as dead. */
async function endAttempt(query: Query, { leased: { seq }, what: { outcome }, now }: Recording): Promise<void> {
  switch (outcome?.kind) {
    case undefined:
    case 'done':
      return
    case 'release':
      await query(
        `UPDATE jobs SET state = 'queued', queued_again = 1, fence = 0, locked_until = NULL, budget = NULL, run_at = ${now}, ${leaveLane} WHERE seq = $1`,
        seq,
      )
      return await returnToFlow(query, seq, now)
    case 'retry':
      await query(
        `UPDATE jobs SET state = 'queued', queued_again = 1, fence = 0, locked_until = NULL, budget = NULL, attempts = attempts + $2::int,
          last_error = $3, run_at = ${now} + $4::bigint, failing_since = coalesce(failing_since, ${now}),
          ${outcome.isDelay === true ? '' : `failures = ${addFailure(now, '$3', '$5')}, `}${leaveLane} WHERE seq = $1`,
        seq,
        outcome.counted === false ? 0 : 1,
        outcome.error,
        outcome.afterMs,
        ...(outcome.isDelay === true ? [] : [outcome.spentMs ?? null]),
      )
      return await returnToFlow(query, seq, now)
    case 'dead':
      await query(
        `${planOnce} UPDATE jobs SET state = 'dead', locked_until = NULL, attempts = attempts + $2::int, ended_at = ${now},
          last_error = $3, failures = ${addFailure(now, '$3')} WHERE seq = $1`,
        seq,
        outcome.counted === false ? 0 : 1,
        outcome.error,
      )
  }
}
