/** Kept requests that a replay takes, if nothing else is asked for, and the most that it takes. */
export const defaultReplays = 50
export const maxReplays = 1_000
