// Where calls run: some serving threads, and one warm spare that takes the place of any that has to go.
// ```
// spare ──▶ serving ──▶ retiring (its calls in flight may end) ──▶ gone
//   │          └──── stopped: no good call is lost with it ──────▶ gone
//   └─▶ alone: one call that was in flight in a stopped one ─────▶ gone
// ```
// A call that was not begun when its thread stopped goes to another one. One that was begun runs again once, alone; only a call
// that is known to have stopped its thread, or that does so alone, has failed.
import type { Log } from '../model/log.ts'
import { toProblemRecord } from '../model/problem.ts'
import type { Problem } from '../model/problem.ts'
import { createChecks } from './checks.ts'
import type { Checks } from './checks.ts'
import { toFailed, toLateProblem } from './call.ts'
import type { BundlePost, Leaving } from './messages.ts'
import { toFileLabel } from './root.ts'
import { toClosedProblem, toExitProblem, toGoneProblem, toMemoryProblem, toStartProblem } from './stopped.ts'
import { createThread } from './thread.ts'
import type { Job, Thread } from './thread.ts'
import { createWatchdog } from './watchdog.ts'

export type PoolLimits = { readonly timeoutMs: number; readonly memoryMb: number; readonly workers: number }

export type Pool = {
  submit(job: Job): void
  /** Evaluates a bundle in the spare and looks for its exports. */
  check: Checks['run']
  /**
   * Gives these bundles to every thread, and takes all others away. Calls of another one bring it along. Resolves when the
   * serving threads have started.
   */
  keep(bundles: readonly BundlePost[]): Promise<void>
  /** Threads that are alive, and the bundles that each serving one holds. */
  state(): { threads: number; serving: { bundles: number; inFlight: number }[] }
  close(): Promise<void>
}

/** After a thread did not start, calls fail for this long before another one is tried. */
const startAgainMs = 1000
/** Calls of one thread after which it is replaced: far below what 32 bits count. */
const callsPerThread = 1_000_000_000

export function createPool(options: {
  limits: () => PoolLimits
  env: Readonly<Record<string, string>>
  log: Log
  /** Code of this bundle ended a worker after its call had ended. */
  onStopped: (bundle: number) => void
}): Pool {
  const { limits, env, log, onStopped } = options
  const serving = new Set<Thread>()
  const retiring = new Set<Thread>()
  const alone = new Set<Thread>()
  const waitingAlone: Job[] = []
  const ends = new Set<Promise<void>>()
  let spare: Thread | undefined
  let kept: readonly BundlePost[] = []
  let failedStart: { at: number; cause: unknown } | undefined
  let isClosed = false

  const events: Parameters<typeof createThread>[0]['events'] = {
    settled: (thread, job, outcome) => {
      job.settle(outcome, false)
      afterCall(thread)
    },
    unrun: (thread, jobs) => {
      for (const job of jobs) dispatch(job)
      afterCall(thread)
    },
    leaving: onLeaving,
    checked: (thread, message) => checks.answered(thread, message),
    gone: (thread, cause) => {
      if (thread.isReady()) return stop(thread, undefined, (label) => toGoneProblem(label, cause, limits().memoryMb))
      failedStart = { at: performance.now(), cause }
      log.error({ err: cause }, 'the worker of transforms does not start')
      checks.lost(thread, () => toProblemRecord(toStartProblem(cause)))
      for (const { job } of remove(thread)) fail(job, toStartProblem(cause), false)
    },
  }
  const checks = createChecks({
    takeChecker: () => (spare ??= spawn()),
    limits,
    discard: end,
    toStartProblem: () => toStartProblem(failedStart?.cause),
  })
  const watchdog = createWatchdog({
    limits,
    threads: () => [...serving, ...retiring, ...alone],
    late: (thread, seq) => {
      // it answers: whoever else is in flight there may end
      const job = thread.take(seq)
      if (job === undefined) return
      fail(job, toLateProblem(toFileLabel(job.bundle), limits().timeoutMs), true)
      retire(thread)
      afterCall(thread)
    },
    stuck: (thread, culprit) => stop(thread, culprit, (label) => toLateProblem(label, limits().timeoutMs)),
    stalled: (thread) => {
      for (const job of thread.recall()) dispatch(job)
    },
    overMemory: (thread) => stop(thread, undefined, (label) => toMemoryProblem(label, limits().memoryMb)),
  })

  function spawn(): Thread | undefined {
    if (isClosed || (failedStart !== undefined && performance.now() - failedStart.at < startAgainMs)) return undefined
    try {
      const thread = createThread({ limits: limits(), env, events })
      for (const bundle of kept) thread.load(bundle)
      return thread
    } catch (error) {
      failedStart = { at: performance.now(), cause: error }
      log.error({ err: error }, 'the worker of transforms does not start')
      return undefined
    }
  }

  /** The spare, or a new thread where there is none; another spare is warmed when this turn is over. */
  function takeSpare(): Thread | undefined {
    const taken = spare !== undefined && !checks.isBusy(spare) ? spare : undefined
    if (taken !== undefined) spare = undefined
    warm()
    return taken ?? spawn()
  }

  function warm(): void {
    setImmediate(() => (spare ??= spawn()))
  }

  function fill(): void {
    while (serving.size < limits().workers) {
      const thread = takeSpare()
      if (thread === undefined) return
      serving.add(thread)
    }
  }

  function dispatch(job: Job): void {
    if (isClosed) return fail(job, toClosedProblem(), false)
    if (serving.size < limits().workers) fill()
    let best = toLeastLoaded()
    if (best === undefined || watchdog.isStalled(best)) best = replaceStalled(best)
    if (best === undefined) return fail(job, toStartProblem(failedStart?.cause), false)
    best.post(job)
    watchdog.watch()
    if (best.lastSeq() > callsPerThread) retire(best)
  }

  function toLeastLoaded(): Thread | undefined {
    let best: Thread | undefined
    let least = Number.POSITIVE_INFINITY
    for (const thread of serving) {
      const load = thread.inFlight.size + (watchdog.isStalled(thread) ? 1e9 : thread.isReady() ? 0 : 1e6)
      if (load >= least) continue
      best = thread
      least = load
    }
    return best
  }

  /** Every serving thread is held by a call: one makes room for a free thread, unless too many are held already. */
  function replaceStalled(stalled: Thread | undefined): Thread | undefined {
    if (stalled === undefined || retiring.size >= 2 * limits().workers) return stalled
    const fresh = takeSpare()
    if (fresh === undefined) return stalled
    serving.add(fresh)
    retire(stalled)
    return fresh
  }

  /** No more calls; it ends with the last one that is in flight. */
  function retire(thread: Thread): void {
    if (serving.delete(thread)) retiring.add(thread)
    if (thread.inFlight.size === 0 && !alone.has(thread)) end(thread)
    if (serving.size < limits().workers && serving.size + retiring.size > 0) fill()
  }

  function afterCall(thread: Thread): void {
    if (thread.inFlight.size > 0) return
    if (retiring.has(thread) || alone.has(thread)) end(thread)
    startAlone()
  }

  function remove(thread: Thread) {
    const flights = thread.takeAll()
    end(thread)
    return flights
  }

  function end(thread: Thread): void {
    serving.delete(thread)
    retiring.delete(thread)
    alone.delete(thread)
    if (spare === thread) {
      spare = undefined
      warm()
    }
    const ending = thread.end().finally(() => ends.delete(ending))
    ends.add(ending)
  }

  /** Ends a thread at once. `culprit`: the number of the call that is known to be the reason. */
  function stop(thread: Thread, culprit: number | undefined, toProblem: (label: string) => Problem): void {
    const wasServing = serving.has(thread)
    const wasAlone = alone.has(thread)
    checks.lost(thread, (label) => toProblemRecord(toProblem(label)))
    const begun = thread.begun()
    const flights = remove(thread)
    // before its calls look for a place
    if (wasServing) fill()
    for (const { seq, job } of flights) {
      if (seq === culprit || (wasAlone && seq <= begun)) fail(job, toProblem(toFileLabel(job.bundle)), true)
      else if (wasAlone || seq <= begun) waitingAlone.push(job)
      else dispatch(job)
    }
    startAlone()
  }

  function startAlone(): void {
    while (waitingAlone.length > 0 && alone.size < limits().workers) {
      const thread = takeSpare()
      const job = waitingAlone.shift()
      if (job === undefined) return
      if (thread === undefined) {
        fail(job, toStartProblem(failedStart?.cause), false)
        continue
      }
      alone.add(thread)
      thread.post(job)
      watchdog.watch()
    }
  }

  function onLeaving(thread: Thread, leaving: Leaving): void {
    const { why, what, seq, bundle } = leaving
    const isKnown = seq !== undefined && thread.inFlight.has(seq)
    if (!isKnown && bundle !== undefined && (why === 'exit' || why === 'uncaught')) onStopped(bundle)
    log.warn({ why, what }, 'a worker of transforms is replaced')
    if (why === 'exit') stop(thread, seq, (label) => toExitProblem(label, what))
    else if (why === 'memory') stop(thread, undefined, (label) => toMemoryProblem(label, limits().memoryMb))
    else {
      const { problem } = leaving
      const job = problem !== undefined && seq !== undefined ? thread.take(seq) : undefined
      if (job !== undefined && problem !== undefined) job.settle({ kind: 'failed', problem, log: [] }, true)
      if (problem !== undefined) checks.lost(thread, () => problem)
      retire(thread)
    }
  }

  return {
    submit: dispatch,
    check: checks.run,
    keep: async (bundles) => {
      kept = bundles
      const ids = new Set(bundles.map(({ id }) => id))
      for (const thread of [...serving, ...(spare === undefined ? [] : [spare])]) {
        for (const id of thread.bundles) if (!ids.has(id)) thread.unload(id)
        for (const bundle of bundles) thread.load(bundle)
      }
      if (bundles.length > 0 && serving.size === 0) fill()
      await Promise.all([...serving].map(({ ready }) => ready))
    },
    state: () => ({
      threads: serving.size + retiring.size + alone.size + (spare === undefined ? 0 : 1),
      serving: [...serving].map(({ bundles, inFlight }) => ({ bundles: bundles.size, inFlight: inFlight.size })),
    }),
    close: async () => {
      isClosed = true
      watchdog.close()
      checks.close(() => toProblemRecord(toClosedProblem()))
      const threads = [...serving, ...retiring, ...alone, ...(spare === undefined ? [] : [spare])]
      const jobs = [...threads.flatMap((thread) => remove(thread).map(({ job }) => job)), ...waitingAlone.splice(0)]
      for (const job of jobs) fail(job, toClosedProblem(), false)
      await Promise.all(ends)
    },
  }
}

function fail(job: Job, problem: Problem, stopped: boolean): void {
  job.settle(toFailed(problem), stopped)
}
