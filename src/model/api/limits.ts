/** The number of kept requests that a replay runs by default. */
export const defaultReplays = 50
export const maxReplays = 1_000
/** The length of a module that the bench shows and tries. */
export const maxCodeChars = 200_000
/** The longest wait for a delivery: fourteen days. */
export const maxAwaitSeconds = 1_209_600
