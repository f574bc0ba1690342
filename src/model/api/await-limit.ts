/** The longest wait for a delivery: fourteen days. */
export const maxAwaitSeconds = 1_209_600
