// The embedded store: SQLite in WAL mode with synchronous=FULL. A writer thread commits. The main thread reads, and commits lone operations while
// the disk is fast.
import { type Log, silentLog } from '../../base/log.ts'
import type { ClaimedJob } from '../../model/job.ts'
import { Problem } from '../../core/model/problem.ts'
import { createSingleOwnerCalls } from './one-owner.ts'
import { createCapacity, type Capacity } from '../room.ts'
import type { StoreHealth } from '../records.ts'
import type { Clock, OpenedStore, Store, StoreReader } from '../store.ts'
import { createReadConnection } from './connection.ts'
import { findRealFile } from './files.ts'
import { openMemory } from './memory.ts'
import type { Results, Writer } from './operations.ts'
import { createWriterQueue, spawnWriter } from './queue.ts'
import { createReads, type Reads } from './reads.ts'
import { createSlowReads } from './slow-reads.ts'
import { bindCalls, createPlainWrites } from '../plain.ts'
import { toQuarantineValues } from '../quarantine.ts'
import { toClaimedJob } from '../rows.ts'
import { dialect } from './flow.ts'
import { damagedText } from './sums.ts'
import { saveDamagedWal } from './wal-damage.ts'
import { toAddTask, toAppend, toAppendAll, toReport, toSettle } from './values.ts'

/** The maximum number of rows that one operation of a sweep visits. */
const sweepRows = 500
/** About 10 ms of inserts, so that the next batch does not wait much longer. */
const defaultBatchLimit = 1024

/** About 2 ms of a claim. The requests that arrive meanwhile wait for it. */
const claimedAtOnce = 48

/** A commit that takes longer than this is reported as a failure of the disk. */
const stalledMs = 5000

export type SqliteOptions = {
  readonly file: string
  readonly clock: Clock
  /** Milliseconds that the writer sleeps before each commit, to simulate a slow disk. Default 0. */
  readonly commitDelayMs?: number
  /** A lone operation is committed on the calling thread while commits take less than this on average. Default 2. */
  readonly directBelowMs?: number
  /** The maximum number of operations in one transaction. 1 commits each operation alone, to measure what batches save. Default 1024. */
  readonly batchLimit?: number
  /** The maximum number of operations that may wait for the disk. Further appends are refused. Default 10,000. */
  readonly maxQueued?: number
  /**
   * The maximum number of bytes that may wait: the requests of parked and pending deliveries, and unfinished jobs. Beyond it, new deliveries
   * are refused. It is read for each delivery. Finished rows do not count: `store.retainDays` limits them, and a busy gateway
   * must not refuse deliveries because of its history. Default: no limit.
   */
  readonly maxWaitingBytes?: () => number
  /** Logs when writing starts to fail, and when it works again. */
  readonly log?: Log
  /** A file with this many bytes has its slow reads in a thread of its own. Default 32 MiB. */
  readonly slowAboveBytes?: number
  /** Starts the writer thread. Tests start it with other options. */
  readonly spawn?: typeof spawnWriter
}

/** Looks for damage in the log of a file that was not closed, and does not open the file: the first call does, and each call after a failure tries again. */
export function createSqliteStore(options: SqliteOptions): OpenedStore {
  const { clock, commitDelayMs = 0, batchLimit = defaultBatchLimit, maxQueued = 10_000, directBelowMs = 2 } = options
  const { log = silentLog, spawn = spawnWriter, maxWaitingBytes = () => Number.POSITIVE_INFINITY } = options
  const file = findRealFile(options.file)
  const damage = saveDamagedWal(file, clock())
  if (damage !== undefined) log.error({}, damage)
  const capacity = createCapacity({ maxBytes: maxWaitingBytes, log })
  const connection = createReadConnection(file)
  const reads = createReads(connection, clock)
  const slow = createSlowReads({ file, clock, reads, aboveBytes: options.slowAboveBytes })
  let openings = 0
  const writer = createWriterQueue({
    file,
    clock,
    commitDelayMs,
    batchLimit,
    directBelowMs,
    maxQueued,
    maxQueuedBytes: 64 * 1024 * 1024,
    capacity,
    log,
    spawn,
    onOpened: () => {
      openings += 1
      connection.reset()
      slow.reset()
    },
  })
  const close = async () => {
    connection.close()
    await slow.close()
  }
  // found in the other thread, but read here: a copy between threads would give the header names of strangers a prototype
  const keptDeliveries: Reads['keptDeliveries'] = async (query) => reads.keptAt(await slow.calls.keptSeqs(query))
  const all = { ...reads, ...slow.calls, keptDeliveries, close }
  const tell = (texts: readonly { readonly text: string }[], session: object) => {
    if (texts.some(({ text }) => text === damagedText))
      log.error(session, 'a text of this session is damaged in the store')
  }
  const told: Pick<Reads, 'waitingEvents' | 'messages'> = {
    waitingEvents: async (query) => {
      const found = await all.waitingEvents(query)
      tell(found.events, query)
      return found
    },
    messages: async (query) => {
      const found = await all.messages(query)
      tell(found, query)
      return found
    },
  }
  return createStore({ reads: { ...all, ...told }, writer, clock, room: capacity, countOpenings: () => openings })
}

/**
 * A store in memory, for tests and trials. It has no file and no writer thread: each call commits on the calling thread. It
 * keeps every promise of `Store` except durability: the data is lost when the store is closed.
 */
export function createMemoryStore({ clock }: { clock: Clock }): Store {
  const { connection, writer } = openMemory()
  return createStore({ reads: createReads(connection, clock), writer, clock })
}

/**
 * Reads the file of a store, whether a gateway is running or not. Calls reject with `config-missing` if there is no file,
 * with `config-invalid` if a newer hookloom wrote it, and with `store-unavailable` if it cannot be read.
 */
export function createSqliteReader({ file }: { file: string }): StoreReader {
  const connection = createReadConnection(file, () => {
    throw new Problem('config-missing', `There is no store at ${file}. Start the gateway once, or check store.file.`)
  })
  return createReads(connection, Date.now)
}

type Parts = {
  readonly reads: Reads
  readonly writer: Writer
  readonly clock: Clock
  readonly room?: Capacity
  /** The number of times that the file was opened. It may have been replaced in between. */
  readonly countOpenings?: () => number
}

function createStore({ reads, writer, clock, room, countOpenings = () => 1 }: Parts): OpenedStore {
  let joined: string | undefined

  /** Sweeps in small operations, so that appends can run in between. */
  async function sweep(olderThanMs: number): Promise<number> {
    const before = clock() - olderThanMs
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
    ...createSingleOwnerCalls(clock),
    ...bindCalls(createPlainWrites(dialect), async (name, args) =>
      writer.run({ kind: 'plain', at: clock(), name, args }),
    ),
    ready: async () => {
      try {
        await writer.run({ kind: 'probe' })
      } catch (error) {
        if (!(error instanceof Problem) || error.code !== 'store-unavailable') throw error
      }
    },
    append: (delivery) => writer.run(toAppend(delivery, clock())),
    // the writer executes operations in the order of the calls
    claimsAppended: () => true,
    appendAll: async (deliveries, moves) => writer.run(toAppendAll(deliveries, moves, clock())),
    settle: async (id, settlement, moves) => writer.run(toSettle(id, settlement, { at: clock(), moves })),
    // the count that the writer keeps: a scrape must not visit every row that waits
    waitingBytes: async () => writer.state().waitingBytes ?? reads.waitingBytes(),
    quarantine: async (requests, { maxRequests, maxBytes, olderThan }) =>
      writer.run({
        kind: 'quarantine',
        at: clock(),
        requests: requests.map(toQuarantineValues),
        bounds: { maxRequests, maxBytes, olderThan },
      }),
    claim: async ({ limit, leaseMs, limits = {}, only, onEnded }) => {
      const jobs: ClaimedJob[] = []
      // many jobs are claimed, and new jobs of flows sorted, in small operations, so that appends can run in between
      for (let isDone = false; !isDone;) {
        const at = clock()
        const most = Math.min(limit - jobs.length, claimedAtOnce)
        const round = writer.run({ kind: 'claim', at, limit: most, leaseMs, limits, only })
        const step = await round.catch((error: unknown) => {
          if (jobs.length === 0) throw error
        })
        // the jobs of earlier rounds are leased: if they were not returned, nobody would run them until their leases end
        if (step === undefined) break
        jobs.push(...step.rows.map((row) => toClaimedJob(row, at)))
        if (step.ended.length > 0) onEnded?.(step.ended)
        isDone = step.isSorted && (step.rows.length < most || jobs.length === limit)
      }
      return jobs
    },
    report: async (job, report) => writer.run(toReport(job, report, clock())),
    reserve: async ({ id, fence }, reservations) =>
      writer.run({ kind: 'reserve', at: clock(), id, fence, reservations }),
    addTask: async (task) => writer.run(toAddTask(task, clock())),
    requeue: async (id) => writer.run({ kind: 'requeue', at: clock(), id }),
    endJob: async (id, ending) => writer.run({ kind: 'end', at: clock(), id, ending }),
    drop: async (id) => writer.run({ kind: 'drop', at: clock(), id }),
    join: async (node) => {
      const describeJoin = () => JSON.stringify([node, countOpenings()])
      // no other gateway needs to know that this gateway is alive
      if (describeJoin() === joined) return
      await writer.run({ kind: 'join', at: clock(), node })
      joined = describeJoin()
    },
    leave: async (id) => {
      joined = undefined
      await writer.run({ kind: 'leave', id })
    },
    sweep,
    now: async () => clock(),
    health: async () => {
      if (isStalled()) return toHealth('The store cannot write: the disk does not respond.')
      // tests whether a failure is over: there may be no other call that would find out
      if (needsProbe()) await writer.run({ kind: 'probe' }).catch(() => {})
      return toHealth(writer.state().trouble)
    },
    close: async () => {
      await reads.close()
      await writer.close()
    },
  }

  function isStalled(): boolean {
    const { busySince } = writer.state()
    return busySince !== undefined && clock() - busySince > stalledMs
  }

  function needsProbe(): boolean {
    const { trouble, commits } = writer.state()
    return trouble !== undefined || commits === 0
  }

  function toHealth(trouble: string | undefined): StoreHealth {
    const { commits, waiting } = writer.state()
    return {
      engine: 'sqlite',
      trouble: trouble ?? room?.trouble(),
      warning: room?.warning(),
      facts: { ...writer.facts(), commits, waiting },
    }
  }
}
