// The audit log: ../audit.ts. There is one writer, so the newest row cannot change before the next one is stored.
import { type AuditQuery, type AuditRow, chainEntry, toAuditRow } from '../audit.ts'
import type { Database } from './driver.ts'
import type { OperationOf } from './operations.ts'

export const auditSchema = `
CREATE TABLE audit (
  number INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  hash TEXT NOT NULL,
  entry TEXT NOT NULL
) STRICT;
`

const shown = 'SELECT number, at, hash, entry FROM audit'
const newest = `${shown} ORDER BY number DESC LIMIT 1`

export function audit(db: Database, { at, entry }: Pick<OperationOf<'audit'>, 'at' | 'entry'>): AuditRow {
  const last = db.get(newest)
  const row = chainEntry(entry, at, last && toAuditRow(last))
  db.run('INSERT INTO audit (number, at, hash, entry) VALUES (?, ?, ?, ?)', row.number, row.at, row.hash, row.entry)
  return row
}

/** The newest entry stays, because the next one needs its hash. */
export function pruneAudit(db: Database, { before }: OperationOf<'pruneAudit'>): number {
  const kept = 'coalesce((SELECT min(number) FROM audit WHERE at >= ?1), (SELECT max(number) FROM audit))'
  return db.run(`DELETE FROM audit WHERE number < ${kept}`, before).changes
}

export function readAudit(db: Database, { limit, after, before, since = 0 }: AuditQuery): AuditRow[] {
  const rows =
    after === undefined
      ? db
          .all(
            `${shown} WHERE number < ?1 AND at >= ?2 ORDER BY number DESC LIMIT ?3`,
            before ?? Number.MAX_SAFE_INTEGER,
            since,
            limit,
          )
          .toReversed()
      : db.all(`${shown} WHERE number > ?1 AND at >= ?2 ORDER BY number LIMIT ?3`, after, since, limit)
  return rows.map(toAuditRow)
}
