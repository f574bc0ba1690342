// The failed attempts of a job, as SQL.
import { maxFailureChars, maxFailures } from '../rules.ts'

/**
 * Adds an attempt to `failures` of `jobs`; of `maxFailures` attempts, the oldest is removed. `at`, `error`, `spentMs`: parameters. Damaged JSON is
 * replaced, because it must not prevent a claim.
 */
export const addFailure = (at: string, error: string, spentMs = 'NULL'): string => `failures = json_insert(
  CASE WHEN json_valid(failures) IS NOT 1 THEN '[]'
    WHEN json_array_length(failures) >= ${maxFailures} THEN json_remove(failures, '$[0]') ELSE failures END,
  '$[#]', json_patch('{}', json_object('at', ${at}, 'error', substr(${error}, 1, ${maxFailureChars}), 'spentMs', ${spentMs})))`
