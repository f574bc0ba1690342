// Threads to come: one warm standby, which takes the place of any that has to go. To start one costs 100 ms.
import type { Log } from '../../model/log.ts'
import type { Problem } from '../../model/problem.ts'
import { toStartProblem } from '../worker/call.ts'
import type { Thread } from './thread.ts'

/** After a thread did not start, calls fail for this long before another one is tried. */
const startAgainMs = 1000

export type Standby = {
  /** The standby, which it stays: a bundle is tried there. Undefined where no thread starts. */
  peek(): Thread | undefined
  /** The standby, unless it is busy, or a new thread; another standby is warmed when this turn is over. */
  take(): Thread | undefined
  /** This thread is not the standby any more; if it was, another one is warmed. */
  drop(thread: Thread): void
  /** A thread did not start. */
  failed(cause: unknown): void
  /** Why `peek` and `take` had none to give. */
  problem(): Problem
  threads(): readonly Thread[]
  /** No thread starts any more. */
  close(): void
}

export function createStandby(options: {
  spawn: () => Thread
  isBusy: (thread: Thread) => boolean
  log: Log
}): Standby {
  const { spawn, isBusy, log } = options
  let standby: Thread | undefined
  let failedStart: { at: number; cause: unknown } | undefined
  let isClosed = false

  function start(): Thread | undefined {
    if (isClosed || (failedStart !== undefined && performance.now() - failedStart.at < startAgainMs)) return undefined
    try {
      return spawn()
    } catch (error) {
      failed(error)
      return undefined
    }
  }

  function failed(cause: unknown): void {
    failedStart = { at: performance.now(), cause }
    log.error({ err: cause }, 'the transform worker does not start')
  }

  function warm(): void {
    setImmediate(() => (standby ??= start()))
  }

  return {
    peek: () => (standby ??= start()),
    take: () => {
      const taken = standby !== undefined && !isBusy(standby) ? standby : undefined
      if (taken !== undefined) standby = undefined
      warm()
      return taken ?? start()
    },
    drop: (thread) => {
      if (standby !== thread) return
      standby = undefined
      warm()
    },
    failed,
    problem: () => toStartProblem(failedStart?.cause),
    threads: () => (standby === undefined ? [] : [standby]),
    close: () => {
      isClosed = true
    },
  }
}
