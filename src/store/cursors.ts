// Cursors: named texts. `appendAll` and `settle` move a cursor only if it has the expected value, in one transaction with the rows that they write.
import { countChanged, run, type Script } from './script.ts'

/**
 * A move of a cursor: a compare and set. A value is, for example, the history id up to which a mailbox was read. `from` is undefined if the store
 * does not have the cursor.
 */
export type CursorMove = {
  readonly name: string
  readonly from: string | undefined
  readonly to: string
  /** True: the cursor does not move if every delivery of the call is a duplicate. */
  readonly ifStored?: true
}

/** If one of several cursors has another value than its `from`, none moves. Each name is given once. */
export type CursorMoves = CursorMove | readonly CursorMove[]

/** The moves in the order of the names: two transactions that lock in the same order cannot wait for each other. */
export function listMoves(moves: CursorMoves): CursorMove[] {
  return [moves].flat().toSorted((one, other) => (one.name < other.name ? -1 : 1))
}

/** Returns whether the cursors moved. If one has another value than its `from`, nothing is written. */
export function* moveCursors(moves: readonly CursorMove[]): Script<boolean> {
  const written: CursorMove[] = []
  for (const move of moves) {
    const { name, from, to } = move
    const moved =
      from === undefined
        ? yield* countChanged('INSERT INTO cursors (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING', name, to)
        : yield* countChanged('UPDATE cursors SET value = $3 WHERE name = $1 AND value = $2', name, from, to)
    if (moved === 0) {
      yield* restoreCursors(written)
      return false
    }
    written.push(move)
  }
  return true
}

/** Undoes the moves of this transaction, which no other transaction has seen. */
export function* restoreCursors(moves: readonly CursorMove[]): Script<void> {
  for (const { name, from } of moves) {
    if (from === undefined) yield* run('DELETE FROM cursors WHERE name = $1', name)
    else yield* run('UPDATE cursors SET value = $2 WHERE name = $1', name, from)
  }
}

/**
 * Moves a cursor to the value that `change` returns, and tries again if another owner moved it in between. Resolves to false, and moves nothing, if
 * `change` returns undefined.
 */
export async function updateCursor(
  store: {
    cursor(name: string): Promise<string | undefined>
    appendAll(deliveries: readonly never[], move: CursorMove): Promise<readonly unknown[] | 'moved'>
  },
  name: string,
  change: (value: string | undefined) => string | undefined,
): Promise<boolean> {
  for (;;) {
    const from = await store.cursor(name)
    const to = change(from)
    if (to === undefined) return false
    if ((await store.appendAll([], { name, from, to })) !== 'moved') return true
  }
}

export const oncePrefix = 'once/'
export const statePrefix = 'state/'
/** The prefix of cursors that name the task that may set a commit status: see jobs/steps/status.ts. */
export const statusPrefix = 'status/'
/** The prefix of cursors that are waits for a delivery: see awaits.ts. */
export const awaitPrefix = 'await/'
/** The prefix of cursors that are values of runners: see runner-state.ts. */
export const runnerPrefix = 'runner/'
/**
 * If the name of a cursor begins with one of these prefixes, the first word of its value is a moment in milliseconds since the epoch. After this
 * moment, a sweep deletes the cursor.
 */
export const expiringPrefixes = [oncePrefix, statePrefix, statusPrefix, awaitPrefix, runnerPrefix] as const
