// Cursors: named texts. A cursor changes only if it has the expected value, and in one transaction with the rows that it belongs to.

/**
 * A move of a cursor. The value of a cursor is a position in an external sequence, such as the history id of a mailbox. The move is stored with the
 * deliveries that were read from `from` up to `to`. `from` is undefined if the cursor was never set.
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

/** The moves in the order of the names: two transactions that lock in the same order cannot wait for each other. */
export function listMoves(moves: CursorMoves): CursorMove[] {
  return [moves].flat().toSorted((one, other) => (one.name < other.name ? -1 : 1))
}

/**
 * If the name of a cursor begins with one of these prefixes, the first word of its value is a moment in milliseconds since the epoch. After this
 * moment, a sweep deletes the cursor.
 */
export const oncePrefix = 'once/'
export const statePrefix = 'state/'
/** The prefix of cursors that name the task that may set a commit status: see jobs/steps/status.ts. */
export const statusPrefix = 'status/'
export const expiringPrefixes = [oncePrefix, statePrefix, statusPrefix] as const
