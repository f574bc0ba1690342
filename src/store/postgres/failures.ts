// The failed attempts of a job, as SQL.
import { maxFailureChars, maxFailures } from '../rules.ts'

/**
 * The column `failures` of `jobs` with one more attempt. Only the newest `maxFailures` attempts stay. `error`, `spentMs`: parameters of the
 * statement. JSON, unlike JSONB, keeps each text unchanged.
 */
export const addFailure = (
  now: string,
  error: string,
  spentMs = 'NULL',
): string => `(SELECT json_agg(one ORDER BY place)::text FROM (
    SELECT one, place FROM json_array_elements(coalesce(jobs.failures, '[]')::json) WITH ORDINALITY AS kept (one, place)
    UNION ALL SELECT json_strip_nulls(json_build_object('at', ${now}, 'error', left(${error}::text, ${maxFailureChars}), 'spentMs', ${spentMs}::bigint)), ${maxFailures + 1}
    ORDER BY place DESC LIMIT ${maxFailures}) newest)`
