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
  const worker = new Worker(createRequire(import.meta.url).resolve('#transform-worker'), {
    name: 'hookloom-transforms',
    workerData: start,
    transferList: [port2],
    env: { ...env },
    argv: [],
    execArgv: [],
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: memoryMb + headroomMb },
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
    answers: (ms) =>
      new Promise((resolve) => {
        // an answer that has arrived is read before `setImmediate`, even if the main thread was busy
        const timer = setTimeout(() => setImmediate(resolve, false), ms)
        pongs.push(() => {
          clearTimeout(timer)
          resolve(true)
        })
        send({ kind: 'ping' })
      }),
    end: async () => {
      state = { kind: 'ended', wasReady: isReady() }
      await worker.terminate()
    },
  }
  return thread
}
