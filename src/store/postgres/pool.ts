// The connections of a gateway. Each wait for a connection and each statement on it has a time limit. A connection that exceeds the limit is
// destroyed and replaced. Nothing is set for a session, and behind a pooler no statement has a name (naming.ts), so a pooler may use another
// connection for each transaction.
import { callbackify } from 'node:util'
import {
  type ClientBase,
  type ClientConfig,
  type CustomTypesConfig,
  Pool,
  type PoolClient,
  types as standardTypes,
} from 'pg'
import type { Row } from '../rows.ts'
import { toStoredText, storeUnavailable } from '../rules.ts'
import { DatabaseClient } from './client.ts'
import { isStatementError, PoolExhausted } from './errors.ts'
import { createNaming } from './naming.ts'

type Scalar = string | number | boolean | Uint8Array | null | undefined
export type Param = Scalar | readonly Scalar[]
/** Resolves to the rows of the statement. A text without parameters may have several statements: it resolves to the rows of the last one. */
export type Query = (sql: string, ...params: readonly Param[]) => Promise<Row[]>

type ClientPool = {
  /**
   * Calls `run` with a connection, whose statements have `answerMs` each. The connection is kept only if it still works. If the server refuses the
   * name of a statement, `run` is called again, so it must not act outside of the store.
   */
  withClient<Result>(answerMs: number, run: (query: Query) => Promise<Result>): Promise<Result>
  /** The number of connections, including those that are being made. */
  count(): number
  /** Rejects the calls that wait for a connection, and destroys all connections: the statements on them reject. */
  cut(error: unknown): void
  close(): Promise<void>
}

/** How long a call waits for a connection, new or free. */
const connectMs = 5_000
/** The statements that may wait for a connection. Each one keeps a request in memory, whose body may be large. */
const maxWaiting = 2_000
/** The time in which statements may still end before their connections are destroyed. */
const closeMs = 3_000

const int8 = 20
const types: CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === int8 ? Number : standardTypes.getTypeParser(oid, format ?? 'text'),
}

type Waiter = { admit(): void; fail(error: unknown): void }

/** `verify` rejects if a new connection must not be used. It has `verifyMs` to decide. */
export function createClientPool(options: {
  readonly url: string
  readonly maxConnections: number
  readonly verify: (query: Query) => Promise<unknown>
  readonly verifyMs: number
  /** Called when a statement was answered. */
  readonly onAnswer: () => void
}): ClientPool {
  const { url, maxConnections, verify, verifyMs, onAnswer } = options
  const clients = new Set<DatabaseClient>()
  const waiting = new Set<Waiter>()
  const naming = createNaming()
  let busy = 0
  let isClosed = false

  class OwnClient extends DatabaseClient {
    constructor(config: ClientConfig = {}) {
      super(config)
      clients.add(this)
      this.once('end', () => clients.delete(this))
    }
  }
  const pool = new Pool({
    connectionString: url,
    max: maxConnections,
    types,
    Client: OwnClient,
    connectionTimeoutMillis: connectMs,
    keepAlive: true,
    application_name: 'hookloom',
    verify: callbackify(async (client: ClientBase) => void (await verify(bindQuery(client, verifyMs)))),
  })
  // an idle connection was lost: the pool makes another one
  pool.on('error', () => {})

  /** Waits until a connection may be used. Calls wait in order of arrival. */
  function acquireSlot(): Promise<void> {
    if (isClosed) throw storeUnavailable('The store is closed.', 5)
    if (busy < maxConnections) {
      busy += 1
      return Promise.resolve()
    }
    if (waiting.size >= maxWaiting) throw storeUnavailable('The store cannot keep up: its queue is full.', 1)
    return new Promise((resolve, reject) => {
      const end = (settle: () => void) => {
        clearTimeout(late)
        waiting.delete(wait)
        settle()
      }
      const wait: Waiter = { admit: () => end(resolve), fail: (error) => end(() => reject(error)) }
      const late = setTimeout(() => wait.fail(new PoolExhausted('no connection became free')), connectMs)
      waiting.add(wait)
    })
  }

  function releaseSlot(): void {
    const [next] = waiting
    if (next === undefined) busy -= 1
    else next.admit()
  }

  function cut(error: unknown): void {
    for (const wait of waiting) wait.fail(error)
    for (const client of clients) client.destroy()
  }

  async function runOnce<Result>(answerMs: number, run: (query: Query) => Promise<Result>): Promise<Result> {
    // throws at once if a file that the URL names cannot be read
    return await runOn(await pool.connect(), (client) => run(bindNamed(client, answerMs)))
  }

  function bindNamed(client: ClientBase, answerMs: number): Query {
    const plain = bindQuery(client, answerMs, onAnswer)
    if (!(client instanceof DatabaseClient)) return plain
    const findName = naming.start(client, plain)
    return async (sql, ...params) => {
      const name = await findName(sql)
      if (name === undefined) return await plain(sql, ...params)
      try {
        return await bindQuery(client, answerMs, onAnswer, name)(sql, ...params)
      } catch (error) {
        naming.noteError(error)
        throw error
      }
    }
  }

  return {
    async withClient(answerMs, run) {
      await acquireSlot()
      try {
        return await runOnce(answerMs, run).catch((error: unknown) => {
          if (!naming.isRefusal(error)) throw error
          return runOnce(answerMs, run)
        })
      } finally {
        releaseSlot()
      }
    },
    count: () => pool.totalCount,
    cut,
    async close() {
      isClosed = true
      const late = setTimeout(() => cut(storeUnavailable('The store is closed.', 5)), closeMs)
      await pool.end()
      clearTimeout(late)
    },
  }
}

/** Connects outside the pool, and calls `run` with the connection. Each statement has `limitMs`. */
export async function withNewClient<Result>(
  { url, limitMs }: { readonly url: string; readonly limitMs: number },
  run: (query: Query) => Promise<Result>,
): Promise<Result> {
  const client = new DatabaseClient({
    connectionString: url,
    types,
    connectionTimeoutMillis: limitMs,
    application_name: 'hookloom',
  })
  try {
    await client.connect()
    return await run(bindQuery(client, limitMs))
  } finally {
    void client.end()
  }
}

/** Gives the connection back, or destroys it if it may not work any more. */
async function runOn<Result>(client: PoolClient, run: (client: PoolClient) => Promise<Result>): Promise<Result> {
  let broken: Error | undefined
  // the connection may be lost while no statement runs on it
  const onCut = (error: Error) => void (broken = error)
  client.on('error', onCut)
  try {
    return await run(client)
  } catch (error) {
    if (error instanceof Error && !isStatementError(error)) broken = error
    throw error
  } finally {
    client.off('error', onCut)
    client.release(broken)
  }
}

function bindQuery(client: ClientBase, answerMs: number, onAnswer = () => {}, name?: string): Query {
  return async (text, ...params) => {
    const query = { name, text, values: params.map(toParam), query_timeout: answerMs }
    const answer = await client.query<Row>(query)
    onAnswer()
    // as: the answer to a text with several statements is an array, which the types of pg leave out
    const results = [answer].flat() as readonly (typeof answer)[]
    return results.at(-1)?.rows ?? []
  }
}

function toParam(param: Param): unknown {
  if (typeof param === 'string') return toStoredText(param)
  if (Array.isArray(param)) return param.map(toParam)
  if (param instanceof Uint8Array) return Buffer.from(param.buffer, param.byteOffset, param.byteLength)
  return param
}
