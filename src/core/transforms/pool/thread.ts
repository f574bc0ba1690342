// Controls one worker thread from the main thread.
import { createRequire } from 'node:module'
import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads'
import type { TransformOutcome } from '../../model/transform.ts'
import { createCallsInFlight, type CallsInFlight, type Task } from './calls-in-flight.ts'
import { lowerPriority, stateBytes, stateIndex } from '../worker/messages.ts'
import type { BundlePost, FromWorker, ThreadExit, SettledCall, ToWorker, WorkerStart } from '../worker/messages.ts'

/**
 * V8 aborts the whole process if one allocation, such as a growing Map, exceeds V8's memory limit. So that limit must be much higher than ours.
 */
const headroomMb = 2048
/** With V8's own 48, the garbage of a start stays: two threads with 200 modules have 100 MB more. */
const youngMb = 16
/**
 * The memory of a thread is measured within this time. Only a native function or a lack of processor time delays the measurement, and they delay
 * the end of the thread too, so a longer wait costs no memory.
 */
const measureMs = 1000

type ThreadEvents = {
  /** If it is set, the thread measures which parts of a bundle each call runs: see `CoverageProbe`. It is called before `onSettled`. */
  onCovered?: ((bundle: number, parts: readonly number[]) => void) | undefined
  onSettled(thread: Thread, task: Task, outcome: TransformOutcome): void
  /** Called with calls that the thread returned because they had not begun. */
  onUnrun(thread: Thread, tasks: Task[]): void
  onThreadExit(thread: Thread, leaving: ThreadExit): void
  onChecked(thread: Thread, message: Extract<FromWorker, { kind: 'checked' }>): void
  /** Called when the thread ended by itself, or is terminated because it sent an invalid message. */
  onGone(thread: Thread, cause: unknown): void
}

export type ThreadSettings = {
  readonly timeoutMs: number
  readonly memoryMb: number
  /** The `process.env` of the thread. */
  readonly env: Readonly<Record<string, string>>
}

export type Thread = Omit<CallsInFlight, 'flush'> & {
  readonly id: number
  /** The bundles that the thread has received. */
  readonly bundles: ReadonlySet<number>
  readonly isReady: () => boolean
  /** Resolves when the thread is ready, or when it ended before that. */
  readonly ready: Promise<void>
  /** The call whose synchronous code runs in the thread now; 0 if there is none. */
  readonly running: () => number
  /** The bundle whose top level runs in the thread now; 0 if there is none. */
  readonly loading: () => number
  /** Lowers the priority of the thread for the rest of its life. It is replaced when its calls have ended. */
  reducePriority(): void
  readonly hasLowPriority: () => boolean
  load(bundle: BundlePost): void
  unload(bundle: number): void
  check(bundle: number, exports: readonly (string | undefined)[]): void
  /** Whether the thread answers within `ms`. */
  answers(ms: number): Promise<boolean>
  /**
   * Whether the thread uses more memory, with garbage, or cannot be measured. Before Node 22.16, only a thread that runs no code can be measured,
   * and measures itself: then the result is whether it runs code, or does not answer within `answerMs`.
   */
  usesMoreThan(bytes: number, answerMs: number): Promise<boolean>
  /** Terminates the thread, even while it runs code. */
  end(): Promise<void>
}

/**
 * ```
 * starting ──its first message──▶ ready
 *     └──────────────┬──────────────┘
 *                    ▼
 *     ended: terminated, crashed, or sent an invalid message
 * ```
 */
type State =
  | { readonly kind: 'starting' }
  /** `systemId`: the id of the thread in the operating system, if the system shows it. */
  | { readonly kind: 'ready'; readonly systemId: number | undefined }
  | { readonly kind: 'ended'; readonly wasReady: boolean }

/** `getHeapStatistics`: in Node 22.16 and later, which can measure a thread while its code runs. */
type MeasurableWorker = Worker & {
  readonly getHeapStatistics?: () => Promise<{ readonly used_heap_size: number; readonly external_memory: number }>
}

/** `isShadow`: the thread blocks effects, and has a low priority. */
export function createThread({
  settings,
  events,
  isShadow = false,
}: {
  settings: ThreadSettings
  events: ThreadEvents
  isShadow?: boolean
}): Thread {
  const { onCovered } = events
  const { timeoutMs, memoryMb, env } = settings
  const shared = new SharedArrayBuffer(stateBytes)
  const sharedState = new Int32Array(shared)
  const bundles = new Set<number>()
  let pongs: (() => void)[] = []
  let state: State = { kind: 'starting' }
  let hasLowPriority = false
  let resolveReady = () => {}
  const ready = new Promise<void>((resolve) => {
    resolveReady = resolve
  })
  let cause: unknown
  // a separate channel, so that messages that transforms post to `parentPort` are ignored
  const { port1: port, port2 } = new MessageChannel()
  const start: WorkerStart = { sharedState: shared, memoryMb, port: port2, measures: onCovered !== undefined, isShadow }
  const worker: MeasurableWorker = new Worker(createRequire(import.meta.url).resolve('#transform-worker'), {
    name: 'hookloom-transforms',
    workerData: start,
    transferList: [port2],
    env: { ...env },
    argv: [],
    execArgv: [],
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: memoryMb + headroomMb, maxYoungGenerationSizeMb: youngMb },
  })
  // text that is printed outside of the guard belongs to no call
  worker.stdout.resume()
  worker.stderr.resume()
  worker.on('error', (error) => {
    cause = error
  })
  worker.on('exit', (code) => {
    // its last messages may still be unread
    for (let last = receiveMessageOnPort(port); last !== undefined; last = receiveMessageOnPort(port))
      receive(last.message)
    port.close()
    reportEnd(cause ?? new Error(`it ended with code ${code}`))
  })
  port.on('message', receive)

  const send = (message: ToWorker, transfer: ArrayBuffer[] = []) => {
    if (state.kind !== 'ended') port.postMessage(message, transfer)
  }
  const inFlightCalls = createCallsInFlight({ sharedState, send })

  const isReady = () => (state.kind === 'ended' ? state.wasReady : state.kind === 'ready')

  function reportEnd(why: unknown): void {
    resolveReady()
    if (state.kind === 'ended') return
    state = { kind: 'ended', wasReady: isReady() }
    events.onGone(thread, why)
  }

  /** Code in the thread that gets access to this port may post anything. Such a message may end only the thread, not the gateway. */
  function receive(message: FromWorker): void {
    if (state.kind === 'ended') return
    try {
      handle(message)
    } catch (error) {
      reportEnd(error)
      void worker.terminate()
    }
  }

  function handle(message: FromWorker): void {
    if (message.kind === 'outcomes') {
      // as: serve.ts writes the text
      for (const [seq, outcome] of JSON.parse(message.outcomes) as SettledCall[]) {
        const task = inFlightCalls.take(seq)
        if (task !== undefined) events.onSettled(thread, task, outcome)
      }
    } else if (message.kind === 'unrun') {
      events.onUnrun(
        thread,
        message.seqs.flatMap((seq) => inFlightCalls.take(seq) ?? []),
      )
    } else if (message.kind === 'leaving') events.onThreadExit(thread, message)
    else if (message.kind === 'covered') onCovered?.(message.bundle, message.parts)
    else if (message.kind === 'checked') events.onChecked(thread, message)
    else if (message.kind === 'ready') {
      state = { kind: 'ready', systemId: message.systemId }
      if (isShadow) lowerPriority(message.systemId)
      resolveReady()
    } else if (message.kind === 'state') void answerState(message)
    else if (message.kind === 'pong') {
      for (const pong of pongs) pong()
      pongs = []
    }
  }

  async function answerState({ seq, key }: Extract<FromWorker, { kind: 'state' }>): Promise<void> {
    try {
      const json = await inFlightCalls.inFlight.get(seq)?.task.call.readState?.(key)
      send({ kind: 'state', seq, key, json, isRead: true })
    } catch {
      send({ kind: 'state', seq, key, json: undefined, isRead: false })
    }
  }

  async function answers(ms: number): Promise<boolean> {
    const answer = new Promise<true>((resolve) => pongs.push(() => resolve(true)))
    send({ kind: 'ping' })
    return (await receiveWithin(ms, answer)) === true
  }

  const thread: Thread = {
    id: worker.threadId,
    ...inFlightCalls,
    bundles,
    isReady,
    ready,
    running: () => Atomics.load(sharedState, stateIndex.running),
    loading: () => Atomics.load(sharedState, stateIndex.loading),
    reducePriority: () => {
      hasLowPriority = true
      if (state.kind === 'ready') lowerPriority(state.systemId)
    },
    hasLowPriority: () => hasLowPriority,
    load: (bundle) => {
      if (bundles.has(bundle.id)) return
      bundles.add(bundle.id)
      const { id, root, file, code, map } = bundle
      send({ kind: 'load', bundle: { id, root, file, code, map }, timeoutMs })
    },
    unload: (bundle) => {
      // calls that wait for the end of this turn still need the bundle
      inFlightCalls.flush()
      if (bundles.delete(bundle)) send({ kind: 'unload', bundle })
    },
    check: (bundle, exports) => send({ kind: 'check', bundle, exports }),
    post: (task) => {
      thread.load(task.bundle)
      inFlightCalls.post(task)
    },
    answers,
    usesMoreThan: async (bytes, answerMs) => {
      if (worker.getHeapStatistics === undefined) return thread.running() !== 0 || !(await answers(answerMs))
      const measuring = worker.getHeapStatistics().catch(() => undefined)
      const measured = await receiveWithin(measureMs, measuring)
      return measured === undefined || measured.used_heap_size + measured.external_memory > bytes
    },
    end: async () => {
      state = { kind: 'ended', wasReady: isReady() }
      await worker.terminate()
    },
  }
  return thread
}

/** The answer of a thread, or undefined after `ms`. If the main thread was busy for longer, it first reads an answer that has arrived. */
async function receiveWithin<T>(ms: number, answer: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => setImmediate(resolve, undefined), ms)
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    clearTimeout(timer)
  }
}
