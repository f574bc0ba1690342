// Keeps one started thread in reserve to replace a stopped one, because a thread takes 100 ms to start.
import type { Log } from '../../../base/log.ts'
import type { Problem } from '../../model/problem.ts'
import { buildStartProblem } from '../worker/call.ts'
import type { Thread } from './thread.ts'

/** If a thread does not start, calls that find no other thread fail for this time. Then another start is tried. */
const startAgainMs = 1000

export type Standby = {
  /** Returns the standby for a test of a bundle, without taking it. Undefined if no thread can be started. */
  peek(): Thread | undefined
  /** Takes the standby, or a new thread if the standby is busy or missing. The next standby starts after this turn of the event loop. */
  take(): Thread | undefined
  /** Called when the thread is ending. If it was the standby, another one is started. */
  drop(thread: Thread): void
  /** Called if a thread did not start. */
  recordFailure(cause: unknown): void
  /** Why `peek` and `take` returned no thread. */
  problem(): Problem
  threads(): readonly Thread[]
  /** From then on, no thread is started. */
  close(): void
}

export function createStandby(options: {
  spawn: () => Thread
  isBusy: (thread: Thread) => boolean
  /** False: a thread is started only when it is needed. */
  isKept: boolean
  /** Called when a thread has started after others could not. Without a kept standby, only a call starts a thread. */
  onStartedAgain: () => void
  log: Log
}): Standby {
  const { spawn, isBusy, isKept, onStartedAgain, log } = options
  let standby: Thread | undefined
  let failedStart: { at: number; cause: unknown } | undefined
  let isClosed = false
  let timer: NodeJS.Timeout | undefined

  /** `isDue`: the pause after a failed start is over, by the timer, which may fire earlier than `performance.now` shows. */
  function start(isDue = false): Thread | undefined {
    const isTooEarly = failedStart !== undefined && performance.now() - failedStart.at < startAgainMs
    if (isClosed || (isTooEarly && !isDue)) return undefined
    try {
      const thread = spawn()
      if (failedStart !== undefined) void reportStart(thread)
      return thread
    } catch (error) {
      recordFailure(error)
      return undefined
    }
  }

  async function reportStart(thread: Thread): Promise<void> {
    await thread.ready
    if (isClosed || failedStart === undefined || !thread.isReady()) return
    failedStart = undefined
    onStartedAgain()
  }

  function recordFailure(cause: unknown): void {
    // one line for all failures in a row
    if (failedStart === undefined) log.error({ err: cause }, 'the transform worker does not start')
    failedStart = { at: performance.now(), cause }
    clearTimeout(timer)
    if (isKept && !isClosed) timer = setTimeout(startAgain, startAgainMs).unref()
  }

  function startAgain(): void {
    if (standby === undefined) standby = start(true)
    else void reportStart(standby)
  }

  function startNext(): void {
    if (isKept) setImmediate(() => (standby ??= start()))
  }

  return {
    peek: () => (standby ??= start()),
    take: () => {
      const taken = standby !== undefined && !isBusy(standby) ? standby : undefined
      if (taken !== undefined) standby = undefined
      startNext()
      return taken ?? start()
    },
    drop: (thread) => {
      if (standby !== thread) return
      standby = undefined
      startNext()
    },
    recordFailure,
    problem: () => buildStartProblem(failedStart?.cause),
    threads: () => (standby === undefined ? [] : [standby]),
    close: () => {
      isClosed = true
      clearTimeout(timer)
    },
  }
}
