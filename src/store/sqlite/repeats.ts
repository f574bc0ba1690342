// How often deliveries were repeated. The table is separate, so that a repetition does not rewrite the wide row of its delivery.
import type { Database, Row, SqlValue } from './driver.ts'
import type { OperationOf } from './operations.ts'

export const repeatsSchema = `
CREATE TABLE repeats (
  seq INTEGER PRIMARY KEY REFERENCES deliveries (seq) ON DELETE CASCADE,
  times INTEGER NOT NULL,
  last_at INTEGER NOT NULL
) STRICT;
`

const note = `INSERT INTO repeats (seq, times, last_at) SELECT seq, ?2, ?3 FROM deliveries WHERE id = ?1
  ON CONFLICT (seq) DO UPDATE SET times = times + excluded.times, last_at = max(last_at, excluded.last_at)`

export function noteRepeats(db: Database, { repeats }: OperationOf<'noteRepeats'>): undefined {
  for (const { deliveryId, times, lastAt, bodyDiffered } of repeats) {
    db.run(note, deliveryId, times, lastAt)
    if (bodyDiffered) db.run('UPDATE deliveries SET body_differed = 1 WHERE id = ? AND body_differed = 0', deliveryId)
  }
}

/** The repetitions of a delivery, by its seq, as columns of its row. */
export function readRepeats(db: Database, seq: SqlValue | undefined): Row {
  return db.get('SELECT times AS repeats, last_at AS repeated_at FROM repeats WHERE seq = ?', seq ?? null) ?? {}
}
