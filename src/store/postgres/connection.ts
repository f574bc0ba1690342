// The connections. The only file that imports `pg`. No statement is prepared by name and nothing is set for a session, so a
// pooler may give each transaction another connection.
import { type CustomTypesConfig, Pool, types as standardTypes } from 'pg'
import { type Log, silentLog } from '../../model/log.ts'
import { Problem } from '../../model/problem.ts'
import type { Row } from '../rows.ts'
import { toStoredText, unavailable } from '../rules.ts'
import { migrate } from './migrations.ts'

type Scalar = string | number | boolean | Uint8Array | null | undefined
export type Param = Scalar | readonly Scalar[]
export type Query = (sql: string, ...params: readonly Param[]) => Promise<Row[]>
/** Statements of one transaction. */
export type Session = { readonly query: Query }

export type Connections = {
  /** One statement. */
  readonly query: Query
  /** Several statements, all or none. A conflict with another transaction runs it again, so it must not act outside of the store. */
  transaction<Result>(run: (session: Session) => Promise<Result>): Promise<Result>
  trouble(): string | undefined
  close(): Promise<void>
}

export type ConnectionOptions = {
  readonly url: string
  /** The most connections. Default 8. */
  readonly maxConnections?: number
  readonly log?: Log
}

/** A statement that takes longer is given up, and its connection is closed: the network may have lost it. */
const queryMs = 30_000
const connectMs = 5_000
const mostConflicts = 5

/** Serialization failure, deadlock, and a unique index that another transaction filled first. */
const conflicts: ReadonlySet<unknown> = new Set(['40001', '40P01', '23505'])

const int8 = 20
const types: CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === int8 ? Number : standardTypes.getTypeParser(oid, format ?? 'text'),
}

export function createConnections({ url, maxConnections = 8, log = silentLog }: ConnectionOptions): Connections {
  const pool = new Pool({
    connectionString: url,
    max: maxConnections,
    types,
    connectionTimeoutMillis: connectMs,
    query_timeout: queryMs,
    keepAlive: true,
    application_name: 'hookloom',
  })
  let trouble: string | undefined
  let isClosed = false
  let opening: Promise<void> | undefined
  // an idle connection that is cut off: the pool makes another one
  pool.on('error', () => {})

  const note = (now: string | undefined) => {
    if (now === trouble) return
    trouble = now
    if (now === undefined) log.info({}, 'The store can be used again.')
    else log.error({}, now)
  }

  async function withClient<Result>(run: (query: Query) => Promise<Result>): Promise<Result> {
    if (isClosed) throw unavailable('The store is closed.', 5)
    const client = await pool.connect()
    let broken: Error | undefined
    try {
      return await run(async (sql, ...params) => (await client.query(sql, params.map(toParam))).rows as Row[])
    } catch (error) {
      if (error instanceof Error && !isOfStatement(error)) broken = error
      throw error
    } finally {
      client.release(broken)
    }
  }

  function inTransaction<Result>(run: (session: Session) => Promise<Result>): Promise<Result> {
    return withClient(async (query) => {
      await query('BEGIN')
      try {
        const result = await run({ query })
        await query('COMMIT')
        return result
      } catch (error) {
        if (isOfStatement(error) || error instanceof Problem) await query('ROLLBACK')
        throw error
      }
    })
  }

  /** Migrates once, before the first call, and again after a failure. */
  function open(): Promise<void> {
    opening ??= retryConflicts(() => inTransaction(prepare)).catch((error: unknown) => {
      opening = undefined
      throw error
    })
    return opening
  }

  async function use<Result>(run: () => Promise<Result>): Promise<Result> {
    try {
      await open()
      const result = await run()
      note(undefined)
      return result
    } catch (error) {
      if (error instanceof Problem) throw error
      // the message of Postgres may quote values of the row
      const code = toCode(error)
      if (isOfStatement(error)) throw unavailable('The store cannot write this.', 5, `SQLSTATE ${code}`)
      const detail = `The store cannot be reached: ${code ?? 'the connection to Postgres was lost'}.`
      note(detail)
      throw unavailable(detail, 5, error)
    }
  }

  return {
    query: (sql, ...params) => use(() => withClient((query) => query(sql, ...params))),
    transaction: (run) => use(() => retryConflicts(() => inTransaction(run))),
    trouble: () => trouble,
    async close() {
      isClosed = true
      await pool.end()
    },
  }
}

async function prepare(session: Session): Promise<void> {
  const [row] = await session.query('SHOW synchronous_commit')
  if (row?.['synchronous_commit'] === 'off') {
    throw new Problem(
      'config-invalid',
      'synchronous_commit is off for this database or role, so Postgres would lose deliveries that were answered 200. ' +
        'Set it to on: ALTER ROLE … SET synchronous_commit = on.',
    )
  }
  await migrate(session.query)
}

async function retryConflicts<Result>(run: () => Promise<Result>): Promise<Result> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await run()
    } catch (error) {
      if (!conflicts.has(toCode(error)) || failures === mostConflicts) throw error
    }
  }
}

function toParam(param: Param): unknown {
  if (typeof param === 'string') return toStoredText(param)
  if (Array.isArray(param)) return param.map(toParam)
  if (param instanceof Uint8Array) return Buffer.from(param.buffer, param.byteOffset, param.byteLength)
  return param
}

function toCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/** True: Postgres refused the statement, and the connection works. Classes 08, 53, 57 and 58 are about the connection or the server. */
function isOfStatement(error: unknown): boolean {
  const code = toCode(error)
  return code !== undefined && /^[0-9A-Z]{5}$/.test(code) && !/^(08|53|57|58|XX)/.test(code)
}
