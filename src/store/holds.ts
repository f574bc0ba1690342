// Holds, which keep jobs back by their labels.
import type { Hold, NewHold } from './records.ts'
import { toHold } from './rows.ts'
import { countChanged, run, type Script } from './script.ts'
import { forgetTurns } from './turns.ts'

export function* hold({ label, kind, reason, author, forMs }: NewHold): Script<void> {
  yield* run(
    `INSERT INTO holds (label, kind, at, until, author, reason) VALUES ($1, $2, $now, $now + CAST($3 AS bigint), $4, $5)
      ON CONFLICT (label, kind) DO UPDATE SET at = excluded.at, until = excluded.until, author = excluded.author, reason = excluded.reason`,
    label,
    kind,
    forMs ?? null,
    author ?? null,
    reason,
  )
}

export function* unhold({ label, kind }: Pick<Hold, 'label' | 'kind'>): Script<boolean> {
  if (kind === 'turns') yield* forgetTurns(label)
  return yield* openAfter('DELETE FROM holds WHERE label = $1 AND kind = $2', label, kind)
}

/** Deletes the holds whose time is over. */
export function endHolds(): Script<boolean> {
  return openAfter('DELETE FROM holds WHERE until <= $now')
}

/** Opens the gates of held jobs if a hold was deleted. A job that another hold still keeps back is found again at the next claim. */
function* openAfter(deleteHolds: string, ...params: readonly string[]): Script<boolean> {
  const isDeleted = (yield* countChanged(deleteHolds, ...params)) > 0
  if (isDeleted) yield* run(`UPDATE jobs SET gate = 0 WHERE state = 'queued' AND gate = 4 AND ended_at IS NULL`)
  return isDeleted
}

export function* readHolds(): Script<Hold[]> {
  const holds = yield* run('SELECT *, $now AS now FROM holds WHERE until IS NULL OR until > $now ORDER BY label, kind')
  return holds.map((row) => toHold(row, Number(row['now'])))
}
