/** Kept requests that a replay takes, if nothing else is asked for, and the most that it takes. */
export const usualReplays = 50
export const mostReplays = 1_000
