/** The number of kept requests that a replay runs by default. */
export const defaultReplays = 50
export const maxReplays = 1_000
