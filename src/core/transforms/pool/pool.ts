// Runs calls in threads. If a thread is stopped, its calls that had not begun move to another thread. Calls that had begun run again once,
// each alone. A stop fails only the call that is known to have caused it, or that ran alone.
import type { Log } from '../../../base/log.ts'
import { toProblemRecord } from '../../model/problem.ts'
import type { Problem } from '../../model/problem.ts'
import { createIsolatedReruns } from './isolated-reruns.ts'
import { type Checks, createChecks } from './checks.ts'
import {
  buildShutdownProblem,
  buildExitProblem,
  toFailedOutcome,
  buildLoadTimeoutProblem,
  buildLostThreadProblem,
  buildTimeoutProblem,
  buildMemoryProblem,
  buildStartProblem,
} from '../worker/call.ts'
import type { BundlePost, ThreadExit } from '../worker/messages.ts'
import { toFileLabel } from '../root.ts'
import { createThreadLifecycle } from './thread-lifecycle.ts'
import { createStandby } from './standby.ts'
import { createThread, type Thread, type ThreadSettings } from './thread.ts'
import type { CallEnd, Task } from './calls-in-flight.ts'
import { createWatchdog } from './watchdog.ts'

export type PoolSettings = ThreadSettings & { readonly workers: number }

export type Pool = {
  submit(task: Task): void
  /** Evaluates a bundle in the standby thread and checks its exports. */
  check: Checks['run']
  /**
   * Loads these bundles in every thread, and removes all others. A call of another bundle loads it again. Resolves when the serving
   * threads have started.
   */
  keep(bundles: readonly BundlePost[]): Promise<void>
  /** The number of running threads, and the number of bundles and calls of each serving thread. */
  state(): { threads: number; serving: { bundles: number; inFlight: number }[] }
  close(): Promise<void>
}

/** A thread is replaced after this many calls, which is far below the limit of the 32-bit counters. */
const callsPerThread = 1_000_000_000

export function createPool(options: {
  settings: PoolSettings
  log: Log
  /** Called when code of this bundle ended or blocked a worker, or threw without a handler, while none of its calls was in flight. */
  onStopped: (bundle: number) => void
  /** Called when threads start again after they could not. `bundles`: those whose calls failed because there was no thread. */
  onStartedAgain: (bundles: readonly number[]) => void
  /** Whether a started thread waits in reserve. Default: true. */
  hasStandby?: boolean
  /** Whether the threads run shadows: see `createThread`. */
  isShadow?: boolean | undefined
  /** If it is set, the threads measure coverage: see `createThread`. */
  onCovered?: ((bundle: number, parts: readonly number[]) => void) | undefined
}): Pool {
  const { settings, log, onStopped, onStartedAgain, onCovered, hasStandby = true, isShadow = false } = options
  const { timeoutMs, memoryMb, workers } = settings
  let kept: readonly BundlePost[] = []
  let isClosed = false
  /** The bundles whose calls failed since threads could not be started. */
  const withoutThread = new Set<number>()

  const events: Parameters<typeof createThread>[0]['events'] = {
    onCovered,
    onSettled: (thread, task, outcome) => {
      task.finish(outcome, 'ended')
      lifecycle.handleCallEnd(thread)
    },
    onUnrun: (thread, tasks) => {
      for (const task of tasks) dispatch(task)
      lifecycle.handleCallEnd(thread)
    },
    onThreadExit,
    onChecked: (thread, message) => checks.complete(thread, message),
    onGone: (thread, cause) => {
      if (thread.isReady()) return stop(thread, undefined, (label) => buildLostThreadProblem(label, cause, memoryMb))
      standby.recordFailure(cause)
      stop(thread, undefined, () => buildStartProblem(cause))
    },
  }
  const standby = createStandby({
    spawn: () => {
      const thread = createThread({ settings, events, isShadow })
      for (const bundle of kept) thread.load(bundle)
      return thread
    },
    isBusy: (thread) => checks.isBusy(thread),
    isKept: hasStandby,
    onStartedAgain: () => {
      const bundles = [...withoutThread]
      withoutThread.clear()
      onStartedAgain(bundles)
    },
    log,
  })
  const checks = createChecks({
    takeChecker: standby.peek,
    timeoutMs,
    discard: (thread) => lifecycle.end(thread),
    buildStartProblem: standby.problem,
  })
  const reruns = createIsolatedReruns({
    max: workers,
    take: standby.take,
    onPosted: () => watchdog.watch(),
    onFailed: failWithoutThread,
  })
  const lifecycle = createThreadLifecycle({ max: workers, standby, reruns })
  const watchdog = createWatchdog({
    limits: settings,
    threads: lifecycle.working,
    onLate: (thread, seq) => {
      // the thread still answers, so its other calls may end
      const task = thread.take(seq)
      if (task === undefined) return
      fail(task, buildTimeoutProblem(toFileLabel(task.bundle), timeoutMs), 'stopped')
      lifecycle.retire(thread)
      lifecycle.handleCallEnd(thread)
    },
    onStuck: (thread, culprit) => stop(thread, culprit, (label) => buildTimeoutProblem(label, timeoutMs)),
    onStuckLoad: stopLoading,
    onCrowded: (thread) => {
      const isFree = (other: Thread) => other.isReady() && other.inFlight.size === 0 && !isBlocked(other)
      if ([...lifecycle.serving].some(isFree)) for (const task of thread.recall()) dispatch(task)
    },
    onStalled: (thread) => {
      // the call may block the thread for long, so the thread gets a lower priority than the gateway and the other threads
      thread.reducePriority()
      for (const task of thread.recall()) dispatch(task)
    },
    onOverMemory: (thread) => stop(thread, undefined, (label) => buildMemoryProblem(label, memoryMb)),
  })

  function dispatch(task: Task): void {
    if (isClosed) return fail(task, buildShutdownProblem(), 'unrun')
    if (lifecycle.serving.size < workers) lifecycle.fill()
    let best = findLeastLoaded()
    if (best !== undefined && isBlocked(best)) best = lifecycle.replaceBlocked(best)
    if (best === undefined) return failWithoutThread(task)
    best.post(task)
    watchdog.watch()
    if (best.lastSeq() > callsPerThread) lifecycle.retire(best)
  }

  function failWithoutThread(task: Task): void {
    withoutThread.add(task.bundle.id)
    fail(task, standby.problem(), 'unrun')
  }

  /** Whether a call blocks the thread now, or blocked it before and so lowered its priority. */
  function isBlocked(thread: Thread): boolean {
    return watchdog.isStalled(thread) || thread.hasLowPriority()
  }

  function findLeastLoaded(): Thread | undefined {
    let best: Thread | undefined
    let least = Number.POSITIVE_INFINITY
    for (const thread of lifecycle.serving) {
      const load = thread.inFlight.size + (isBlocked(thread) ? 1e9 : thread.isReady() ? 0 : 1e6)
      if (load >= least) continue
      best = thread
      least = load
    }
    return best
  }

  /** Terminates a thread at once. `culprit`: the number of the call that caused it, if it is known. */
  function stop(thread: Thread, culprit: number | undefined, buildProblem: (label: string) => Problem): void {
    const wasServing = lifecycle.serving.has(thread)
    const wasRerun = reruns.threads.has(thread)
    checks.fail(thread, (label) => toProblemRecord(buildProblem(label)))
    const begun = thread.begun()
    const inFlightCalls = lifecycle.remove(thread)
    // the thread is replaced before its calls are dispatched again
    if (wasServing) lifecycle.fill()
    for (const { seq, task } of inFlightCalls) {
      if (seq === culprit || (wasRerun && seq <= begun)) fail(task, buildProblem(toFileLabel(task.bundle)), 'stopped')
      else if (wasRerun || seq <= begun) reruns.add(task)
      else dispatch(task)
    }
    reruns.startNext()
  }

  /** Terminates a thread that the top level of a bundle blocks. New threads load the bundle only for a call of it. */
  function stopLoading(thread: Thread, bundle: number): void {
    kept = kept.filter(({ id }) => id !== bundle)
    for (const spare of standby.threads()) if (spare.loading() === bundle && !checks.isBusy(spare)) lifecycle.end(spare)
    const waiting = [...thread.inFlight.values()].filter(({ task }) => task.bundle.id === bundle)
    if (waiting.length === 0) onStopped(bundle)
    for (const [index, { seq, task }] of waiting.entries()) {
      thread.take(seq)
      // one stop for one terminated thread
      fail(task, buildLoadTimeoutProblem(toFileLabel(task.bundle), timeoutMs), index === 0 ? 'stopped' : 'unrun')
    }
    stop(thread, undefined, (label) => buildTimeoutProblem(label, timeoutMs))
  }

  function onThreadExit(thread: Thread, leaving: ThreadExit): void {
    const { why, what, seq, bundle } = leaving
    const isKnown = seq !== undefined && thread.inFlight.has(seq)
    if (!isKnown && bundle !== undefined && (why === 'exit' || why === 'uncaught')) onStopped(bundle)
    log.warn({ why, what }, 'a transform worker is replaced')
    if (why === 'exit') stop(thread, seq, (label) => buildExitProblem(label, what))
    else if (why === 'memory') stop(thread, undefined, (label) => buildMemoryProblem(label, memoryMb))
    else {
      const { problem } = leaving
      const task = problem !== undefined && seq !== undefined ? thread.take(seq) : undefined
      if (task !== undefined && problem !== undefined) task.finish({ kind: 'failed', problem, log: [] }, 'stopped')
      if (problem !== undefined) checks.fail(thread, () => problem)
      lifecycle.retire(thread)
    }
  }

  return {
    submit: dispatch,
    check: checks.run,
    keep: async (bundles) => {
      kept = bundles
      const ids = new Set(bundles.map(({ id }) => id))
      for (const thread of [...lifecycle.serving, ...standby.threads()]) {
        for (const id of thread.bundles) if (!ids.has(id)) thread.unload(id)
        for (const bundle of bundles) thread.load(bundle)
      }
      if (bundles.length > 0 && lifecycle.serving.size === 0) lifecycle.fill()
      await Promise.all([...lifecycle.serving].map(({ ready }) => ready))
    },
    state: () => ({
      threads: lifecycle.working().length + standby.threads().length,
      serving: [...lifecycle.serving].map(({ bundles, inFlight }) => ({
        bundles: bundles.size,
        inFlight: inFlight.size,
      })),
    }),
    close: async () => {
      isClosed = true
      standby.close()
      watchdog.close()
      checks.close(() => toProblemRecord(buildShutdownProblem()))
      const threads = [...lifecycle.working(), ...standby.threads()]
      const tasks = [
        ...threads.flatMap((thread) => lifecycle.remove(thread).map(({ task }) => task)),
        ...reruns.takeAll(),
      ]
      for (const task of tasks) fail(task, buildShutdownProblem(), 'unrun')
      await lifecycle.allEnded()
    },
  }
}

function fail(task: Task, problem: Problem, end: CallEnd): void {
  task.finish(toFailedOutcome(problem), end)
}
