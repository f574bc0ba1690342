// Performs jobs under leases. A job that does not end before a stop is queued again.
import type { ClaimedJob } from '../../model/job.ts'
import type { RunningTurn, Slots } from '../../model/runner.ts'
import { type Moment, readClocks, withDeadline } from '../../base/time.ts'
import { createLeases, leaseMs } from './leases.ts'
import { performJob } from './perform.ts'
import { listRunTasks } from './plan.ts'
import { toErrorName } from '../../base/exceptions.ts'
import type { JobDependencies, JobSettings } from './step.ts'

export type Worker = {
  start(): void
  slots(): Slots
  /** The reply so far of a job that runs here; undefined if its runner has shown none. */
  replySoFar(jobId: string): string | undefined
  /** Looks for due jobs. */
  lookForJobs(): void
  /** Looks for due jobs and for tasks, which no delivery caused, such as heartbeats. One task runs here even if all slots are full. */
  lookForTasks(): void
  /** Claims no new job, waits `graceMs` for the running jobs, then stops and releases them. */
  stop(options: { graceMs: number }): Promise<void>
}

const extendEveryMs = 10_000
/** How often the worker asks which of its jobs must stop: another gateway may have ended them. */
const stopEveryMs = 1_000
/** The longest sleep of the worker: leases of lost jobs expire without a notice. */
const maxSleepMs = leaseMs
/** The sleep while a due job cannot start, such as one in a busy lane, and after a failure of the store. */
const retrySleepMs = 1_000
/** The time that a stop waits for the reports of stopped jobs. If the store fails, their leases expire instead. */
const releaseMs = 5_000

/**
 * ```
 *       start            all slots are full, or nothing is due
 * new ─────────▶ looking ────────────────────────────────────▶ sleeping
 *                 │   ▲                                        │   │
 *                 │   └─ lookForJobs, a job ended, the timer ──┘   │
 *                 └────────────────▶ stopping ◀────────────────────┘
 * ```
 */
type WorkerState =
  | { readonly kind: 'new' }
  | { readonly kind: 'looking'; mustLookAgain: boolean }
  | { readonly kind: 'sleeping'; readonly timer: NodeJS.Timeout }
  | { readonly kind: 'stopping' }

export function createWorker(options: JobDependencies & { readonly settings: () => JobSettings }): Worker {
  const { store, settings, clock, log, meter } = options
  const leases = createLeases({ store, clock, log, onLaneLeft: lookForJobs })
  /** The running jobs, and the search for others. */
  const works = new Set<Promise<void>>()
  let state: WorkerState = { kind: 'new' }
  let timers: NodeJS.Timeout[] = []
  const turns = new Set<RunningTurn>()
  /** The replies so far of the turns that run, by the id of their job. */
  const replies = new Map<string, string | undefined>()
  let fullSince: number | undefined
  /** Whether a task may wait while all slots are full. */
  let mayHaveTask = true
  /** Whether a job that runs here may have been ended since the last look. A new job of the intake ends another one only in a claim. */
  let mayHaveEnding = true

  function track(work: Promise<void>): void {
    const tracked = work.finally(() => works.delete(tracked))
    works.add(tracked)
  }

  function trackTurn(turn: RunningTurn): () => void {
    turns.add(turn)
    replies.set(turn.jobId, undefined)
    return () => {
      turns.delete(turn)
      replies.delete(turn.jobId)
    }
  }

  /** A runner may write after the end of its turn. */
  function noteReply(jobId: string, text: string): void {
    if (replies.has(jobId)) replies.set(jobId, text)
  }

  async function runJob(job: ClaimedJob, calledAt: Moment): Promise<void> {
    // a job that was claimed while the gateway began to stop is released at once
    const lease = leases.acquire(job, { calledAt, isStopping: state.kind === 'stopping' })
    try {
      await performJob(job, { ...options, ...settings(), lease, claimedAt: clock(), trackTurn, noteReply })
    } catch (thrown) {
      log.error(
        { jobId: job.id, thrown: toErrorName(thrown) },
        'a job failed unexpectedly; it is tried again when its lease expires',
      )
    } finally {
      await lease.end()
      await makeTasksDue(job)
      lookForJobs()
    }
  }

  /** Makes the tasks due that wait for the end of this run. Otherwise, they would find the end later. */
  async function makeTasksDue(job: ClaimedJob): Promise<void> {
    try {
      for (const name of listRunTasks(job)) if (await store.makeDue(name)) lookForTasks()
    } catch (thrown) {
      log.warn({ jobId: job.id, thrown: toErrorName(thrown) }, 'the status or the callback of a run comes later')
    }
  }

  async function claimJobs(query: Parameters<typeof store.claim>[0]): Promise<number> {
    const calledAt = readClocks(clock)
    const jobs = await store.claim({
      ...query,
      onEnded: (ended) => {
        for (const { end } of ended) meter('flow_ends', { by: end })
      },
    })
    for (const job of jobs) if (!leases.renew(job, calledAt)) track(runJob(job, calledAt))
    return jobs.length
  }

  /** Fills the free slots. Returns the milliseconds to sleep; 0: a claim at once may find more. */
  async function fill(): Promise<number> {
    if (state.kind === 'stopping') return maxSleepMs
    // without this, the worker might claim its own jobs again, because their leases may have expired
    await leases.extendAfterGap()
    const { agents, limits, hooks } = settings().config
    const { maxConcurrent } = agents.defaults
    const free = maxConcurrent - leases.size
    const isCounted = [...hooks.mappings, hooks.agent].some(({ flow }) => flow?.onFull === 'refuse')
    // a claim also assigns new jobs to their keys, so it runs even without a free slot: a new job may end a running turn of its key, and
    // `flow.onFull` counts the jobs of a key
    const limit = Math.max(0, free)
    const claims = limit > 0 || leases.hasFlows || isCounted
    const claimed = claims ? await claimJobs({ limit, leaseMs, limits }) : 0
    if (leases.size >= maxConcurrent && mayHaveTask && !leases.hasTask)
      mayHaveTask = (await claimJobs({ limit: 1, leaseMs, limits, only: 'tasks' })) > 0
    if (claims || mayHaveEnding) {
      mayHaveEnding = false
      await leases.stopEnding()
    }
    // a slot that is free only for a moment, until the claim above fills it, does not count as free
    fullSince = leases.size < maxConcurrent ? undefined : (fullSince ?? clock())
    if (leases.size >= maxConcurrent) return maxSleepMs
    // jobs ended during a claim that was full, so more jobs are probably due: the next claim finds them, and needs no search for the time
    if (limit > 0 && claimed >= limit) return 0
    const untilDue = await store.nextDueInMs()
    leases.noteStoreAnswer()
    if (untilDue === undefined) return maxSleepMs
    return untilDue > 0 ? Math.min(maxSleepMs, untilDue) : retrySleepMs
  }

  async function look(): Promise<void> {
    const looking = { kind: 'looking' as const, mustLookAgain: false }
    state = looking
    let sleepMs: number
    do {
      looking.mustLookAgain = false
      try {
        sleepMs = await fill()
      } catch (thrown) {
        leases.noteStoreFailure(thrown)
        sleepMs = retrySleepMs
      }
    } while (looking.mustLookAgain || sleepMs === 0)
    if (state !== looking) return
    state = { kind: 'sleeping', timer: setTimeout(lookForTasks, sleepMs) }
  }

  function lookForTasks(): void {
    mayHaveTask = true
    mayHaveEnding = true
    lookForJobs()
  }

  function lookForJobs(): void {
    if (state.kind === 'looking') state.mustLookAgain = true
    if (state.kind !== 'sleeping') return
    clearTimeout(state.timer)
    track(look())
  }

  return {
    start() {
      if (state.kind !== 'new') return
      timers = [
        setInterval(() => void leases.extend(), extendEveryMs),
        setInterval(() => void leases.stopEnding(), stopEveryMs),
      ]
      track(look())
    },
    replySoFar: (jobId) => replies.get(jobId),
    slots() {
      const { maxConcurrent: most } = settings().config.agents.defaults
      return { used: leases.size, most, fullSince: leases.size < most ? undefined : fullSince, turns: [...turns] }
    },
    lookForJobs,
    lookForTasks,
    async stop({ graceMs }) {
      if (state.kind === 'sleeping') clearTimeout(state.timer)
      state = { kind: 'stopping' }
      const waitUntilIdle = async () => {
        while (works.size > 0) await Promise.all(works)
      }
      const outer = new AbortController().signal
      await withDeadline({ outer, ms: graceMs }, waitUntilIdle)
      leases.abortAll()
      await withDeadline({ outer, ms: releaseMs }, waitUntilIdle)
      for (const timer of timers) clearInterval(timer)
    },
  }
}
