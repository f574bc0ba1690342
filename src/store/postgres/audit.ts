// The audit log in Postgres. The one in SQLite is ../sqlite/audit.ts.
import { type AuditQuery, type AuditRow, chainEntry, type NewAuditEntry, toAuditRow } from '../audit.ts'
import type { Query } from './pool.ts'

export const auditSchema = `
CREATE TABLE audit (
  number bigint PRIMARY KEY,
  at bigint NOT NULL,
  hash text NOT NULL,
  entry text NOT NULL
);
`

const shown = 'SELECT number, at, hash, entry FROM audit'
/** The lock is held until the transaction ends, so that each gateway reads the newest entry after it was committed. */
const lock = `SELECT pg_advisory_xact_lock(hashtextextended('hookloom audit ' || current_schema(), 0))::text AS locked`

export async function audit(query: Query, entry: NewAuditEntry, now: string): Promise<AuditRow> {
  await query(lock)
  const [clock] = await query(`SELECT ${now} AS now`)
  const [last] = await query(`${shown} ORDER BY number DESC LIMIT 1`)
  const row = chainEntry(entry, Number(clock?.['now']), last && toAuditRow(last))
  await query(
    'INSERT INTO audit (number, at, hash, entry) VALUES ($1, $2, $3, $4)',
    row.number,
    row.at,
    row.hash,
    row.entry,
  )
  return row
}

/** The newest entry stays, because the next one needs its hash. */
export async function pruneAudit(query: Query, olderThanMs: number, now: string): Promise<number> {
  const kept = `coalesce((SELECT min(number) FROM audit WHERE at >= ${now} - $1::bigint), (SELECT max(number) FROM audit))`
  return (await query(`DELETE FROM audit WHERE number < ${kept} RETURNING number`, olderThanMs)).length
}

const newest = `${shown} WHERE number < $1 AND at >= $2 ORDER BY number DESC LIMIT $3`
const following = `${shown} WHERE number > $1 AND at >= $2 ORDER BY number LIMIT $3`

export async function readAudit(query: Query, { limit, after, before, since = 0 }: AuditQuery): Promise<AuditRow[]> {
  const rows =
    after === undefined
      ? (await query(newest, before ?? Number.MAX_SAFE_INTEGER, since, limit)).toReversed()
      : await query(following, after, since, limit)
  return rows.map(toAuditRow)
}
