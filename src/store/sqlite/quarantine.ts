// The sealed requests: ../quarantine.ts.
import { type QuarantinedRequest, type QuarantineQuery, quarantineColumns, selectBeyond } from '../quarantine.ts'
import { toQuarantinedRequest } from '../rows.ts'
import type { Database } from './driver.ts'
import type { OperationOf } from './operations.ts'

/** The index has all columns that decide which requests are deleted, so that no body is read for it. */
export const quarantineSchema = `
CREATE TABLE quarantine (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  received_at INTEGER NOT NULL,
  hook TEXT NOT NULL,
  label TEXT NOT NULL,
  network TEXT NOT NULL,
  known INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  key_id TEXT NOT NULL,
  refusal TEXT NOT NULL,
  sealed BLOB NOT NULL
) STRICT;
CREATE INDEX quarantine_shares ON quarantine (label, network, seq, known, bytes, received_at);
`

const insert = `INSERT INTO quarantine (${quarantineColumns.join(', ')})
  VALUES (${quarantineColumns.map(() => '?').join(', ')}) ON CONFLICT (id) DO NOTHING`
const size =
  'SELECT count(*) AS requests, coalesce(sum(bytes), 0) AS bytes FROM quarantine INDEXED BY quarantine_shares'
const deleteBeyond = `DELETE FROM quarantine WHERE seq IN (${selectBeyond({ larger: 'max', rows: '?1', bytes: '?2' })})`
const deleteOld = `DELETE FROM quarantine WHERE seq IN
  (SELECT seq FROM quarantine INDEXED BY quarantine_shares WHERE received_at < ?)`

export function quarantine(db: Database, { requests, bounds }: OperationOf<'quarantine'>): undefined {
  for (const values of requests) db.run(insert, ...values)
  db.run(deleteOld, bounds.olderThan)
  const { requests: count, bytes } = db.get(size) ?? {}
  if (Number(count) > bounds.maxRequests || Number(bytes) > bounds.maxBytes)
    db.run(deleteBeyond, bounds.maxRequests, bounds.maxBytes)
}

export function noteRefusals(db: Database, { refusals }: OperationOf<'noteRefusals'>): undefined {
  for (const { requestId, refusal } of refusals)
    db.run('UPDATE quarantine SET refusal = ? WHERE id = ?', refusal, requestId)
}

export function deleteSealed(db: Database, { requestIds }: OperationOf<'release'>): number {
  return requestIds.reduce(
    (total, requestId) => total + db.run('DELETE FROM quarantine WHERE id = ?', requestId).changes,
    0,
  )
}

const shown = 'SELECT seq, id, received_at, hook, refusal, key_id FROM quarantine'
const filters = '(?2 IS NULL OR hook = ?2) AND received_at >= ?3'

export function findQuarantined(db: Database, query: QuarantineQuery): QuarantinedRequest[] {
  const { limit, after, requestId, hook = null, since = 0 } = query
  if (requestId !== undefined) {
    const rows = db.all(`${shown} WHERE ${filters} AND id = ?4 LIMIT ?1`, limit, hook, since, requestId)
    return rows.map(toQuarantinedRequest)
  }
  const rows =
    after === undefined
      ? db.all(`${shown} WHERE ${filters} ORDER BY seq DESC LIMIT ?1`, limit, hook, since).toReversed()
      : db.all(`${shown} WHERE ${filters} AND seq > ?4 ORDER BY seq LIMIT ?1`, limit, hook, since, after)
  return rows.map(toQuarantinedRequest)
}

export function findSealed(db: Database, requestId: string): Uint8Array | undefined {
  const sealed = db.get('SELECT sealed FROM quarantine WHERE id = ?', requestId)?.['sealed']
  return sealed instanceof Uint8Array ? sealed : undefined
}
