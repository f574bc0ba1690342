// The main thread's hold on one worker thread.
import { createRequire } from 'node:module'
import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads'
import type { TransformOutcome } from '../../model/transform.ts'
import { createCallsInFlight, type CallsInFlight, type Task } from './calls-in-flight.ts'
import { lowerPriority, stateBytes, stateIndex } from '../worker/messages.ts'
import type { BundlePost, FromWorker, Leaving, SettledCall, ToWorker, WorkerStart } from '../worker/messages.ts'

/** V8 ends the whole process when one allocation jumps over its limit, as a growing Map does: its limit must be far. */
const headroomMb = 2048

export type ThreadEvents = {
  settled(thread: Thread, task: Task, outcome: TransformOutcome): void
  /** These were not begun. */
  unrun(thread: Thread, tasks: Task[]): void
  leaving(thread: Thread, leaving: Leaving): void
  checked(thread: Thread, message: Extract<FromWorker, { kind: 'checked' }>): void
  /** The thread is gone, and nobody ended it. */
  gone(thread: Thread, cause: unknown): void
}

export type ThreadLimits = { readonly memoryMb: number; readonly timeoutMs: number }

export type Thread = Omit<CallsInFlight, 'flush'> & {
  readonly id: number
  /** Bundles that it was given. */
  readonly bundles: ReadonlySet<number>
  readonly isReady: () => boolean
  /** Resolves when it is, or never will be. */
  readonly ready: Promise<void>
  /** The call whose synchronous part holds the thread now, else 0. */
  readonly running: () => number
  /** Everybody else's work goes before its own from now on: it is to be replaced when its calls have ended. */
  lower(): void
  readonly isLowered: () => boolean
  load(bundle: BundlePost): void
  unload(bundle: number): void
  check(bundle: number, exports: readonly (string | undefined)[]): void
  /** Whether the thread answers within `ms`. */
  answers(ms: number): Promise<boolean>
  /** Ends the thread, whatever it does. */
  end(): Promise<void>
}

export function createThread(options: {
  limits: () => ThreadLimits
  env: Readonly<Record<string, string>>
  events: ThreadEvents
}): Thread {
  const { limits, env, events } = options
  const shared = new SharedArrayBuffer(stateBytes)
  const sharedState = new Int32Array(shared)
  const bundles = new Set<number>()
  let pongs: (() => void)[] = []
  let isReady = false
  let systemId: number | undefined
  let isLowered = false
  let becomeReady = () => {}
  const ready = new Promise<void>((resolve) => {
    becomeReady = resolve
  })
  let isEnded = false
  let cause: unknown
  // what transforms post over `parentPort` arrives where nobody listens
  const { port1: port, port2 } = new MessageChannel()
  const start: WorkerStart = { sharedState: shared, memoryMb: limits().memoryMb, port: port2 }
  const worker = new Worker(createRequire(import.meta.url).resolve('#transform-worker'), {
    name: 'hookloom-transforms',
    workerData: start,
    transferList: [port2],
    env: { ...env },
    argv: [],
    execArgv: [],
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: limits().memoryMb + headroomMb },
  })
  // what is printed past the guard has no call to belong to
  worker.stdout.resume()
  worker.stderr.resume()
  worker.on('error', (error) => {
    cause = error
  })
  worker.on('exit', (code) => {
    // its last words may still be on the way
    for (let last = receiveMessageOnPort(port); last !== undefined; last = receiveMessageOnPort(port))
      hear(last.message)
    port.close()
    lose(cause ?? new Error(`it ended with code ${code}`))
  })
  port.on('message', hear)

  const send = (message: ToWorker, transfer: ArrayBuffer[] = []) => {
    if (!isEnded) port.postMessage(message, transfer)
  }
  const inFlightCalls = createCallsInFlight({ sharedState, send })

  function lose(why: unknown): void {
    becomeReady()
    if (isEnded) return
    isEnded = true
    events.gone(thread, why)
  }

  /** Code in the thread that got hold of our port may post anything: the thread is lost then, and not the gateway. */
  function hear(message: FromWorker): void {
    if (isEnded) return
    try {
      receive(message)
    } catch (error) {
      lose(error)
      void worker.terminate()
    }
  }

  function receive(message: FromWorker): void {
    if (message.kind === 'outcomes') {
      // as: the text is serve.ts's own
      for (const [seq, outcome] of JSON.parse(message.outcomes) as SettledCall[]) {
        const task = inFlightCalls.take(seq)
        if (task !== undefined) events.settled(thread, task, outcome)
      }
    } else if (message.kind === 'unrun') {
      events.unrun(
        thread,
        message.seqs.flatMap((seq) => inFlightCalls.take(seq) ?? []),
      )
    } else if (message.kind === 'leaving') events.leaving(thread, message)
    else if (message.kind === 'checked') events.checked(thread, message)
    else if (message.kind === 'ready') {
      systemId = message.systemId
      isReady = true
      becomeReady()
    } else if (message.kind === 'pong') {
      for (const pong of pongs) pong()
      pongs = []
    }
  }

  const thread: Thread = {
    id: worker.threadId,
    ...inFlightCalls,
    bundles,
    isReady: () => isReady,
    ready,
    running: () => Atomics.load(sharedState, stateIndex.running),
    lower: () => {
      isLowered = true
      lowerPriority(systemId)
    },
    isLowered: () => isLowered,
    load: (bundle) => {
      if (bundles.has(bundle.id)) return
      bundles.add(bundle.id)
      const { id, root, file, code, map } = bundle
      send({ kind: 'load', bundle: { id, root, file, code, map }, timeoutMs: limits().timeoutMs })
    },
    unload: (bundle) => {
      // calls that wait for the end of this turn still need it
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
        const timer = setTimeout(resolve, ms, false)
        pongs.push(() => {
          clearTimeout(timer)
          resolve(true)
        })
        send({ kind: 'ping' })
      }),
    end: async () => {
      isEnded = true
      await worker.terminate()
    },
  }
  return thread
}
