// How often deliveries were repeated. The table is separate, so that a repetition does not rewrite the wide row of its delivery.
import type { Repetition } from './records.ts'
import { type Dialect, run, type Script } from './script.ts'

export function* noteRepeats(
  repeats: readonly Repetition[],
  { rows, texts, larger, forUpdate }: Dialect,
): Script<void> {
  const note = `INSERT INTO repeats AS r (seq, times, last_at) SELECT d.seq, given.times, given.last_at
      FROM (${rows('$1', { delivery_id: 'text', times: 'bigint', last_at: 'bigint' })}) given
      JOIN deliveries d ON d.id = given.delivery_id WHERE true ORDER BY d.seq
    ON CONFLICT (seq) DO UPDATE SET times = r.times + excluded.times, last_at = ${larger}(r.last_at, excluded.last_at)`
  yield* run(note, JSON.stringify(repeats.map(({ deliveryId, times, lastAt }) => [deliveryId, times, lastAt])))
  const differing = repeats.filter(({ bodyDiffered }) => bodyDiffered).map(({ deliveryId }) => deliveryId)
  if (differing.length === 0) return
  const differ = `UPDATE deliveries SET body_differed = 1 WHERE seq IN
    (SELECT seq FROM deliveries WHERE id IN (${texts('$1')}) AND body_differed = 0 ORDER BY seq ${forUpdate})`
  yield* run(differ, JSON.stringify(differing))
}
