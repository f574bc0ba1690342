// Threads to come: one warm spare, which takes the place of any that has to go. To start one costs 100 ms.
import type { Log } from '../../model/log.ts'
import type { Problem } from '../../model/problem.ts'
import { toStartProblem } from './stopped.ts'
import type { Thread } from './thread.ts'

/** After a thread did not start, calls fail for this long before another one is tried. */
const startAgainMs = 1000

export type Spare = {
  /** The spare, which it stays: a bundle is tried there. Undefined where no thread starts. */
  peek(): Thread | undefined
  /** The spare, unless it is busy, or a new thread; another spare is warmed when this turn is over. */
  take(): Thread | undefined
  /** This thread is not the spare any more; if it was, another one is warmed. */
  drop(thread: Thread): void
  /** A thread did not start. */
  failed(cause: unknown): void
  /** Why `peek` and `take` had none to give. */
  problem(): Problem
  threads(): readonly Thread[]
  /** No thread starts any more. */
  close(): void
}

export function createSpare(options: { spawn: () => Thread; isBusy: (thread: Thread) => boolean; log: Log }): Spare {
  const { spawn, isBusy, log } = options
  let spare: Thread | undefined
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
    log.error({ err: cause }, 'the worker of transforms does not start')
  }

  function warm(): void {
    setImmediate(() => (spare ??= start()))
  }

  return {
    peek: () => (spare ??= start()),
    take: () => {
      const taken = spare !== undefined && !isBusy(spare) ? spare : undefined
      if (taken !== undefined) spare = undefined
      warm()
      return taken ?? start()
    },
    drop: (thread) => {
      if (spare !== thread) return
      spare = undefined
      warm()
    },
    failed,
    problem: () => toStartProblem(failedStart?.cause),
    threads: () => (spare === undefined ? [] : [spare]),
    close: () => {
      isClosed = true
    },
  }
}
