// The table of the audit log, as scripts: audit.ts.
import { type AuditQuery, type AuditRow, chainEntry, type NewAuditEntry, toAuditRow } from './audit.ts'
import { countChanged, readNow, run, type Script } from './script.ts'

const selectRows = 'SELECT number, at, hash, entry FROM audit'

/** No other owner may add an entry until the transaction ends. */
export function* addEntry(given: NewAuditEntry): Script<AuditRow> {
  const now = yield* readNow()
  const [last] = yield* run(`${selectRows} ORDER BY number DESC LIMIT 1`)
  const row = chainEntry(given, now, last && toAuditRow(last))
  const insert = 'INSERT INTO audit (number, at, hash, entry) VALUES ($1, $2, $3, $4)'
  yield* run(insert, row.number, row.at, row.hash, row.entry)
  return row
}

/** The newest entry stays, because the next one needs its hash. */
export function pruneEntries(olderThanMs: number): Script<number> {
  const kept = `coalesce((SELECT min(number) FROM audit WHERE at >= $now - CAST($1 AS bigint)), (SELECT max(number) FROM audit))`
  return countChanged(`DELETE FROM audit WHERE number < ${kept}`, olderThanMs)
}

export function* readEntries({ limit, after, before, since = 0 }: AuditQuery): Script<AuditRow[]> {
  const newest = `${selectRows} WHERE number < $1 AND at >= $2 ORDER BY number DESC LIMIT $3`
  const following = `${selectRows} WHERE number > $1 AND at >= $2 ORDER BY number LIMIT $3`
  const rows =
    after === undefined
      ? (yield* run(newest, before ?? Number.MAX_SAFE_INTEGER, since, limit)).toReversed()
      : yield* run(following, after, since, limit)
  return rows.map(toAuditRow)
}
