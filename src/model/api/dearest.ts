import type { DearestRun } from './spending.ts'

/** The run that cost most, and without prices the one with most tokens; of equal ones the first. */
export const findDearest = (runs: readonly DearestRun[]): DearestRun | null =>
  runs.toSorted((one, other) => (other.usd ?? 0) - (one.usd ?? 0) || other.tokens - one.tokens)[0] ?? null
