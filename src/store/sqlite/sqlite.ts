// The embedded store: SQLite in WAL mode with synchronous=FULL. A writer thread commits; this thread only reads.
import { type Log, silentLog } from '../../model/log.ts'
import { Problem } from '../../model/problem.ts'
import type { Clock, Store, StoreHealth, StoreReader } from '../store.ts'
import { createReadConnection, type ReadConnection } from './connection.ts'
import { openMemory } from './memory.ts'
import type { Results, Writer } from './operations.ts'
import { createWriterQueue, spawnWriter } from './queue.ts'
import { createReads } from './reads.ts'
import { toClaimedJob } from './rows.ts'
import { toAddTask, toAppend, toAppendAll, toJobValues, toReport, toSettlementValues } from './values.ts'

/** Rows of one step of a sweep. */
const sweepRows = 500
/** Some 10 ms of inserts, so that nobody behind them waits much longer. */
const mostShared = 1024

/** Milliseconds after which a commit that has not come back is trouble. */
const stalledMs = 5000

export type SqliteOptions = {
  readonly file: string
  readonly clock: Clock
  /** Milliseconds that the writer sleeps before each commit, to imitate a slow disk. Default 0. */
  readonly commitDelayMs?: number
  /** Operations that share a transaction at the most; 1 commits each by itself, to measure what sharing saves. Default 1024. */
  readonly batchLimit?: number
  /** Operations that may wait for the disk; further appends are refused. Default 10,000. */
  readonly maxQueued?: number
  /** Is told when trouble begins and when it ends. */
  readonly log?: Log
  /** Starts the writer thread; tests start it with other options. */
  readonly spawn?: typeof spawnWriter
}

export type SqliteStore = Store & {
  /**
   * Resolves when the file is open, or when it cannot be opened for now: the store goes on trying, and health() says why.
   * Rejects with `store-locked` while another process owns the store, with `config-invalid` when a newer hookloom wrote it.
   */
  ready(): Promise<void>
}

/** Opens nothing yet: the first call does, and each call after a failure tries again. */
export function createSqliteStore(options: SqliteOptions): SqliteStore {
  const { file, clock, commitDelayMs = 0, batchLimit = mostShared, maxQueued = 10_000 } = options
  const { log = silentLog, spawn = spawnWriter } = options
  const connection = createReadConnection(file)
  const writer = createWriterQueue({
    file,
    clock,
    commitDelayMs,
    batchLimit,
    maxQueued,
    maxQueuedBytes: 64 * 1024 * 1024,
    log,
    spawn,
    onOpened: connection.reset,
  })
  return toStore({ connection, writer, clock })
}

/**
 * The same store in memory, for tests and trials: a call commits on the calling thread, without a file and without a disk.
 * It keeps every promise of `Store` but that of surviving the process.
 */
export function createMemoryStore({ clock }: { clock: Clock }): Store {
  return toStore({ ...openMemory(), clock })
}

/**
 * Reads a store's file beside a running gateway, or without one. Its calls throw `config-missing` while there is no file,
 * `config-invalid` when a newer hookloom wrote it, `store-unavailable` when it cannot be read.
 */
export function createSqliteReader({ file }: { file: string }): StoreReader {
  const connection = createReadConnection(file, () => {
    throw new Problem('config-missing', `There is no store at ${file}. Start the gateway once, or check store.file.`)
  })
  return createReads(connection, Date.now)
}

type Parts = { readonly connection: ReadConnection; readonly writer: Writer; readonly clock: Clock }

function toStore({ connection, writer, clock }: Parts): SqliteStore {
  const reads = createReads(connection, clock)

  /** Sweeps step by step; appends that arrive in between go first. */
  async function sweep(before: number): Promise<number> {
    let total = 0
    let after: number | undefined = 0
    while (after !== undefined) {
      const step: Results['sweep'] = await writer.run({ kind: 'sweep', at: clock(), before, after, limit: sweepRows })
      total += step.count
      after = step.after
    }
    while ((await writer.run({ kind: 'prune', at: clock(), before, limit: sweepRows })) > 0);
    return total
  }

  return {
    ...reads,
    ready: async () => {
      try {
        await writer.run({ kind: 'probe' })
      } catch (error) {
        if (!(error instanceof Problem) || error.code !== 'store-unavailable') throw error
      }
    },
    append: async (delivery) => writer.run(toAppend(delivery, clock())),
    appendAll: async (deliveries, cursor) => writer.run(toAppendAll(deliveries, cursor, clock())),
    settle: async (id, settlement) =>
      writer.run({
        kind: 'settle',
        at: clock(),
        id,
        values: toSettlementValues(settlement, clock()),
        jobs: settlement.jobs.map(toJobValues),
      }),
    markDiffering: async (id) => writer.run({ kind: 'differs', id }),
    forget: async ({ hook, key }) => writer.run({ kind: 'forget', hook, key }),
    claim: async ({ limit, leaseMs }) =>
      (await writer.run({ kind: 'claim', at: clock(), limit, leaseMs })).map(toClaimedJob),
    report: async (job, report) => writer.run(toReport(job, report, clock())),
    extend: async (jobs, leaseMs) =>
      writer.run({ kind: 'extend', until: clock() + leaseMs, jobs: jobs.map(({ id, fence }) => ({ id, fence })) }),
    addTask: async (task) => writer.run(toAddTask(task, clock())),
    requeue: async (id) => writer.run({ kind: 'requeue', at: clock(), id }),
    drop: async (id) => writer.run({ kind: 'drop', at: clock(), id }),
    sweep,
    health: async () => {
      if (isStalled()) return toHealth('The store cannot write: the disk does not answer.')
      // a store in trouble finds out here whether it is over: nobody may be sending anything
      if (isInDoubt()) await writer.run({ kind: 'probe' }).catch(() => {})
      return toHealth(writer.state().trouble)
    },
    close: async () => {
      connection.close()
      await writer.close()
    },
  }

  function isStalled(): boolean {
    const { busySince } = writer.state()
    return busySince !== undefined && clock() - busySince > stalledMs
  }

  function isInDoubt(): boolean {
    const { trouble, commits } = writer.state()
    return trouble !== undefined || commits === 0
  }

  function toHealth(trouble: string | undefined): StoreHealth {
    const { commits, waiting } = writer.state()
    return { engine: 'sqlite', trouble, facts: { ...writer.facts(), commits, waiting } }
  }
}
