// Ends a job before its time. A running job is asked to end, because its owner must stop it first.
import type { Ending } from '../model/job.ts'
import { makeKeysReady, readyColumns } from './flow-script.ts'
import type { SqlValue } from './rows.ts'
import { type Dialect, run, type Script } from './script.ts'
import type { Store } from './store.ts'

/** `lane`: the lane of a job that was queued. */
type Ended = { readonly result: Awaited<ReturnType<Store['endJob']>>; readonly lane?: SqlValue }

export function* endJob(id: string, { state, reason, endedBy }: Ending, dialect: Dialect): Script<Ended> {
  const select = `SELECT seq, lane, state, ${readyColumns} FROM jobs WHERE id = $1 AND ended_at IS NULL ${dialect.forUpdate}`
  const [job] = yield* run(select, id)
  if (job === undefined) return { result: undefined }
  const values = [Number(job['seq']), state, reason, endedBy ?? null]
  if (job['state'] === 'queued') {
    yield* run('UPDATE jobs SET state = $2, ended_at = $now, last_error = $3, ended_by = $4 WHERE seq = $1', ...values)
    yield* makeKeysReady([job], dialect)
    return { result: 'ended', lane: job['lane'] ?? null }
  }
  // the first reason counts
  const insert = `INSERT INTO endings (job_seq, at, state, reason, ended_by) VALUES ($1, $now, $2, $3, $4) ON CONFLICT DO NOTHING`
  yield* run(insert, ...values)
  return { result: 'ending' }
}
