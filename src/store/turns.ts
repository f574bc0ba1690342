// Limits the turns of a session in an hour, with one script for all engines. Each start is a row of flow_counts, so it counts however the turn ends, and
// whatever becomes of the transcript.
import { readNow, run, type Script } from './script.ts'

/** A turn that is about to start. `limit`: the number of turns of its session, which has the label, that may start in an hour. */
export type TurnStart = { readonly jobId: string; readonly label: string; readonly limit: number }

/** The part of the store that limits the turns of sessions. */
export interface TurnKeeper {
  /**
   * Counts the start of a turn, and returns undefined. If `limit` other jobs of the session have started within an hour, it counts nothing, and returns
   * the milliseconds until the oldest of them counts no more. A job that starts again within the hour counts once. All owners together never start more
   * than `limit`. `unhold` of a hold of the kind `turns` forgets the starts of its label.
   */
  startTurn(start: TurnStart): Promise<number | undefined>
}

const turnPeriodMs = 3_600_000
const mark = 'turn:'
/** The names of the starts of a session: a label, a line break, which no label has, and the id of a job. */
const toNames = (label: string) => ({ first: `${mark}${label}\n`, after: `${mark}${label}\v` })

/** A condition for rows of `flow_counts`: starts of turns that no limit counts any more. `now`: an SQL expression. */
export const whereTurnIsOld = (now: string) => `name >= '${mark}' AND name < 'turn;' AND at <= ${now} - ${turnPeriodMs}`

/** One start of a session at a time: the caller has the lock. */
export function* startTurn({ jobId, label, limit }: TurnStart): Script<number | undefined> {
  const now = yield* readNow()
  const { first, after } = toNames(label)
  // a start in the future, from before the clock was set back, would keep the session waiting until then
  const forget = 'DELETE FROM flow_counts WHERE name >= $1 AND name < $2 AND (at <= $3 OR at > $4)'
  yield* run(forget, first, after, now - turnPeriodMs, now)
  const starts = yield* run('SELECT name, at FROM flow_counts WHERE name >= $1 AND name < $2 ORDER BY at', first, after)
  if (starts.some(({ name }) => name === first + jobId)) return undefined
  if (starts.length >= limit) return Number(starts[starts.length - limit]?.['at']) + turnPeriodMs - now
  yield* run('INSERT INTO flow_counts (name, at) VALUES ($1, $2)', first + jobId, now)
  return undefined
}

export function* forgetTurns(label: string): Script<void> {
  const { first, after } = toNames(label)
  yield* run('DELETE FROM flow_counts WHERE name >= $1 AND name < $2', first, after)
}
