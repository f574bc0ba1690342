// The connections. The only file that imports `pg`. No statement is prepared by name and nothing is set for a session, so a
// pooler may give each transaction another connection.
import { callbackify } from 'node:util'
import { type ClientBase, type CustomTypesConfig, Pool, types as standardTypes } from 'pg'
import { toShownDatabase } from '../../base/postgres-url.ts'
import { type Log, silentLog } from '../../model/log.ts'
import { Problem } from '../../model/problem.ts'
import type { Row } from '../rows.ts'
import { toStoredText, unavailable } from '../rules.ts'
import {
  isConflict,
  isOfStatement,
  PoolExhausted,
  readOnlyCode,
  Refused,
  toCause,
  toCode,
  toWhy,
  UnfitDatabase,
} from './errors.ts'
import { checkVersion, migrate } from './migrations.ts'
import { type Limits, limits, readSettings, toBegin } from './settings.ts'

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
  /** The version of the server. Sees whether it can be written, unlike a statement that reads. */
  check(): Promise<string>
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
  /** For each transaction. Default: none, as for a copy, which holds its locks until it is complete. */
  readonly limits?: Limits | undefined
  /** The time of a statement. Default 30 s. */
  readonly queryMs?: number
  readonly log?: Log
}

/** A statement that takes longer is given up, and its connection is closed: the network may have lost it. */
const queryMs = 30_000
const connectMs = 5_000
const mostConflicts = 5

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
    query_timeout: options.queryMs ?? queryMs,
    keepAlive: true,
    application_name: 'hookloom',
    verify: callbackify(async (client: ClientBase) => void (await check(toQuery(client)))),
  })
  let trouble: string | undefined
  /** Statements that read succeed on a standby, so they do not end this trouble. */
  let cannotWrite = false
  /** Connections that the database accepted. */
  let connected = 0
  let isClosed = false
  let opening: Promise<void> | undefined
  // an idle connection that is cut off: the pool makes another one
  pool.on('error', () => {})
  pool.on('connect', () => void (connected += 1))
  pool.on('remove', () => void (connected -= 1))

  const note = (now: string | undefined) => {
    if (now === trouble) return
    trouble = now
    if (now === undefined) log.info({}, 'The store can be used again.')
    else log.error({}, now)
  }

  /** A gateway must not use a server that cannot be written, or that would lose what it wrote. Returns the version. */
  async function check(query: Query): Promise<string> {
    if (readOnly) return ''
    const { version, isReadOnly, faults } = await readSettings(query)
    if (isReadOnly) throw Object.assign(new Error('read-only'), { code: readOnlyCode })
    if (faults.length > 0) throw new UnfitDatabase(`In ${shown}, ${faults.join(' ')}`)
    return version
  }

  async function withClient<Result>(run: (query: Query) => Promise<Result>): Promise<Result> {
    if (isClosed) throw unavailable('The store is closed.', 5)
    const client = await pool.connect().catch((error: Error) => {
      const isExhausted = error.message === 'timeout exceeded when trying to connect' && connected >= maxConnections
      throw isExhausted ? new PoolExhausted(error.message) : error
    })
    let broken: Error | undefined
    // a connection that is cut while it has no statement: the next statement rejects, and without a listener the process would end
    const onCut = (error: Error) => void (broken = error)
    client.on('error', onCut)
    try {
      return await run(toQuery(client))
    } catch (error) {
      if (error instanceof Error && !isOfStatement(error)) broken = error
      throw error
    } finally {
      client.off('error', onCut)
      client.release(broken)
    }
  }

  function inTransaction<Result>(
    run: (session: Session) => Promise<Result>,
    own: Limits | undefined = options.limits,
  ): Promise<Result> {
    return withClient(async (query) => {
      await query(toBegin(readOnly, own))
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
    opening ??= retryConflicts(() =>
      inTransaction(({ query }) => prepare(query, how, shown), options.limits ?? limits),
    ).catch((error: unknown) => {
      opening = undefined
      if (!(error instanceof Problem)) throw toUnreachable(error)
      if (error.code === 'config-invalid') note(error.message)
      throw error
    })
    return opening
  }

  function toUnreachable(error: unknown): Problem {
    const detail = `Postgres at ${shown} cannot be used: ${toWhy(error)}.`
    cannotWrite = toCode(error) === readOnlyCode
    note(detail)
    return unavailable(readOnly ? detail : 'The store cannot be reached now.', 5, toCause(error))
  }

  /** A sender reads it: only the log names the database and what is wrong with it. */
  function toSender(error: unknown): unknown {
    if (readOnly || !(error instanceof Problem) || error.code !== 'config-invalid') return error
    note(error.message)
    return unavailable('The store cannot be used now.', 30, error)
  }

  async function endTrouble(): Promise<void> {
    if (cannotWrite && (await withClient(check).catch(() => undefined)) === undefined) return
    cannotWrite = false
    note(undefined)
  }

  async function use<Result>(run: () => Promise<Result>): Promise<Result> {
    try {
      await open().catch((error: unknown) => {
        throw toSender(error)
      })
      const result = await run()
      await endTrouble()
      return result
    } catch (error) {
      if (error instanceof Problem) throw error instanceof UnfitDatabase ? toSender(error) : error
      // the message of Postgres may quote values of the row
      if (isOfStatement(error)) throw unavailable('The store cannot write this.', 5, new Refused(error))
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
    check: () => use(() => withClient(check)),
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
  await migrate(query, shown)
}

async function retryConflicts<Result>(run: () => Promise<Result>): Promise<Result> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await run()
    } catch (error) {
      if (!isConflict(error) || failures === mostConflicts) throw error
    }
  }
}

function toQuery(client: ClientBase): Query {
  return async (sql, ...params) => (await client.query(sql, params.map(toParam))).rows as Row[]
}

function toParam(param: Param): unknown {
  if (typeof param === 'string') return toStoredText(param)
  if (Array.isArray(param)) return param.map(toParam)
  if (param instanceof Uint8Array) return Buffer.from(param.buffer, param.byteOffset, param.byteLength)
  return param
}
