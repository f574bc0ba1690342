// The main thread's hold on one worker thread: calls go over together, once for each turn of the event loop.
import { createRequire } from 'node:module'
import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads'
import type { TransformCall, TransformOutcome } from '../model/transform.ts'
import { board as words } from './messages.ts'
import { toCallsMessage } from './parcel.ts'
import type { BundlePost, FromWorker, Leaving, SettledCall, ToWorker, WorkerStart } from './messages.ts'

/** V8 ends the whole process when one allocation jumps over its limit, as a growing Map does: its limit must be far. */
const headroomMb = 2048

/** One call on its way. */
export type Job = {
  readonly bundle: BundlePost
  readonly export: string | undefined
  readonly call: TransformCall
  /** `stopped`: its worker had to be ended because of it. */
  readonly settle: (outcome: TransformOutcome, stopped: boolean) => void
}

/** Moments are of `performance.now`; `begunAt` is when it was first seen to be begun, or a little earlier. */
export type InFlight = {
  readonly seq: number
  readonly job: Job
  readonly postedAt: number
  begunAt: number | undefined
}

export type ThreadEvents = {
  settled(thread: Thread, job: Job, outcome: TransformOutcome): void
  /** These were not begun. */
  unrun(thread: Thread, jobs: Job[]): void
  leaving(thread: Thread, leaving: Leaving): void
  checked(thread: Thread, message: Extract<FromWorker, { kind: 'checked' }>): void
  /** The thread is gone, and nobody ended it. */
  gone(thread: Thread, cause: unknown): void
}

export type ThreadLimits = { readonly memoryMb: number; readonly timeoutMs: number }

export type Thread = {
  readonly id: number
  readonly inFlight: ReadonlyMap<number, InFlight>
  /** Bundles that it was given. */
  readonly bundles: ReadonlySet<number>
  readonly isReady: () => boolean
  /** Resolves when it is, or never will be. */
  readonly ready: Promise<void>
  readonly lastSeq: () => number
  /** The call whose synchronous part holds the thread now, else 0. */
  readonly running: () => number
  load(bundle: BundlePost): void
  unload(bundle: number): void
  check(bundle: number, exports: readonly (string | undefined)[]): void
  post(job: Job): void
  /** Whether the thread answers within `ms`. */
  answers(ms: number): Promise<boolean>
  /** Takes back what is not begun: it will not run here. */
  recall(): Job[]
  take(seq: number): Job | undefined
  takeAll(): InFlight[]
  /** The newest call that was begun; all before it were, too. */
  begun(): number
  /** Ends the thread, whatever it does. */
  end(): Promise<void>
}

export function createThread(options: {
  limits: () => ThreadLimits
  env: Readonly<Record<string, string>>
  events: ThreadEvents
}): Thread {
  const { limits, env, events } = options
  const shared = new SharedArrayBuffer(words.bytes)
  const board = new Int32Array(shared)
  const inFlight = new Map<number, InFlight>()
  const bundles = new Set<number>()
  let outbox: InFlight[] = []
  let pongs: (() => void)[] = []
  let seq = 0
  let isReady = false
  let becomeReady = () => {}
  const ready = new Promise<void>((resolve) => {
    becomeReady = resolve
  })
  let isEnded = false
  let cause: unknown
  // what transforms post over `parentPort` arrives where nobody listens
  const { port1: port, port2 } = new MessageChannel()
  const start: WorkerStart = { board: shared, memoryMb: limits().memoryMb, port: port2 }
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
        const job = take(seq)
        if (job !== undefined) events.settled(thread, job, outcome)
      }
    } else if (message.kind === 'unrun') {
      events.unrun(
        thread,
        message.seqs.flatMap((seq) => take(seq) ?? []),
      )
    } else if (message.kind === 'leaving') events.leaving(thread, message)
    else if (message.kind === 'checked') events.checked(thread, message)
    else if (message.kind === 'ready') {
      isReady = true
      becomeReady()
    } else if (message.kind === 'pong') {
      for (const pong of pongs) pong()
      pongs = []
    }
  }

  function take(seq: number): Job | undefined {
    const job = inFlight.get(seq)?.job
    inFlight.delete(seq)
    return job
  }

  function flush(): void {
    const batch = outbox.filter(({ seq }) => inFlight.has(seq))
    outbox = []
    if (batch.length === 0) return
    const { message, transfer } = toCallsMessage(batch)
    send(message, transfer)
  }

  const thread: Thread = {
    id: worker.threadId,
    inFlight,
    bundles,
    isReady: () => isReady,
    ready,
    lastSeq: () => seq,
    running: () => Atomics.load(board, words.running),
    load: (bundle) => {
      if (bundles.has(bundle.id)) return
      bundles.add(bundle.id)
      const { id, root, file, code, map } = bundle
      send({ kind: 'load', bundle: { id, root, file, code, map }, timeoutMs: limits().timeoutMs })
    },
    unload: (bundle) => {
      // calls that wait for the end of this turn still need it
      flush()
      if (bundles.delete(bundle)) send({ kind: 'unload', bundle })
    },
    check: (bundle, exports) => send({ kind: 'check', bundle, exports }),
    post: (job) => {
      thread.load(job.bundle)
      seq += 1
      const flight: InFlight = { seq, job, postedAt: performance.now(), begunAt: undefined }
      inFlight.set(seq, flight)
      if (outbox.push(flight) === 1) setImmediate(flush)
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
    recall: () => {
      // this order, and the reverse on the other side: see `board`
      Atomics.store(board, words.recalled, seq)
      const begun = Atomics.load(board, words.begun)
      return [...inFlight.keys()].filter((each) => each > begun).flatMap((each) => take(each) ?? [])
    },
    take,
    takeAll: () => {
      const all = [...inFlight.values()]
      inFlight.clear()
      return all
    },
    begun: () => Atomics.load(board, words.begun),
    end: async () => {
      isEnded = true
      await worker.terminate()
    },
  }
  return thread
}
