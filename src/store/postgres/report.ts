// A worker's report. It runs in a transaction, under the lock of the job's row.
import type { JobReport } from '../records.ts'
import { deleteMessages } from '../trim.ts'
import { lockWaiting, settleSpending } from './budgets.ts'
import { toEventParams } from './append.ts'
import { addFailure } from './failures.ts'
import { dialect, runScript } from './flow.ts'
import { endAsAskedSql, leaveLane, returnToFlow } from './holds.ts'
import { planOnce } from './naming.ts'
import type { Query } from './pool.ts'

/** A session's row is locked until the commit, so sessions are touched last, in a fixed order. */
const touchSession = (now: string) => `INSERT INTO sessions (agent_id, session_key, updated_at) VALUES ($1, $2, ${now})
  ON CONFLICT (agent_id, session_key) DO UPDATE SET updated_at = greatest(sessions.updated_at, excluded.updated_at)`

type LeasedJob = {
  readonly seq: number
  readonly id: string
  readonly deliveryId: string | null
  readonly agentId: string
  readonly sessionKey: string
}

export async function report(
  query: Query,
  { job, what, now }: { job: { id: string; fence: number }; what: JobReport; now: string },
): Promise<boolean> {
  const { steps = [], posts, settled = [] } = what
  await lockWaiting(
    query,
    settled.map(({ name }) => name),
  )
  // a subquery reads one delivery; a merge join could read all earlier ones
  const [row] = await query(
    `${planOnce} SELECT j.seq, j.agent_id, j.session_key, (p.step_names && $3::text[])::int AS recorded,
        (SELECT d.id FROM deliveries d WHERE d.seq = j.delivery_seq) AS delivery_id,
        (EXISTS (SELECT 1 FROM endings e WHERE e.job_seq = j.seq))::int AS must_end
      FROM jobs j JOIN job_parts p ON p.job_seq = j.seq
      WHERE j.id = $1 AND j.fence = $2 AND j.state = 'running' FOR UPDATE OF j`,
    job.id,
    job.fence,
    steps.map(({ name }) => name),
  )
  if (row === undefined) {
    const sql = 'SELECT state FROM jobs WHERE id = $1 AND fence = $2 AND ended_at IS NOT NULL'
    const [ended] = await query(sql, job.id, job.fence)
    return ended !== undefined && ended['state'] === what.outcome?.kind
  }
  const leased: LeasedJob = {
    seq: Number(row['seq']),
    id: job.id,
    deliveryId: row['delivery_id'] === null ? null : String(row['delivery_id']),
    agentId: String(row['agent_id']),
    sessionKey: String(row['session_key']),
  }
  await settleSpending(query, { id: job.id, settled, now })
  if (posts !== undefined) {
    await query('UPDATE job_parts SET posts = $2 WHERE job_seq = $1', leased.seq, JSON.stringify(posts))
  }
  // if a job must end, its report writes only the spending and the posts, which show what was sent
  if (row['must_end'] === 1 || (queuesAgain(what) && (await mustEnd(query, leased.seq)))) {
    if (what.outcome !== undefined) await query(endAsAskedSql(now, 'j.seq = $1'), leased.seq)
    return false
  }
  if (what.leavesLane === true)
    await query('UPDATE jobs SET lane = NULL WHERE seq = $1 AND lane IS NOT NULL', leased.seq)
  await endAttempt(query, { leased, what, now, isNewStep: steps.length > 0 && row['recorded'] !== 1 })
  if (row['recorded'] !== 1) await recordSteps(query, { leased, what, now })
  return true
}

function queuesAgain({ outcome }: JobReport): boolean {
  return outcome?.kind === 'retry' || outcome?.kind === 'release'
}

/** A claim may have written the ending while the report waited for the lock: only a statement that begins under the lock sees it. */
async function mustEnd(query: Query, seq: number): Promise<boolean> {
  return (await query('SELECT 1 AS one FROM endings WHERE job_seq = $1', seq)).length > 0
}

type Recording = { readonly leased: LeasedJob; readonly what: JobReport; readonly now: string }

async function recordSteps(query: Query, { leased, what, now }: Recording): Promise<void> {
  const { seq, id, deliveryId, agentId, sessionKey } = leased
  const { steps = [], events = [], messages = [], keeps, consumed = [], runnerState, recipient } = what
  if (steps.length > 0) {
    await query(
      `${planOnce} UPDATE job_parts SET step_names = step_names || $2::text[],
          steps = CASE WHEN steps = '[]' THEN '[' ELSE left(steps, -1) || ',' END || $3 || ']' WHERE job_seq = $1`,
      seq,
      steps.map(({ name }) => name),
      steps.map((step) => JSON.stringify(step)).join(','),
    )
  }
  for (const event of events) {
    await query(
      `INSERT INTO events (delivery_id, agent_id, session_key, text, source, trusted, wakes, at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, ${now})`,
      ...toEventParams(deliveryId, event),
    )
  }
  for (const { role, text } of messages) {
    await query(
      `INSERT INTO messages (agent_id, session_key, at, role, run_id, text) VALUES ($1, $2, ${now}, $3, $4, $5)`,
      agentId,
      sessionKey,
      role,
      id,
      text,
    )
  }
  if (keeps !== undefined) await runScript(query, deleteMessages({ agentId, sessionKey }, keeps, dialect), now)
  if (consumed.length > 0) {
    await query(
      `UPDATE events SET consumed_at = ${now}
        WHERE agent_id = $1 AND session_key = $2 AND consumed_at IS NULL AND seq = ANY ($3::bigint[])`,
      agentId,
      sessionKey,
      consumed.map(({ id }) => id),
    )
  }
  const touched = [
    ...events.map((event) => [event.agentId, event.sessionKey] as const),
    ...(messages.length > 0 || runnerState !== undefined ? [[agentId, sessionKey] as const] : []),
    ...(recipient === undefined ? [] : [[agentId, 'main'] as const]),
  ]
  const names = [...new Map(touched.map((name) => [name.join('\0'), name]))].toSorted(([a], [b]) => (a < b ? -1 : 1))
  for (const [, name] of names) await query(touchSession(now), ...name)
  if (runnerState !== undefined) {
    const text = runnerState === null ? null : JSON.stringify(runnerState)
    const set = 'UPDATE sessions SET runner_state = $3 WHERE agent_id = $1 AND session_key = $2'
    await query(set, agentId, sessionKey, text)
  }
  if (recipient !== undefined) {
    const set = `UPDATE sessions SET recipient_channel = $2, recipient_to = $3 WHERE agent_id = $1 AND session_key = 'main'`
    await query(set, agentId, recipient.channel, recipient.to)
  }
}

type AttemptEnd = Recording & { readonly isNewStep: boolean }

async function endAttempt(query: Query, { leased, what, now, isNewStep }: AttemptEnd): Promise<void> {
  const { seq } = leased
  const { outcome, leaseMs } = what
  if (isNewStep) {
    await query(`${planOnce} UPDATE jobs SET failing_since = NULL WHERE seq = $1 AND failing_since IS NOT NULL`, seq)
  }
  switch (outcome?.kind) {
    case undefined:
      if (leaseMs === undefined) return
      await query(`${planOnce} UPDATE jobs SET locked_until = ${now} + $2::bigint WHERE seq = $1`, seq, leaseMs)
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
    case 'done':
    case 'dead':
      await query(
        `${planOnce} UPDATE jobs SET state = $2, locked_until = NULL, attempts = attempts + $3::int, ended_at = ${now},
          last_error = coalesce($4, last_error)${outcome.kind === 'dead' ? `, failures = ${addFailure(now, '$4')}` : ''} WHERE seq = $1`,
        seq,
        outcome.kind,
        outcome.kind === 'dead' && outcome.counted === false ? 0 : 1,
        outcome.kind === 'dead' ? outcome.error : null,
      )
  }
}
