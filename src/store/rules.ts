// Rules that all engines share.
import { Problem } from '../core/model/problem.ts'

/** A store that cannot be read or written now. `detail` may be shown to senders. */
export function storeUnavailable(detail: string, retryAfterSeconds: number, cause?: unknown): Problem {
  return new Problem('store-unavailable', detail, { retryAfterSeconds, cause })
}

/** Replaces NUL with U+FFFD: SQLite truncates a text at a NUL, and Postgres rejects it. */
export function toStoredText(text: string): string {
  return text.includes('\0') ? text.replaceAll('\0', '\uFFFD') : text
}

/**
 * The generations and hashes that parked a delivery before, as SQL, separated by spaces. Only about fifty of the newest are kept, because each save
 * of a module may add two. `takeEnd` makes the expression of the last 4000 characters of a text.
 */
export const failedBySql = (takeEnd: (text: string) => string): string => `CASE WHEN state = 'parked'
  THEN ${takeEnd(`coalesce(failed_by, '') || ' ' || generation || ' ' || coalesce(transform_hash, '')`)} ELSE failed_by END`

/** Each name that deliveries wait for, as SQL that jumps from name to name in the index. */
export const selectWaitedFor = `WITH RECURSIVE waited (name) AS (
    SELECT min(waits_for) FROM deliveries WHERE state IN ('pending', 'parked')
    UNION ALL SELECT (SELECT min(waits_for) FROM deliveries
      WHERE state IN ('pending', 'parked') AND waits_for > waited.name) FROM waited WHERE name IS NOT NULL)
  SELECT name FROM waited WHERE name IS NOT NULL`

/** The last error of a job whose lease expired without a report. */
export const leaseLostReason = 'The gateway that ran this job died, or lost its lease, before it reported.'

/** The maximum number of failed attempts of a job that are kept. A provider that is down for a day gets about a hundred attempts. */
export const maxFailures = 12
/** The maximum number of characters of the error of such an attempt. */
export const maxFailureChars = 200

/** The last error of a job that ended because its row cannot be read. */
export const rowDamagedReason =
  'The row of this job in the store is damaged. Run "hookloom doctor". If it finds more damage, restore the store from a backup.'

/** A retry further ahead than this is due at once: no retry waits for more than a day, so the clock was set back. */
export const clockSetBackMs = 2 * 86_400_000

/** The longest period of a rate limit: older starts count no more. */
export const longestPeriodMs = 31 * 86_400_000

/** The kinds of tasks that wait for the end of a run. */
export const runTaskKinds = ['status', 'callback'] as const

/** The `standsFor` of a task that waits for the end of a run. */
export function toRunTaskName(kind: (typeof runTaskKinds)[number], runId: string): string {
  return `${kind}/${runId}`
}

/** The prefix of the labels of sessions. */
export const sessionMark = 'session:'

/** The label by which a hold finds the jobs of a session. */
export function toSessionLabel({
  agentId,
  sessionKey,
}: {
  readonly agentId: string
  readonly sessionKey: string
}): string {
  return `${sessionMark}${agentId}/${sessionKey}`
}
