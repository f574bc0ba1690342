// The gateways that owned the file, one after the other. The gateway that took a delivery follows from the order of arrival, so that no delivery
// needs a further write.
import type { NodeRecord } from '../owners.ts'
import { toNodeRecord } from '../rows.ts'
import type { Database, SqlValue } from './driver.ts'
import type { OperationOf } from './operations.ts'

/** first_seq: the seq of the first delivery that the gateway can have taken. seen_at: null after the gateway left. */
export const nodesSchema = `
CREATE TABLE nodes (
  place INTEGER PRIMARY KEY,
  first_seq INTEGER NOT NULL,
  id TEXT NOT NULL UNIQUE,
  version TEXT NOT NULL,
  generation TEXT NOT NULL,
  address TEXT NOT NULL,
  seen_at INTEGER
) STRICT;
CREATE INDEX nodes_first ON nodes (first_seq, place);
`

/** Deletes the gateways that no stored delivery can name. */
const prune = `DELETE FROM nodes WHERE EXISTS (SELECT 1 FROM nodes later WHERE later.place > nodes.place
  AND later.first_seq <= coalesce((SELECT min(seq) FROM deliveries), later.first_seq))`

export function join(db: Database, { node: { id, version, generation, address }, at }: OperationOf<'join'>): undefined {
  db.run(
    `INSERT INTO nodes (first_seq, id, version, generation, address, seen_at)
      VALUES ((SELECT coalesce(max(seq), 0) + 1 FROM deliveries), ?, ?, ?, ?, ?)
      ON CONFLICT (id) DO UPDATE SET version = excluded.version, generation = excluded.generation,
        address = excluded.address, seen_at = excluded.seen_at`,
    id,
    version,
    generation,
    address,
    at,
  )
  db.run(prune)
}

export function leave(db: Database, { id }: OperationOf<'leave'>): undefined {
  db.run('UPDATE nodes SET seen_at = NULL WHERE id = ?', id)
}

/** The gateway that joined last, unless it left. */
export function readNodes(db: Database): NodeRecord[] {
  const row = db.get('SELECT * FROM nodes ORDER BY place DESC LIMIT 1')
  return row === undefined || row['seen_at'] === null ? [] : [toNodeRecord(row)]
}

/** Which gateway took a delivery, by its seq. */
export function findNode(db: Database, seq: SqlValue | undefined): string | undefined {
  const sql = 'SELECT id FROM nodes WHERE first_seq <= ? ORDER BY first_seq DESC, place DESC LIMIT 1'
  const id = db.get(sql, seq ?? null)?.['id']
  return typeof id === 'string' ? id : undefined
}
