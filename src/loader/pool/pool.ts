// Where calls run. A call that was not begun when its thread stopped goes to another one. One that was begun runs again once, alone;
// only a call that is known to have stopped its thread, or that does so alone, has failed.
import type { Log } from '../../model/log.ts'
import { toProblemRecord } from '../../model/problem.ts'
import type { Problem } from '../../model/problem.ts'
import { createIsolatedReruns } from './isolated-reruns.ts'
import { type Checks, createChecks } from './checks.ts'
import {
  toClosedProblem,
  toExitProblem,
  toFailed,
  toGoneProblem,
  toLateProblem,
  toMemoryProblem,
  toStartProblem,
} from '../worker/call.ts'
import type { BundlePost, Leaving } from '../worker/messages.ts'
import { toFileLabel } from '../root.ts'
import { createThreadLifecycle } from './thread-lifecycle.ts'
import { createStandby } from './standby.ts'
import { createThread, type Thread } from './thread.ts'
import type { Task } from './calls-in-flight.ts'
import { createWatchdog } from './watchdog.ts'

export type PoolLimits = { readonly timeoutMs: number; readonly memoryMb: number; readonly workers: number }

export type Pool = {
  submit(task: Task): void
  /** Evaluates a bundle in the standby thread and looks for its exports. */
  check: Checks['run']
  /**
   * Gives these bundles to every thread, and takes all others away. Calls of another one bring it along. Resolves when the
   * serving threads have started.
   */
  keep(bundles: readonly BundlePost[]): Promise<void>
  /** Replaces the threads where they were started with other settings than those of now; says so. Calls in flight may end. */
  renew(): boolean
  /** Threads that are alive, and the bundles that each serving one holds. */
  state(): { threads: number; serving: { bundles: number; inFlight: number }[] }
  close(): Promise<void>
}

/** Calls of one thread after which it is replaced: far below what 32 bits count. */
const callsPerThread = 1_000_000_000

export function createPool(options: {
  limits: () => PoolLimits
  env: () => Readonly<Record<string, string>>
  log: Log
  /** Code of this bundle ended a worker after its call had ended. */
  onStopped: (bundle: number) => void
}): Pool {
  const { limits, env, log, onStopped } = options
  let kept: readonly BundlePost[] = []
  /** What a thread keeps from its start to its end. */
  const toSettings = () => JSON.stringify([limits().memoryMb, env()])
  let settings = toSettings()
  let isClosed = false

  const events: Parameters<typeof createThread>[0]['events'] = {
    settled: (thread, task, outcome) => {
      task.finish(outcome, false)
      lifecycle.callEnded(thread)
    },
    unrun: (thread, tasks) => {
      for (const task of tasks) dispatch(task)
      lifecycle.callEnded(thread)
    },
    leaving: onLeaving,
    checked: (thread, message) => checks.answered(thread, message),
    gone: (thread, cause) => {
      if (thread.isReady()) return stop(thread, undefined, (label) => toGoneProblem(label, cause, limits().memoryMb))
      standby.failed(cause)
      checks.lost(thread, () => toProblemRecord(toStartProblem(cause)))
      for (const { task } of lifecycle.remove(thread)) fail(task, toStartProblem(cause), false)
    },
  }
  const standby = createStandby({
    spawn: () => {
      const thread = createThread({ limits, env: env(), events })
      for (const bundle of kept) thread.load(bundle)
      return thread
    },
    isBusy: (thread) => checks.isBusy(thread),
    log,
  })
  const checks = createChecks({
    takeChecker: standby.peek,
    limits,
    discard: (thread) => lifecycle.end(thread),
    toStartProblem: standby.problem,
  })
  const reruns = createIsolatedReruns({
    most: () => limits().workers,
    take: standby.take,
    posted: () => watchdog.watch(),
    failed: (task) => fail(task, standby.problem(), false),
  })
  const lifecycle = createThreadLifecycle({ most: () => limits().workers, standby, reruns })
  const watchdog = createWatchdog({
    limits,
    threads: lifecycle.working,
    late: (thread, seq) => {
      // it answers: whoever else is in flight there may end
      const task = thread.take(seq)
      if (task === undefined) return
      fail(task, toLateProblem(toFileLabel(task.bundle), limits().timeoutMs), true)
      lifecycle.retire(thread)
      lifecycle.callEnded(thread)
    },
    stuck: (thread, culprit) => stop(thread, culprit, (label) => toLateProblem(label, limits().timeoutMs)),
    crowded: (thread) => {
      const isFree = (other: Thread) => other.isReady() && other.inFlight.size === 0 && !isHeld(other)
      if ([...lifecycle.serving].some(isFree)) for (const task of thread.recall()) dispatch(task)
    },
    stalled: (thread) => {
      // whatever holds it may hold it for long: the gateway and the other threads go first
      thread.lower()
      for (const task of thread.recall()) dispatch(task)
    },
    overMemory: (thread) => stop(thread, undefined, (label) => toMemoryProblem(label, limits().memoryMb)),
  })

  function dispatch(task: Task): void {
    if (isClosed) return fail(task, toClosedProblem(), false)
    if (lifecycle.serving.size < limits().workers) lifecycle.fill()
    let best = toLeastLoaded()
    if (best !== undefined && isHeld(best)) best = lifecycle.replaceBusy(best)
    if (best === undefined) return fail(task, standby.problem(), false)
    best.post(task)
    watchdog.watch()
    if (best.lastSeq() > callsPerThread) lifecycle.retire(best)
  }

  /** By a call now, or it was, and is slow since. */
  function isHeld(thread: Thread): boolean {
    return watchdog.isStalled(thread) || thread.isLowered()
  }

  function toLeastLoaded(): Thread | undefined {
    let best: Thread | undefined
    let least = Number.POSITIVE_INFINITY
    for (const thread of lifecycle.serving) {
      const load = thread.inFlight.size + (isHeld(thread) ? 1e9 : thread.isReady() ? 0 : 1e6)
      if (load >= least) continue
      best = thread
      least = load
    }
    return best
  }

  /** Ends a thread at once. `culprit`: the number of the call that is known to be the reason. */
  function stop(thread: Thread, culprit: number | undefined, toProblem: (label: string) => Problem): void {
    const wasServing = lifecycle.serving.has(thread)
    const wasRerun = reruns.threads.has(thread)
    checks.lost(thread, (label) => toProblemRecord(toProblem(label)))
    const begun = thread.begun()
    const inFlightCalls = lifecycle.remove(thread)
    // before its calls look for a place
    if (wasServing) lifecycle.fill()
    for (const { seq, task } of inFlightCalls) {
      if (seq === culprit || (wasRerun && seq <= begun)) fail(task, toProblem(toFileLabel(task.bundle)), true)
      else if (wasRerun || seq <= begun) reruns.add(task)
      else dispatch(task)
    }
    reruns.startNext()
  }

  function onLeaving(thread: Thread, leaving: Leaving): void {
    const { why, what, seq, bundle } = leaving
    const isKnown = seq !== undefined && thread.inFlight.has(seq)
    if (!isKnown && bundle !== undefined && (why === 'exit' || why === 'uncaught')) onStopped(bundle)
    log.warn({ why, what }, 'a transform worker is replaced')
    if (why === 'exit') stop(thread, seq, (label) => toExitProblem(label, what))
    else if (why === 'memory') stop(thread, undefined, (label) => toMemoryProblem(label, limits().memoryMb))
    else {
      const { problem } = leaving
      const task = problem !== undefined && seq !== undefined ? thread.take(seq) : undefined
      if (task !== undefined && problem !== undefined) task.finish({ kind: 'failed', problem, log: [] }, true)
      if (problem !== undefined) checks.lost(thread, () => problem)
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
    renew: () => {
      const before = settings
      settings = toSettings()
      const isOutdated = settings !== before
      // the standby thread first, so that it does not take the place of another one
      if (isOutdated) for (const thread of standby.threads()) lifecycle.end(thread)
      for (const thread of [...lifecycle.serving].slice(isOutdated ? 0 : limits().workers)) lifecycle.retire(thread)
      return isOutdated
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
      checks.close(() => toProblemRecord(toClosedProblem()))
      const threads = [...lifecycle.working(), ...standby.threads()]
      const tasks = [
        ...threads.flatMap((thread) => lifecycle.remove(thread).map(({ task }) => task)),
        ...reruns.takeAll(),
      ]
      for (const task of tasks) fail(task, toClosedProblem(), false)
      await lifecycle.allEnded()
    },
  }
}

function fail(task: Task, problem: Problem, stopped: boolean): void {
  task.finish(toFailed(problem), stopped)
}
