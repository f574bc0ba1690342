// The store of several gateways: Postgres, plain SQL. All gateways may write at once; the database decides which one has a job.
import { createSerialQueue } from '../../base/serial.ts'
import { type Log, silentLog } from '../../base/log.ts'
import type { ClaimedJob } from '../../model/job.ts'
import { Problem } from '../../core/model/problem.ts'
import { createCapacity } from '../room.ts'
import type { Signal } from '../owners.ts'
import type { Appended, JobReport, NewDelivery, Settlement, StoreHealth } from '../records.ts'
import { bindCalls, buildScript, createPlainWrites, type PlainWrite } from '../plain.ts'
import type { OpenedStore, StoreReader } from '../store.ts'
import { appendBatch, measureRequestBytes } from './append.ts'
import { reserve } from './budgets.ts'
import { createBatches } from './batches.ts'
import { createDatabaseConnections } from './connection.ts'
import { appendAll, drop, pruneStep, settle, sweepStep } from './deliveries.ts'
import { dialect, lockFlows, runScript } from './flow.ts'
import { addTask, claim, requeue, selectHints } from './jobs.ts'
import { endLeases, extendLeases, join, lease, lockouts, noteFailures } from './leases.ts'
import { channel, createListener, type ListenerTimes } from './listener.ts'
import { endJob } from '../endings.ts'
import { locks } from './locks.ts'
import type { Query } from './pool.ts'
import { createReads, sumWaitingBytes } from './reads.ts'
import { quarantine } from './quarantine.ts'
import { report } from './report.ts'
import { isUsual, reportAll, type ReportCall } from './reports.ts'
import { limits, type Limits } from './settings.ts'

export type PostgresOptions = {
  /** `postgres://user:password@host:port/database`. It may contain a password, so no message quotes it. */
  readonly url: string
  /**
   * The current time as an SQL expression, in milliseconds since the epoch. Default: the clock of the database. Tests give the time
   * of their own clock.
   */
  readonly now?: () => string
  /**
   * The maximum number of bytes that may wait. It is read for each delivery, and compared with a figure that is at most one second old. Default:
   * no limit.
   */
  readonly maxWaitingBytes?: () => number
  /** The maximum number of appends that may wait for the database. Default 10,000. */
  readonly maxQueued?: number
  /** How the connection for signals is checked. Tests shorten it. */
  readonly listening?: ListenerTimes
  /** How long locks are held and waited for. Tests shorten it. */
  readonly limits?: Limits
  readonly log?: Log
}

const databaseNow = '(extract(epoch FROM statement_timestamp()) * 1000)::bigint'
const measureEveryMs = 1_000

const plainWrites = createPlainWrites(dialect)
const mayWakeJobs: ReadonlySet<PlainWrite> = new Set(['makeDue', 'tryNow', 'raiseBudget', 'unhold', 'wakeBudgets'])

/** Does not connect: the first call does, and each call after a failure tries again. */
export function createPostgresStore(options: PostgresOptions): OpenedStore {
  const { url, now = () => databaseNow, maxQueued = 10_000, limits: held = limits, log = silentLog } = options
  const { maxWaitingBytes = () => Number.POSITIVE_INFINITY } = options
  const calls = createDatabaseConnections({ url, log, limits: held })
  const { open, query, transaction, check, trouble, close } = calls
  const listener = createListener({ url, query, now, log, times: options.listening })
  const capacity = createCapacity({ maxBytes: maxWaitingBytes, log })
  /** Bytes of appends that have not ended, and of appends that ended after the last measurement began. */
  const unmeasured = { open: 0, ended: 0 }
  let measuredAt = 0
  let node: string | undefined
  const audits = createSerialQueue()

  const appends = createBatches<NewDelivery, Appended>({
    maxInFlight: 2,
    maxQueued,
    toKey: ({ hook, dedupe }) => dedupe && `${hook}\0${dedupe.key}`,
    store: (batch) =>
      batch.some(({ ringSize, cancel }) => ringSize !== undefined || cancel !== undefined)
        ? transaction((session) => appendBatch(session.query, batch, toAppendOptions(batch)))
        : appendBatch(query, batch, toAppendOptions(batch)),
  })

  const toAppendOptions = (batch: readonly Settlement[]) => ({
    now: now(),
    payload: listener.toPayload(toSignals(batch)),
    node,
    lockMs: held.lockMs,
  })

  /** Runs one transaction. Signals it to the other gateways, unless the result is `false` or `moved`: then it wrote nothing. */
  const writeAndSignal = <Result>(
    signals: readonly Signal[],
    write: (query: Query) => Promise<Result>,
  ): Promise<Result> =>
    transaction(async (session) => {
      const result = await write(session.query)
      const payload = listener.toPayload(signals)
      if (payload !== '' && result !== false && result !== 'moved')
        await session.query(`SELECT pg_notify(${channel}, $1)`, payload)
      return result
    })

  // most reports signal nothing: the worker that reports claims the next job of the lane itself
  const reportAlone = (call: ReportCall) =>
    writeAndSignal(mayFreeOthers(call.what) ? ['jobs'] : [], (own) => report(own, { call, now: now() }))

  /** Two batches would wait for each other: nearly every report writes the row of the main session. */
  const reports = createBatches<ReportCall, boolean>({
    maxInFlight: 1,
    maxQueued: Number.POSITIVE_INFINITY,
    toKey: ({ job }) => job.id,
    store: async (calls) => {
      const payload = listener.toPayload(calls.some(({ what }) => mayFreeOthers(what)) ? ['jobs'] : [])
      const written = await transaction(({ query: own }) => reportAll(own, { calls, now: now(), payload }))
      return calls.map((call, place) => written.has(place) || reportAlone(call))
    },
  })

  /** Runs one transaction, and signals nothing. */
  const writeSilently = <Result>(write: (own: Query) => Promise<Result>): Promise<Result> =>
    transaction((session) => write(session.query))

  const plain = bindCalls(plainWrites, (name, args) => {
    const write = async (own: Query) => {
      await locks[name]?.(own, args)
      return await runScript(own, buildScript(plainWrites, name, args), now())
    }
    return mayWakeJobs.has(name) ? writeAndSignal(['jobs'], write) : writeSilently(write)
  })

  /** Measures the waiting bytes, except in a store without a limit. */
  async function measure(): Promise<void> {
    if (maxWaitingBytes() === Number.POSITIVE_INFINITY || performance.now() - measuredAt < measureEveryMs) return
    measuredAt = performance.now()
    const { ended } = unmeasured
    const bytes = await sumWaitingBytes(query)
    unmeasured.ended -= ended
    capacity.update(bytes)
  }

  /** Writes deliveries, unless too much waits in the store. */
  async function writeWithin<Result>(
    deliveries: readonly NewDelivery[],
    write: () => Promise<Result>,
  ): Promise<Result> {
    await measure()
    const bytes = deliveries.reduce((total, delivery) => total + measureOwnWaitingBytes(delivery), 0)
    const refusal = capacity.checkAppend(bytes, unmeasured.open + unmeasured.ended)
    if (refusal !== undefined) throw refusal
    unmeasured.open += bytes
    try {
      return await write()
    } finally {
      unmeasured.open -= bytes
      unmeasured.ended += bytes
    }
  }

  const readNow = async () => Number((await query(`SELECT ${now()} AS now`))[0]?.['now'])

  async function sweep(olderThanMs: number): Promise<number> {
    const before = (await readNow()) - olderThanMs
    let total = 0
    for (let after: number | undefined = 0; after !== undefined;) {
      const from: number = after
      const step = await transaction((session) => sweepStep(session.query, { before, after: from, now: now() }), {
        pace: 'patient',
      })
      total += step.count
      after = step.after
    }
    while ((await transaction((session) => pruneStep(session.query, before, now()), { pace: 'patient' })) > 0);
    return total
  }

  return {
    ...createReads(calls, now),
    ...plain,
    ready: async () => {
      try {
        await open()
      } catch (error) {
        if (!(error instanceof Problem) || error.code !== 'store-unavailable') throw error
      }
    },
    // the claim may reach the server first, on another connection
    claimsAppended: () => false,
    append: (delivery) => writeWithin([delivery], () => appends.add(delivery)),
    appendAll: (deliveries, moves) =>
      writeWithin(deliveries, () =>
        writeAndSignal(toSignals(deliveries), (own) =>
          appendAll(own, { deliveries, moves, now: now(), node, lockMs: held.lockMs }),
        ),
      ),
    quarantine: (requests, bounds) => writeSilently((own) => quarantine(own, { requests, bounds, now: now() })),
    settle: (id, settlement, moves) =>
      writeAndSignal(toSignals([settlement]), (own) => settle(own, { id, settlement, moves, now: now() })),
    claim: async ({ limit, leaseMs, limits = {}, only, onEnded }) => {
      const jobs: ClaimedJob[] = []
      // new jobs of flows are sorted in small transactions
      for (let isSorted = false; !isSorted;) {
        const given = { limit: limit - jobs.length, leaseMs, limits, only, now: now() }
        const step = await transaction((session) => claim(session.query, given, session.first), {
          first: selectHints(given),
        }).catch((error: unknown) => {
          if (jobs.length === 0) throw error
        })
        // the jobs of earlier rounds are leased: if they were not returned, nobody would run them until their leases end
        if (step === undefined) break
        jobs.push(...step.jobs)
        if (step.ended.length > 0) onEnded?.(step.ended)
        isSorted = step.isSorted
      }
      return jobs
    },
    report: (job, what) => (isUsual(what) ? reports.add({ job, what }) : reportAlone({ job, what })),
    reserve: (job, reservations) => writeSilently((own) => reserve(own, { job, reservations, now: now() })),
    // only one connection waits for the entries of other gateways
    audit: (entry) => audits(() => plain.audit(entry)),
    addTask: (task) => writeAndSignal(['jobs'], (own) => addTask(own, task, now())),
    requeue: (id) => writeAndSignal(['jobs'], (own) => requeue(own, id, now())),
    endJob: (id, ending) =>
      writeAndSignal(['jobs'], async (own) => {
        await lockFlows(own, 'id = $1', id)
        return (await runScript(own, endJob(id, ending, dialect), now())).result
      }),
    drop: (id) => writeSilently((own) => drop(own, id, now())),
    sweep,
    now: readNow,
    lease: (given) => writeSilently((own) => lease(own, { ...given, now: now() })),
    extendLeases: (leases, leaseMs) => writeSilently((own) => extendLeases(own, { leases, leaseMs, now: now() })),
    endLeases: (leases) => writeSilently((own) => endLeases(own, leases)),
    join: async (joining) => {
      await writeSilently((own) => join(own, joining, now()))
      node = joining.id
    },
    leave: async (id) => {
      await writeSilently((own) => own('DELETE FROM nodes WHERE id = $1', id))
    },
    noteFailures: (given) => writeSilently((own) => noteFailures(own, given, now())),
    lockouts: (scope) => lockouts(query, scope, now()),
    subscribe: listener.subscribe,
    health: async (): Promise<StoreHealth> => {
      const facts = { postgres: await check().catch(() => 'unknown'), waiting: appends.waiting() }
      return {
        engine: 'postgres',
        trouble: trouble() ?? capacity.trouble(),
        warning: capacity.warning() ?? listener.warning(),
        facts,
      }
    },
    close: async () => {
      listener.close()
      await close()
    },
  }
}

/**
 * Reads a store, whether gateways are running or not. Calls reject with `config-missing` if no gateway has used the database yet,
 * with `config-invalid` if its schema is another one, and with `store-unavailable` if it cannot be read.
 */
export function createPostgresReader({ url }: { url: string }): StoreReader {
  const { close, ...calls } = createDatabaseConnections({ url, prepare: 'check', maxConnections: 2 })
  return { ...createReads(calls, () => databaseNow), close }
}

/** Whether another job may be claimed after a report, even if the reported job has not ended. */
function mayFreeOthers({ outcome, leavesLane, settled }: JobReport): boolean {
  return outcome?.kind === 'release' || leavesLane === true || settled !== undefined
}

function toSignals(batch: readonly Pick<Settlement, 'state' | 'jobs' | 'cancel'>[]): Signal[] {
  const waits = batch.some(({ state }) => state === 'pending' || state === 'parked')
  const queues = batch.some(({ jobs, cancel }) => cancel !== undefined || jobs.some(({ state }) => state === 'queued'))
  return [...(queues ? (['jobs'] as const) : []), ...(waits ? (['waiting'] as const) : [])]
}

/** The bytes of a delivery that will wait: its request while it is pending or parked, and the plans of its queued jobs. */
function measureOwnWaitingBytes({ state, request, jobs }: NewDelivery): number {
  const own = state === 'pending' || state === 'parked' ? measureRequestBytes(request) : 0
  const queued = jobs.filter((job) => job.state === 'queued')
  return own + queued.reduce((total, { planned }) => total + Buffer.byteLength(JSON.stringify(planned)), 0)
}
