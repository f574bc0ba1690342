// The main thread's side of the writer thread. One batch is in flight; the operations that arrive before its end form the next
// batch. There is no timer.
import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'
import type { Log } from '../../base/log.ts'
import { Problem, type ProblemCode } from '../../core/model/problem.ts'
import type { Capacity } from '../room.ts'
import { storeUnavailable } from '../rules.ts'
import type { StoreHealth } from '../records.ts'
import type { Clock } from '../store.ts'
import { createDirectWriter } from './direct.ts'
import { readSize } from './files.ts'
import {
  type BatchResult,
  type Operation,
  type OperationResult,
  type BatchReply,
  type Request,
  type Results,
  type Writer,
  type WriterOptions,
} from './operations.ts'
import { measureOperationBytes, measureWaitingBytes, toTransfers, toUnwritableProblem } from './values.ts'

type QueueOptions = {
  readonly file: string
  readonly clock: Clock
  readonly commitDelayMs: number
  /** The maximum number of operations in one transaction. */
  readonly batchLimit: number
  /** A lone operation is committed on this thread while commits take less than this on average. */
  readonly directBelowMs: number
  /** Appends are refused while this many operations wait, and all other calls while twice as many wait. */
  readonly maxQueued: number
  /** Appends are refused if waiting deliveries would have more bytes than this. */
  readonly maxQueuedBytes: number
  /** Decides how many bytes may wait in the store. */
  readonly capacity: Capacity
  readonly log: Log
  readonly spawn: (options: WriterOptions) => Worker
  /** Called when a file was opened, which may be another file than before. */
  readonly onOpened: () => void
}

type Waiting = {
  readonly operation: Operation
  readonly bytes: number
  readonly resolve: (value: Results[Operation['kind']]) => void
  readonly reject: (problem: Problem) => void
}

/**
 * ```
 *          run, close                end of this turn of the event loop
 *   idle ─────────────▶ gathering ─────────────────────────────────────┐
 *    ▲                                                                 ▼
 *    │  nothing waits                                                 next ◀──┐ committed on this thread
 *    ├─────────────────────────────────────────────────────────────────┤ ────┘
 *    │                                       the others, as one batch │ ▲
 *    │                                                                 ▼ │ reply, or death of the thread
 *    │                                                             committing
 *    └─▶ closed, if `close` was called
 * ```
 */
type State =
  | { readonly kind: 'idle' }
  /** Operations of one turn of the event loop form one batch. */
  | { readonly kind: 'gathering' }
  /** A batch is in the writer thread. New operations wait until it ends. `since`: milliseconds since the epoch. */
  | { readonly kind: 'committing'; readonly calls: readonly Waiting[]; readonly bytes: number; readonly since: number }
  | { readonly kind: 'closed' }

const fileReplaced =
  'The file of the store was deleted or replaced while it was in use. The new file does not have the deliveries and jobs of the old one.'

export function spawnWriter(options: WriterOptions): Worker {
  const file = createRequire(import.meta.url).resolve('#writer')
  // the options of the host are not for this thread: --input-type would end it
  return new Worker(file, { workerData: options, name: 'hookloom-writer', execArgv: [] })
}

export function createWriterQueue(options: QueueOptions): Writer {
  const { clock, log, batchLimit, capacity } = options
  const direct = createDirectWriter(options.file, options.directBelowMs)
  let state: State = { kind: 'idle' }
  let worker: Worker | undefined
  let waiting: Waiting[] = []
  /** The bytes of the operations that wait here. */
  let waitingBytes = 0
  /** The bytes that wait in the store. */
  let storedBytes: number | undefined
  let trouble: string | undefined
  let facts: StoreHealth['facts'] | undefined
  let commits = 0
  let closing: { readonly done: Promise<void>; readonly end: () => void } | undefined

  const setTrouble = (now: string | undefined, cause?: unknown) => {
    if (now === trouble) return
    trouble = now
    if (now === undefined) log.info({}, 'The store can write again.')
    else log.error(cause === undefined || cause === '' ? {} : { cause: String(cause) }, now)
  }
  const fail = (calls: readonly Waiting[], detail: string, cause: unknown, code: ProblemCode = 'store-unavailable') => {
    setTrouble(detail, cause)
    const problem = new Problem(code, detail, { retryAfterSeconds: 5, cause })
    for (const call of calls) call.reject(problem)
  }

  function gather(): void {
    if (state.kind !== 'idle') return
    state = { kind: 'gathering' }
    setImmediate(next)
  }

  /** The only way out of `gathering`. */
  function next(): void {
    if (isLone(waiting) && closing === undefined) commitHere()
    if (waiting.length > 0) return send()
    state = { kind: closing === undefined ? 'idle' : 'closed' }
    if (closing !== undefined) closeThread(closing.end)
  }

  /** Commits the waiting operations on this thread, unless they are for the writer thread. */
  function commitHere(): void {
    const calls = waiting
    const result = direct.run(calls.map(({ operation }) => operation))
    if (result === undefined) return
    waiting = []
    waitingBytes = 0
    finish(calls, result)
  }

  function send(): void {
    const calls = waiting.slice(0, batchLimit)
    waiting = waiting.slice(batchLimit)
    const bytes = calls.reduce((total, call) => total + call.bytes, 0)
    waitingBytes -= bytes
    state = { kind: 'committing', calls, bytes, since: clock() }
    const request: Request = { kind: 'batch', operations: calls.map((call) => call.operation) }
    try {
      worker ??= start()
      worker.postMessage(
        request,
        calls.flatMap((call) => toTransfers(call.operation)),
      )
    } catch (error) {
      state = { kind: 'gathering' }
      fail(calls, 'The store cannot write: its thread cannot be started.', error)
      setImmediate(next)
    }
  }

  /** The calls of the batch in flight, which has ended. */
  function takeBatch(): readonly Waiting[] {
    const calls = state.kind === 'committing' ? state.calls : []
    state = { kind: 'gathering' }
    return calls
  }

  function start(): Worker {
    const recoverAt = facts === undefined ? clock() : undefined
    const thread = options.spawn({ file: options.file, commitDelayMs: options.commitDelayMs, recoverAt })
    let cause: unknown
    thread.on('message', onReply)
    thread.on('error', (error) => {
      cause = error
    })
    thread.on('exit', () => {
      worker = undefined
      direct.reset()
      if (state.kind !== 'committing') return
      fail(takeBatch(), 'The store cannot write: its thread died and is being restarted.', cause)
      next()
    })
    return thread
  }

  function onReply({ opened, tookMs, result }: BatchReply): void {
    const calls = takeBatch()
    if (opened) {
      facts = opened.facts
      storedBytes = opened.waitingBytes
      direct.noteOpened(opened.inodes)
      if (opened.isReplacement) log.error({}, fileReplaced)
      options.onOpened()
    }
    if ('failure' in result) direct.reset()
    else direct.noteCommit(tookMs)
    finish(calls, result)
    next()
  }

  function finish(calls: readonly Waiting[], result: BatchResult): void {
    if ('failure' in result) {
      const { code, detail, cause } = result.failure
      return fail(calls, detail, cause, code)
    }
    commits += 1
    setTrouble(undefined)
    storedBytes = (storedBytes ?? 0) + result.waitingChange
    capacity.update(storedBytes)
    for (const [index, call] of calls.entries()) settle(call, result.outcomes ? result.outcomes[index] : stored)
  }

  /** Why an operation is refused at once; undefined if it is accepted. */
  function findRefusal(operation: Operation, bytes: number): Problem | undefined {
    const isFull =
      operation.kind === 'append' || operation.kind === 'appendAll'
        ? waiting.length >= options.maxQueued || (waitingBytes > 0 && waitingBytes + bytes > options.maxQueuedBytes)
        : waiting.length >= 2 * options.maxQueued
    if (isFull) return storeUnavailable('The store cannot keep up: its queue is full.', 1)
    if (closing) return storeUnavailable('The store is closed.', 5)
    const inFlight = state.kind === 'committing' ? state.bytes : 0
    return capacity.checkAppend(measureWaitingBytes(operation), waitingBytes + inFlight)
  }

  function closeThread(end: () => void): void {
    direct.reset()
    if (!worker) return end()
    worker.once('exit', end)
    const request: Request = { kind: 'close' }
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port, not a window
    worker.postMessage(request)
  }

  return {
    run: (operation) => {
      const bytes = measureOperationBytes(operation)
      const refusal = findRefusal(operation, bytes)
      if (refusal !== undefined) return Promise.reject(refusal)
      waitingBytes += bytes
      return new Promise((resolve, reject) => {
        // as: batch.ts returns the result of the operation's kind
        const settleAs = resolve as Waiting['resolve']
        waiting.push({ operation, bytes, resolve: settleAs, reject })
        gather()
      })
    },
    state: () => ({
      trouble,
      commits,
      waiting: waiting.length,
      waitingBytes: storedBytes,
      busySince: state.kind === 'committing' ? state.since : undefined,
    }),
    facts: () => ({ ...facts, wal_bytes: readSize(`${options.file}-wal`) }),
    close: () => {
      if (closing === undefined) {
        let end = () => {}
        const done = new Promise<void>((resolve) => {
          end = resolve
        })
        closing = { done, end }
        gather()
      }
      return closing.done
    },
  }
}

/** Whether only one operation waits, or only an append and the claim of its jobs. */
function isLone(waiting: readonly Waiting[]): boolean {
  const [first, second] = waiting
  return (
    waiting.length === 1 ||
    (waiting.length === 2 && first?.operation.kind === 'append' && second?.operation.kind === 'claim')
  )
}

const stored: OperationResult = { ok: true, value: { kind: 'stored' } }

function settle(call: Waiting, outcome: OperationResult | undefined): void {
  if (outcome?.ok) call.resolve(outcome.value)
  else call.reject(toUnwritableProblem(outcome?.cause))
}
