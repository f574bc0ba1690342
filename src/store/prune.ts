// Deletes old rows that belong to no delivery, and that each engine deletes alike.
import { clockSetBackMs, longestPeriodMs } from './rules.ts'
import { countChanged, type Dialect, type Script } from './script.ts'
import { whereTurnIsOld } from './turns.ts'

/** The accounts of old periods, and never the newest one of a budget. */
const accounts = `DELETE FROM accounts WHERE (name, starts_at) IN (SELECT name, starts_at FROM accounts a
  WHERE starts_at < $1 AND EXISTS (SELECT 1 FROM accounts n WHERE n.name = a.name AND n.starts_at > a.starts_at) LIMIT $2)`

const sessions = `DELETE FROM sessions WHERE (agent_id, session_key) IN
  (SELECT agent_id, session_key FROM sessions WHERE updated_at < $1 ORDER BY updated_at LIMIT $2)`

const starts = (isOld: string) =>
  `DELETE FROM flow_counts WHERE seq IN (SELECT seq FROM flow_counts WHERE ${isOld} LIMIT $1)`

/**
 * The last turn of a line only delays jobs that are older than this turn, and a sweep has dropped such jobs. A last turn in the future, from before
 * the clock was set back, would delay all jobs of the line. A claim locks several rows of this table, one after the other, so the statement must
 * not wait for one of them.
 */
const lines = ({ skipLocked }: Dialect) => `DELETE FROM flow_lines WHERE line IN
  (SELECT line FROM flow_lines WHERE served_at < $1 OR served_at > $now + ${clockSetBackMs} LIMIT $2 ${skipLocked})`

/** Deletes at most `limit` rows of each kind. Returns how many. */
export function* pruneRows({ before, limit }: { before: number; limit: number }, dialect: Dialect): Script<number> {
  let count = yield* countChanged(accounts, before, limit)
  count += yield* countChanged(sessions, before, limit)
  count += yield* countChanged(starts(`at < $now - ${longestPeriodMs} ORDER BY at`), limit)
  count += yield* countChanged(starts(whereTurnIsOld('$now')), limit)
  return count + (yield* countChanged(lines(dialect), before, limit))
}
