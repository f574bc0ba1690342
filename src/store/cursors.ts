// Cursors: named texts that move only from a known value, in the transaction of the rows that they belong to.

/**
 * A step of a cursor: a position in an external sequence, such as the history id of a mailbox. It is stored with the deliveries
 * read up to it. `from`: the value from which they were read; undefined if the cursor was never set.
 */
export type CursorMove = {
  readonly name: string
  readonly from: string | undefined
  readonly to: string
  /** True: the cursor does not move if every delivery of the call is a duplicate. */
  readonly ifStored?: true
}

/** Several cursors move together or not at all. Each name is given once. */
export type CursorMoves = CursorMove | readonly CursorMove[]

/** The moves in the order of the names, so that two transactions that take their locks in this order cannot wait for each other. */
export function listMoves(moves: CursorMoves): CursorMove[] {
  return [moves].flat().toSorted((one, other) => (one.name < other.name ? -1 : 1))
}

/**
 * Names of cursors that begin with one of these have a moment as the first word of their value, in milliseconds since the epoch. A sweep
 * deletes them after it.
 */
export const oncePrefix = 'once/'
export const statePrefix = 'state/'
/** Begins the names of the cursors that say which task may set a commit status: see jobs/steps/status.ts. */
export const statusPrefix = 'status/'
export const expiringPrefixes = [oncePrefix, statePrefix, statusPrefix] as const
