// Where calls run. A call that was not begun when its thread stopped goes to another one. One that was begun runs again once, alone;
// only a call that is known to have stopped its thread, or that does so alone, has failed.
import type { Log } from '../../model/log.ts'
import { toProblemRecord } from '../../model/problem.ts'
import type { Problem } from '../../model/problem.ts'
import { createAlone } from './alone.ts'
import { type Checks, createChecks } from './checks.ts'
import { toFailed, toLateProblem } from '../worker/call.ts'
import type { BundlePost, Leaving } from '../worker/messages.ts'
import { toFileLabel } from '../root.ts'
import { createRoster } from './roster.ts'
import { createSpare } from './spare.ts'
import { toClosedProblem, toExitProblem, toGoneProblem, toMemoryProblem, toStartProblem } from './stopped.ts'
import { createThread, type Thread } from './thread.ts'
import type { Job } from './flights.ts'
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
    settled: (thread, job, outcome) => {
      job.settle(outcome, false)
      roster.eased(thread)
    },
    unrun: (thread, jobs) => {
      for (const job of jobs) dispatch(job)
      roster.eased(thread)
    },
    leaving: onLeaving,
    checked: (thread, message) => checks.answered(thread, message),
    gone: (thread, cause) => {
      if (thread.isReady()) return stop(thread, undefined, (label) => toGoneProblem(label, cause, limits().memoryMb))
      spare.failed(cause)
      checks.lost(thread, () => toProblemRecord(toStartProblem(cause)))
      for (const { job } of roster.remove(thread)) fail(job, toStartProblem(cause), false)
    },
  }
  const spare = createSpare({
    spawn: () => {
      const thread = createThread({ limits, env: env(), events })
      for (const bundle of kept) thread.load(bundle)
      return thread
    },
    isBusy: (thread) => checks.isBusy(thread),
    log,
  })
  const checks = createChecks({
    takeChecker: spare.peek,
    limits,
    discard: (thread) => roster.end(thread),
    toStartProblem: spare.problem,
  })
  const alone = createAlone({
    most: () => limits().workers,
    take: spare.take,
    posted: () => watchdog.watch(),
    failed: (job) => fail(job, spare.problem(), false),
  })
  const roster = createRoster({ most: () => limits().workers, spare, alone })
  const watchdog = createWatchdog({
    limits,
    threads: roster.working,
    late: (thread, seq) => {
      // it answers: whoever else is in flight there may end
      const job = thread.take(seq)
      if (job === undefined) return
      fail(job, toLateProblem(toFileLabel(job.bundle), limits().timeoutMs), true)
      roster.retire(thread)
      roster.eased(thread)
    },
    stuck: (thread, culprit) => stop(thread, culprit, (label) => toLateProblem(label, limits().timeoutMs)),
    crowded: (thread) => {
      const isFree = (other: Thread) => other.isReady() && other.inFlight.size === 0 && !isHeld(other)
      if ([...roster.serving].some(isFree)) for (const job of thread.recall()) dispatch(job)
    },
    stalled: (thread) => {
      // whatever holds it may hold it for long: the gateway and the other threads go first
      thread.lower()
      for (const job of thread.recall()) dispatch(job)
    },
    overMemory: (thread) => stop(thread, undefined, (label) => toMemoryProblem(label, limits().memoryMb)),
  })

  function dispatch(job: Job): void {
    if (isClosed) return fail(job, toClosedProblem(), false)
    if (roster.serving.size < limits().workers) roster.fill()
    let best = toLeastLoaded()
    if (best !== undefined && isHeld(best)) best = roster.relieve(best)
    if (best === undefined) return fail(job, spare.problem(), false)
    best.post(job)
    watchdog.watch()
    if (best.lastSeq() > callsPerThread) roster.retire(best)
  }

  /** By a call now, or it was, and is slow since. */
  function isHeld(thread: Thread): boolean {
    return watchdog.isStalled(thread) || thread.isLowered()
  }

  function toLeastLoaded(): Thread | undefined {
    let best: Thread | undefined
    let least = Number.POSITIVE_INFINITY
    for (const thread of roster.serving) {
      const load = thread.inFlight.size + (isHeld(thread) ? 1e9 : thread.isReady() ? 0 : 1e6)
      if (load >= least) continue
      best = thread
      least = load
    }
    return best
  }

  /** Ends a thread at once. `culprit`: the number of the call that is known to be the reason. */
  function stop(thread: Thread, culprit: number | undefined, toProblem: (label: string) => Problem): void {
    const wasServing = roster.serving.has(thread)
    const wasAlone = alone.threads.has(thread)
    checks.lost(thread, (label) => toProblemRecord(toProblem(label)))
    const begun = thread.begun()
    const flights = roster.remove(thread)
    // before its calls look for a place
    if (wasServing) roster.fill()
    for (const { seq, job } of flights) {
      if (seq === culprit || (wasAlone && seq <= begun)) fail(job, toProblem(toFileLabel(job.bundle)), true)
      else if (wasAlone || seq <= begun) alone.add(job)
      else dispatch(job)
    }
    alone.begin()
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
      roster.retire(thread)
    }
  }

  return {
    submit: dispatch,
    check: checks.run,
    keep: async (bundles) => {
      kept = bundles
      const ids = new Set(bundles.map(({ id }) => id))
      for (const thread of [...roster.serving, ...spare.threads()]) {
        for (const id of thread.bundles) if (!ids.has(id)) thread.unload(id)
        for (const bundle of bundles) thread.load(bundle)
      }
      if (bundles.length > 0 && roster.serving.size === 0) roster.fill()
      await Promise.all([...roster.serving].map(({ ready }) => ready))
    },
    renew: () => {
      const before = settings
      settings = toSettings()
      const isOutdated = settings !== before
      // the spare first, so that it does not take the place of another one
      if (isOutdated) for (const thread of spare.threads()) roster.end(thread)
      for (const thread of [...roster.serving].slice(isOutdated ? 0 : limits().workers)) roster.retire(thread)
      return isOutdated
    },
    state: () => ({
      threads: roster.working().length + spare.threads().length,
      serving: [...roster.serving].map(({ bundles, inFlight }) => ({ bundles: bundles.size, inFlight: inFlight.size })),
    }),
    close: async () => {
      isClosed = true
      spare.close()
      watchdog.close()
      checks.close(() => toProblemRecord(toClosedProblem()))
      const threads = [...roster.working(), ...spare.threads()]
      const jobs = [...threads.flatMap((thread) => roster.remove(thread).map(({ job }) => job)), ...alone.takeAll()]
      for (const job of jobs) fail(job, toClosedProblem(), false)
      await roster.gone()
    },
  }
}

function fail(job: Job, problem: Problem, stopped: boolean): void {
  job.settle(toFailed(problem), stopped)
}
