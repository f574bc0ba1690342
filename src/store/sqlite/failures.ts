// The failed attempts of a job, as SQL.
import { maxFailureChars, maxFailures } from '../rules.ts'

/** Adds an attempt to `failures` of `jobs`; of `maxFailures` attempts, the oldest is removed. `at`, `error`: parameters. Damaged JSON is replaced, because it must not prevent a claim. */
export const addFailure = (at: string, error: string): string => `failures = json_insert(
  CASE WHEN json_valid(failures) IS NOT 1 THEN '[]'
    WHEN json_array_length(failures) >= ${maxFailures} THEN json_remove(failures, '$[0]') ELSE failures END,
  '$[#]', json_object('at', ${at}, 'error', substr(${error}, 1, ${maxFailureChars})))`
