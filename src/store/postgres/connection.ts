// The connections. The only file that imports `pg`. No statement is prepared by name and nothing is set for a session, so a
// pooler may give each transaction another connection.
import { type CustomTypesConfig, Pool, types as standardTypes } from 'pg'
import { toShownDatabase } from '../../base/postgres-url.ts'
import { type Log, silentLog } from '../../model/log.ts'
import { Problem } from '../../model/problem.ts'
import type { Row } from '../rows.ts'
import { toStoredText, unavailable } from '../rules.ts'
import { checkVersion, migrate } from './migrations.ts'

type Scalar = string | number | boolean | Uint8Array | null | undefined
export type Param = Scalar | readonly Scalar[]
export type Query = (sql: string, ...params: readonly Param[]) => Promise<Row[]>
/** Statements of one transaction. */
export type Session = { readonly query: Query }

export type Connections = {
  /**
   * Connects, and prepares the database once: the first call of the others does it too. Rejects with `store-unavailable`, or with
   * `config-invalid` if this program must not use the database.
   */
  open(): Promise<void>
  /** One statement. */
  readonly query: Query
  /** Several statements, all or none. A conflict with another transaction runs it again, so it must not act outside of the store. */
  transaction<Result>(run: (session: Session) => Promise<Result>): Promise<Result>
  trouble(): string | undefined
  close(): Promise<void>
}

export type ConnectionOptions = {
  readonly url: string
  /**
   * What happens before the first statement. Default `migrate`. With the others, each statement is a read-only transaction, and
   * errors are for the operator and name the database.
   */
  readonly prepare?: 'migrate' | 'check' | 'nothing'
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

export function createConnections(options: ConnectionOptions): Connections {
  const { url, prepare: how = 'migrate', maxConnections = 8, log = silentLog } = options
  const shown = toShownDatabase(url)
  const readOnly = how !== 'migrate'
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
    // a connection that is cut while it has no statement: the next statement rejects, and without a listener the process would end
    const onCut = (error: Error) => void (broken = error)
    client.on('error', onCut)
    try {
      return await run(async (sql, ...params) => (await client.query(sql, params.map(toParam))).rows as Row[])
    } catch (error) {
      if (error instanceof Error && !isOfStatement(error)) broken = error
      throw error
    } finally {
      client.off('error', onCut)
      client.release(broken)
    }
  }

  function inTransaction<Result>(run: (session: Session) => Promise<Result>): Promise<Result> {
    return withClient(async (query) => {
      await query(readOnly ? 'BEGIN READ ONLY' : 'BEGIN')
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

  /** Prepares once, before the first call, and again after a failure. */
  function open(): Promise<void> {
    opening ??= retryConflicts(() => inTransaction(({ query }) => prepare(query, how, shown))).catch(
      (error: unknown) => {
        opening = undefined
        if (!(error instanceof Problem)) throw toUnreachable(error)
        if (error.code === 'config-invalid') note(error.message)
        throw error
      },
    )
    return opening
  }

  function toUnreachable(error: unknown): Problem {
    const detail = `Postgres at ${shown} cannot be used: ${toWhy(error)}.`
    note(detail)
    return unavailable(readOnly ? detail : 'The store cannot be reached now.', 5, error)
  }

  async function use<Result>(run: () => Promise<Result>): Promise<Result> {
    await open().catch((error: unknown) => {
      // a sender reads it: only the log names the database and what is wrong with it
      const isOwn = !readOnly && error instanceof Problem && error.code === 'config-invalid'
      throw isOwn ? unavailable('The store cannot be used now.', 30, error) : error
    })
    try {
      const result = await run()
      note(undefined)
      return result
    } catch (error) {
      if (error instanceof Problem) throw error
      // the message of Postgres may quote values of the row
      if (isOfStatement(error)) throw unavailable('The store cannot write this.', 5, `SQLSTATE ${toCode(error)}`)
      throw toUnreachable(error)
    }
  }

  const transaction: Connections['transaction'] = (run) => use(() => retryConflicts(() => inTransaction(run)))
  return {
    open,
    query: (sql, ...params) =>
      readOnly
        ? transaction(({ query }) => query(sql, ...params))
        : use(() => withClient((query) => query(sql, ...params))),
    transaction,
    trouble: () => trouble,
    async close() {
      isClosed = true
      await pool.end()
    },
  }
}

async function prepare(query: Query, how: NonNullable<ConnectionOptions['prepare']>, shown: string): Promise<void> {
  if (how === 'nothing') return
  if (how === 'check') return checkVersion(query, shown)
  const [row] = await query('SHOW synchronous_commit')
  if (row?.['synchronous_commit'] === 'off') {
    throw new Problem(
      'config-invalid',
      `In ${shown}, synchronous_commit is off for this user, so Postgres would lose deliveries that were answered 200. ` +
        'Set it to on, for example: ALTER ROLE … SET synchronous_commit = on.',
    )
  }
  await migrate(query, shown)
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

/**
 * True: Postgres refused the statement, and the connection works. The classes left out are about the connection, the user, the
 * server, and a database that lacks a table or a permission; 25006 is a server that became read-only in a failover.
 */
function isOfStatement(error: unknown): boolean {
  const code = toCode(error)
  return code !== undefined && /^[0-9A-Z]{5}$/.test(code) && !/^(08|25006|28|3D|42|53|57|58|XX)/.test(code)
}

/** Why a database cannot be used, and the next step. The messages of Postgres are left out: some quote values. */
const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there. Start Postgres, or correct store.url',
  ENOTFOUND: 'its host name is unknown. Correct store.url',
  EAI_AGAIN: 'its host name cannot be looked up now',
  ENOENT: 'there is no such socket. Start Postgres, or correct store.url',
  '25006': 'it is read-only. Wait for the end of the failover, or correct store.url to name the primary',
  '28P01': 'it refuses the password of the user in store.url',
  '28000': 'it refuses the user in store.url. Check pg_hba.conf',
  '3D000': 'the database does not exist. Create it, or correct store.url',
  '3F000': 'no schema of the search_path exists. Create one',
  '42501': 'the user in store.url may not use it. Grant the user CREATE on its schema, and all rights on its tables',
  '42P01': 'a table of the store is missing. Restore the database from a backup',
  '53300': 'it has no free connection. Increase max_connections, or put pgBouncer in front',
  '57P03': 'it is starting or shutting down',
}

export function toWhy(error: unknown): string {
  const code = toCode(error)
  if (code !== undefined) return reasons[code] ?? `it reports ${code}`
  const isLate = error instanceof Error && /timeout/i.test(error.message)
  return isLate ? 'it does not answer in time' : 'the connection was lost'
}
