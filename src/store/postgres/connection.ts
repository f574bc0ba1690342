// Calls to the database. Each call is answered within its time limit or refused. The operator gets the reason, and the sender does not.
import { describeDatabase } from '../../base/postgres-url.ts'
import { type Log, silentLog } from '../../base/log.ts'
import { Problem } from '../../core/model/problem.ts'
import { storeUnavailable } from '../rules.ts'
import {
  isConflict,
  isConnectionError,
  isStatementError,
  readOnlyCode,
  RefusedStatement,
  toCause,
  readSqlState,
  tooManyCode,
  describeError,
  UnfitDatabase,
} from './errors.ts'
import type { Row } from '../rows.ts'
import { checkVersion, isMigrated, migrate } from './migrations.ts'
import { createClientPool, type Query, withNewClient } from './pool.ts'
import { createPresence } from './presence.ts'
import { type Limits, limits, readSettings, toBeginSql, extendLimits } from './settings.ts'

/** Statements of one transaction. `first`: the rows of the statement that it began with. */
type DatabaseSession = { readonly query: Query; readonly first: readonly Row[] }

type TransactionOptions = {
  readonly pace?: Pace
  /** A statement without parameters that is sent with the BEGIN, which saves a round trip. */
  readonly first?: string
}

/** `patient`: the call may visit many rows, so it has more time. */
type Pace = 'usual' | 'patient'

type DatabaseConnections = {
  /**
   * Connects, and prepares the database once. Without `open`, the first call does both. Rejects with `store-unavailable`, or with
   * `config-invalid` if this program must not use the database.
   */
  open(): Promise<void>
  /** Runs one statement. It must only read, or ask for a durable commit itself: otherwise, a write is lost in a crash if `synchronous_commit` is off. */
  readonly query: Query
  readonly patientQuery: Query
  /**
   * Runs several statements, all or none. After a conflict with another transaction, `run` is called again, so it must not act outside of the
   * store.
   */
  transaction<Result>(run: (session: DatabaseSession) => Promise<Result>, options?: TransactionOptions): Promise<Result>
  /** Returns the version of the server. Rejects if the server is read-only, which a statement that only reads does not notice. */
  check(): Promise<string>
  trouble(): string | undefined
  close(): Promise<void>
}

type ConnectionOptions = {
  readonly url: string
  /**
   * How the database is prepared before the first statement. Default `migrate`. With `check` and `nothing`, each statement is a read-only
   * transaction, and errors are for the operator and name the database.
   */
  readonly prepare?: 'migrate' | 'check' | 'nothing'
  /** The maximum number of connections. Default 8. */
  readonly maxConnections?: number
  /** The limits of each transaction. Default: none, as for a copy, which keeps its locks until it is complete. */
  readonly limits?: Limits | undefined
  /** Replaces `limits.answerMs`. */
  readonly answerMs?: number
  readonly log?: Log
}

/** The time limit of a probe of the database, and of a new connection. */
const probeMs = 2_000
/** A call that takes longer may wait for a lock, or for an answer that the network lost: a probe finds out which. */
const doubtMs = 2_000
/** The settings are checked this often, because a server may reload them. */
const checkEveryMs = 1_000
const maxConflicts = 5

export function createDatabaseConnections(options: ConnectionOptions): DatabaseConnections {
  const { url, prepare: how = 'migrate', maxConnections = 8, log = silentLog, limits: ownLimits } = options
  const shown = describeDatabase(url)
  const readOnly = how !== 'migrate'
  const patient = extendLimits(ownLimits ?? limits)
  const usualMs = options.answerMs ?? ownLimits?.answerMs ?? patient.answerMs
  const pool = createClientPool({
    url,
    maxConnections,
    verify: check,
    verifyMs: probeMs,
    onAnswer: () => presence.noteAnswer(),
  })
  const presence = createPresence({ probe, onLost, onFound: () => note(undefined) })
  let trouble: string | undefined
  let opening: Promise<void> | undefined
  let isPrepared = false
  let checkedAt = Number.NEGATIVE_INFINITY
  let rechecking: Promise<unknown> | undefined

  const note = (now: string | undefined) => {
    if (now === trouble) return
    trouble = now
    if (now === undefined) log.info({}, 'The store can be used again.')
    else log.error({}, now)
  }

  /**
   * A gateway must not use a server that is read-only, or that would lose committed rows, or a schema that a newer gateway has migrated since:
   * its rules may be others. Returns the version of the server.
   */
  async function check(query: Query): Promise<string> {
    if (readOnly) return ''
    checkedAt = performance.now()
    const { version, isReadOnly, faults } = await readSettings(query)
    if (isReadOnly) throw Object.assign(new Error('read-only'), { code: readOnlyCode })
    if (faults.length > 0) throw new UnfitDatabase(`In ${shown}, ${faults.join(' ')}`)
    if (isPrepared) await checkNotNewer(query)
    return version
  }

  async function checkNotNewer(query: Query): Promise<void> {
    try {
      await isMigrated(query, shown)
    } catch (error) {
      throw error instanceof Problem ? new UnfitDatabase(error.message) : error
    }
  }

  /** Probes with a new connection: those of the pool may wait for answers that the network lost. */
  async function probe(): Promise<void> {
    try {
      await withNewClient({ url, limitMs: probeMs }, check)
    } catch (error) {
      // the server has no free connection, but this gateway has some
      if (readSqlState(error) !== tooManyCode || pool.count() === 0) throw error
    }
  }

  function onLost(error: unknown): void {
    note(error instanceof Problem ? error.message : describeOutage(error))
    pool.cut(error)
  }

  function inTransaction<Result>(
    run: (session: DatabaseSession) => Promise<Result>,
    given: Limits | undefined,
    answerMs: number,
    first = '',
  ): Promise<Result> {
    return pool.withClient(answerMs, async (query) => {
      try {
        const rows = await query(`${toBeginSql(readOnly, given)}; ${first}`)
        const result = await run({ query, first: rows })
        await query('COMMIT')
        return result
      } catch (error) {
        if (isStatementError(error) || error instanceof Problem) await query('ROLLBACK')
        throw error
      }
    })
  }

  /** Prepares once, before the first call, and again after a failure. */
  function open(): Promise<void> {
    opening ??= prepare().catch((error: unknown) => {
      opening = undefined
      if (!(error instanceof Problem)) throw reportUnreachable(error)
      if (error.code === 'config-invalid') note(error.message)
      throw error
    })
    return opening
  }

  async function prepare(): Promise<void> {
    const prepared = ownLimits ?? limits
    if (how === 'nothing') return
    if (how === 'check') return inTransaction(({ query }) => checkVersion(query, shown), prepared, usualMs)
    if (!(await inTransaction(({ query }) => isMigrated(query, shown), prepared, usualMs)))
      await retryConflicts(() => inTransaction(({ query }) => migrate(query, shown), patient, patient.answerMs))
    isPrepared = true
  }

  function describeOutage(error: unknown): string {
    return `Postgres at ${shown} cannot be used: ${describeError(error)}.`
  }

  function reportUnreachable(error: unknown): Problem {
    const detail = describeOutage(error)
    if (presence.loss() === undefined) {
      note(detail)
      if (!readOnly && readSqlState(error) === readOnlyCode) presence.markLost(error)
      else if (!readOnly && isConnectionError(error)) presence.checkSoon()
    }
    return storeUnavailable(readOnly ? detail : 'The store cannot be reached now.', 5, toCause(error))
  }

  /** Replaces an error of the configuration by a problem that a sender may read: only the log names the database and the reason. */
  function reportUnusable(error: unknown): unknown {
    if (readOnly || !(error instanceof Problem) || error.code !== 'config-invalid') return error
    note(error.message)
    if (error instanceof UnfitDatabase && presence.loss() === undefined) presence.markLost(error)
    return storeUnavailable('The store cannot be used now.', 30, error)
  }

  /** Checks the settings once a second while calls are made. */
  async function recheckSettings(): Promise<void> {
    if (readOnly || performance.now() - checkedAt < checkEveryMs) return
    // the calls that wait for a connection share one check
    rechecking ??= pool.withClient(probeMs, check).finally(() => {
      rechecking = undefined
    })
    await rechecking
  }

  async function runCall<Result>(run: () => Promise<Result>): Promise<Result> {
    const slow = readOnly ? undefined : setTimeout(presence.checkSoon, doubtMs).unref()
    try {
      const lost = presence.loss()
      if (lost !== undefined)
        throw lost.error instanceof Problem ? reportUnusable(lost.error) : reportUnreachable(lost.error)
      await open().catch((error: unknown) => {
        throw reportUnusable(error)
      })
      await recheckSettings()
      const result = await run()
      if (presence.loss() === undefined) note(undefined)
      return result
    } catch (error) {
      if (error instanceof Problem) throw error instanceof UnfitDatabase ? reportUnusable(error) : error
      // the message of Postgres may quote values of the row
      if (isStatementError(error))
        throw storeUnavailable('The store cannot write this.', 5, new RefusedStatement(error))
      throw reportUnreachable(error)
    } finally {
      clearTimeout(slow)
    }
  }

  const transaction: DatabaseConnections['transaction'] = (run, { pace = 'usual', first } = {}) =>
    runCall(() =>
      retryConflicts(() =>
        pace === 'usual'
          ? inTransaction(run, ownLimits, usualMs, first)
          : inTransaction(run, ownLimits && patient, patient.answerMs, first),
      ),
    )
  const createQuery =
    (pace: Pace): Query =>
    (sql, ...params) =>
      readOnly
        ? transaction(({ query }) => query(sql, ...params), { pace })
        : runCall(() =>
            pool.withClient(pace === 'usual' ? usualMs : patient.answerMs, (query) => query(sql, ...params)),
          )
  return {
    open,
    query: createQuery('usual'),
    patientQuery: createQuery('patient'),
    transaction,
    check: () => runCall(() => pool.withClient(probeMs, check)),
    trouble: () => trouble,
    async close() {
      presence.close()
      await pool.close()
    },
  }
}

async function retryConflicts<Result>(run: () => Promise<Result>): Promise<Result> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await run()
    } catch (error) {
      if (!isConflict(error) || failures === maxConflicts) throw error
    }
  }
}
