// How often deliveries were repeated, as in SQLite: ../sqlite/repeats.ts.
import type { Repetition } from '../records.ts'
import type { Query } from './pool.ts'

/** Rows are locked in a fixed order, so that two gateways do not wait for each other in a circle. */
const noteSql = `INSERT INTO repeats AS r (seq, times, last_at)
  SELECT d.seq, given.times, given.last_at
    FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS given (id, times, last_at) JOIN deliveries d USING (id) ORDER BY d.seq
  ON CONFLICT (seq) DO UPDATE SET times = r.times + excluded.times, last_at = greatest(r.last_at, excluded.last_at)`

const differSql = `UPDATE deliveries SET body_differed = 1 WHERE seq IN
  (SELECT seq FROM deliveries WHERE id = ANY ($1::text[]) AND body_differed = 0 ORDER BY seq FOR UPDATE)`

export async function noteRepeats(query: Query, repeats: readonly Repetition[]): Promise<void> {
  const ids = repeats.map(({ deliveryId }) => deliveryId)
  await query(
    noteSql,
    ids,
    repeats.map(({ times }) => times),
    repeats.map(({ lastAt }) => lastAt),
  )
  const differing = repeats.flatMap(({ deliveryId, bodyDiffered }) => (bodyDiffered ? [deliveryId] : []))
  if (differing.length > 0) await query(differSql, differing)
}
