/** A retry that waits for longer was set by a clock that was ahead and has been set back: nobody is asked to wait for more than a day. */
export const clockSetBackMs = 2 * 86_400_000
