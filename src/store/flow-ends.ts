// Ends the jobs of flows that a request cancels, waiting jobs that expire, and those whose rows are damaged.
import { toEndedColumns, type FlowClaim, jobsOfKey, readyColumns, makeKeysReady } from './flow-script.ts'
import { run, type Script } from './script.ts'
import type { Row } from './rows.ts'
import { rowDamagedReason } from './rules.ts'

const cancelledAtOnce = 50
const expiredAtOnce = 100
const maxUnsorted = 100

/** `ended`: the rows that `makeKeysReady` needs. `isDone`: whether every cancel was carried out. */
export type Cancelled = { readonly ended: readonly Row[]; readonly isDone: boolean }

/** The cancels that arrived before all jobs that have no key yet; none while there are many such jobs. */
const selectCancels = `SELECT c.delivery_seq FROM flow_cancels c, (SELECT min(n.delivery_seq) AS first, count(*) AS count
    FROM (SELECT j.delivery_seq FROM ${jobsOfKey('j', '0')} LIMIT ${maxUnsorted + 1}) n) u
  WHERE u.count <= ${maxUnsorted} AND (u.first IS NULL OR c.delivery_seq < u.first) ORDER BY c.delivery_seq LIMIT ${cancelledAtOnce}`

/**
 * Carries out cancels. A cancel ends the jobs of its key that earlier deliveries caused. It waits until all jobs that arrived before it have
 * keys.
 */
export function* cancelJobs({ now, dialect }: FlowClaim): Script<Cancelled> {
  const due = (yield* run(selectCancels)).map((row) => Number(row['delivery_seq']))
  const [left] = yield* run('SELECT count(*) AS count FROM flow_cancels')
  const isDone = due.length === Number(left?.['count'])
  if (due.length === 0) return { ended: [], isDone }
  const seqs = JSON.stringify(due)
  const isDue = `c.delivery_seq IN (${dialect.list('$1')})`
  const cancelled = `flow_cancels c JOIN flow_keys k ON k.ring = c.ring AND k.key = c.key`
  // running jobs before queued ones: see `sortJobs`
  yield* run(
    `INSERT INTO endings (job_seq, at, state, reason) SELECT j.seq, CAST($2 AS bigint), 'cancelled', c.reason
      FROM ${cancelled} JOIN jobs j ON j.flow = k.id
      WHERE ${isDue} AND j.ended_at IS NULL AND j.state = 'running' AND j.delivery_seq < c.delivery_seq
      ORDER BY c.delivery_seq ON CONFLICT DO NOTHING`,
    seqs,
    now,
  )
  const ended = yield* run(
    `UPDATE jobs SET state = 'cancelled', ended_at = $2, last_error = c.reason FROM ${cancelled}
      WHERE ${isDue} AND jobs.flow = k.id AND jobs.ended_at IS NULL AND jobs.state = 'queued'
        AND jobs.delivery_seq < c.delivery_seq RETURNING ${toEndedColumns(`'cancelOn'`)}, ${readyColumns}`,
    seqs,
    now,
  )
  yield* run(`DELETE FROM flow_cancels WHERE delivery_seq IN (${dialect.list('$1')})`, seqs)
  return { ended, isDone }
}

const expiredReason = 'It had not started when it expired (expires).'

/** A job with a counted attempt or a recorded step no longer expires. */
export function* expireJobs({ now, dialect }: FlowClaim): Script<void> {
  const rows = yield* run(
    `SELECT job_seq FROM job_flow WHERE expires_at <= $1 ORDER BY expires_at LIMIT ${expiredAtOnce}`,
    now,
  )
  const seqs = JSON.stringify(rows.map(({ job_seq: seq }) => Number(seq)))
  const ended = yield* run(
    `UPDATE jobs SET state = 'expired', ended_at = $2, last_error = $3 WHERE seq IN
      (SELECT j.seq FROM jobs j WHERE j.seq IN (${dialect.list('$1')}) AND j.state = 'queued' AND j.ended_at IS NULL
        AND ${dialect.isUntouched}) RETURNING ${toEndedColumns(`'expires'`)}, ${readyColumns}`,
    seqs,
    now,
    expiredReason,
  )
  yield* makeKeysReady(ended, dialect)
  yield* run(`UPDATE job_flow SET expires_at = NULL WHERE job_seq IN (${dialect.list('$1')})`, seqs)
}

/** A damaged row must not prevent the claim of other jobs. */
export function* endDamaged({ seq }: Row, now: number): Script<undefined> {
  const sql = `UPDATE jobs SET state = 'dead', ended_at = $2, last_error = $3 WHERE seq = $1 AND state = 'queued' RETURNING seq`
  yield* run(sql, Number(seq), now, rowDamagedReason)
  return undefined
}
