// Names for statements, so that the server parses and plans them once for a connection. For most statements, that takes longer than to run them.
// Statements get names only where a connection leads to one process of the server: a pooler may give each transaction another one.
import { createHash } from 'node:crypto'
import type { Row } from '../rows.ts'
import type { DatabaseClient } from './client.ts'
import { isStatementError, readSqlState } from './errors.ts'

/**
 * The beginning of a statement that may get a name. The best plan of such a statement must not depend on its values: it inserts rows, or finds
 * them by a unique key.
 */
export const planOnce = '/* plan once */'

type Send = (sql: string) => Promise<Row[]>

type Naming = {
  /** Returns the function that gives names to the statements of one call on this connection. `send` sends a statement without a name. */
  start(client: DatabaseClient, send: Send): (sql: string) => Promise<string | undefined>
  /** Call it with the error of each statement that had a name. If the name caused it, the statement did not run, and none gets a name from now on. */
  noteError(error: unknown): void
  /** Whether a name caused the error: the call can run again. */
  isRefusal(error: unknown): boolean
}

/**
 * The plans of a connection are discarded after this time, because the server would keep a plan that reads a whole table while the table grows. A
 * connection that was not used for this time gives no names, because it would need a second round trip for them.
 */
const freshMs = 1_000
/** The server keeps the statements of each connection in memory, up to 600 kB for one. The store has fewer than this. */
const maxNames = 64
/** No statement has the name, or another one has it: the connection leads through a pooler. Or a migration changed the type of a result. */
const refusals: ReadonlySet<unknown> = new Set(['26000', '42P05', '0A000'])

export function createNaming(): Naming {
  const names = new Map<string, string>()
  const times = new WeakMap<DatabaseClient, { usedAt: number; plannedAt: number }>()
  const refused = new WeakSet<object>()
  let isOff = false

  function refuse(error: Error): void {
    isOff = true
    refused.add(error)
  }

  async function decide(client: DatabaseClient, send: Send): Promise<boolean> {
    if (isOff) return false
    const now = performance.now()
    const { usedAt, plannedAt } = times.get(client) ?? { usedAt: -Infinity, plannedAt: -Infinity }
    const isBusy = now - usedAt < freshMs
    const isFresh = now - plannedAt < freshMs
    times.set(client, { usedAt: now, plannedAt })
    if (!isBusy || isFresh) return isBusy
    const [row] = await send('DISCARD PLANS; SELECT pg_backend_pid() AS pid').catch((error: unknown) => {
      // a pooler or another server may not know the command: the call runs again without names
      if (error instanceof Error && isStatementError(error)) refuse(error)
      throw error
    })
    times.set(client, { usedAt: now, plannedAt: now })
    // a pooler invents the process id that it tells a client
    if (row?.['pid'] !== client.processID) isOff = true
    return !isOff
  }

  /** A name is a hash of the whole text: where two programs share a connection without knowing it, a name never means another statement. */
  function toName(sql: string): string | undefined {
    const known = names.get(sql)
    if (known !== undefined || names.size === maxNames) return known
    const name = createHash('sha256').update(sql).digest('base64url')
    names.set(sql, name)
    return name
  }

  return {
    start(client, send) {
      let mayName: boolean | undefined
      return async (sql) => {
        if (!sql.startsWith(planOnce)) return undefined
        mayName ??= await decide(client, send)
        return mayName ? toName(sql) : undefined
      }
    },
    noteError(error) {
      if (error instanceof Error && refusals.has(readSqlState(error))) refuse(error)
    },
    isRefusal: (error) => error instanceof Error && refused.has(error),
  }
}
