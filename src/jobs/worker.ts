// Performs accepted jobs under leases, up to the allowed number at a time. A job that does not end before a stop is queued again.
import type { ClaimedJob } from '../model/job.ts'
import { withDeadline } from '../base/time.ts'
import { createLeases, leaseMs } from './leases.ts'
import { performJob } from './perform.ts'
import { toErrorName } from '../base/exceptions.ts'
import type { JobDependencies, JobSettings } from './step.ts'

export type Worker = {
  start(): void
  /** Looks for due jobs. Called after each append. */
  lookForJobs(): void
  /** Claims no new job, waits `graceMs` for the running jobs, then stops and releases them. */
  stop(options: { graceMs: number }): Promise<void>
}

const extendEveryMs = 10_000
/** The longest sleep of the worker: leases of lost jobs expire without a notice. */
const longestSleepMs = leaseMs
/** The shortest sleep: a due job in a busy lane must not cause a busy loop. */
const shortestSleepMs = 1_000
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
  /** `timer`: undefined while all slots are full. */
  | { readonly kind: 'sleeping'; readonly timer: NodeJS.Timeout | undefined }
  | { readonly kind: 'stopping' }

export function createWorker(options: JobDependencies & { readonly settings: () => JobSettings }): Worker {
  const { store, settings, clock, log } = options
  const leases = createLeases({ store, clock, log, laneLeft: lookForJobs })
  /** The running jobs, and the search for others. */
  const works = new Set<Promise<void>>()
  let state: WorkerState = { kind: 'new' }
  let extendTimer: NodeJS.Timeout | undefined

  function track(work: Promise<void>): void {
    const tracked = work.finally(() => works.delete(tracked))
    works.add(tracked)
  }

  async function runJob(job: ClaimedJob): Promise<void> {
    // claimed while the gateway began to stop: released at once
    const lease = leases.acquire(job, { isStopping: state.kind === 'stopping' })
    try {
      await performJob(job, { ...options, ...settings(), lease, claimedAt: clock() })
    } catch (thrown) {
      log.error(
        { jobId: job.id, thrown: toErrorName(thrown) },
        'a job failed unexpectedly; it is tried again when its lease expires',
      )
    } finally {
      lease.end()
      lookForJobs()
    }
  }

  /** Fills the free slots. Returns the milliseconds to sleep; undefined: until a slot is free. */
  async function fill(): Promise<number | undefined> {
    if (state.kind === 'stopping') return undefined
    // otherwise we would claim our own jobs again
    await leases.extendAfterGap()
    const { maxConcurrent } = settings().config.agents.defaults
    const free = maxConcurrent - leases.size
    if (free <= 0) return undefined
    const jobs = await store.claim({ limit: free, leaseMs })
    for (const job of jobs) if (!leases.renew(job)) track(runJob(job))
    if (leases.size >= maxConcurrent) return undefined
    const untilDue = await store.nextDueInMs()
    leases.storeAnswered()
    if (untilDue === undefined) return longestSleepMs
    return untilDue > 0 ? Math.min(longestSleepMs, untilDue) : shortestSleepMs
  }

  async function look(): Promise<void> {
    const looking = { kind: 'looking' as const, mustLookAgain: false }
    state = looking
    let sleepMs: number | undefined
    do {
      looking.mustLookAgain = false
      try {
        sleepMs = await fill()
      } catch (thrown) {
        leases.storeFailed(thrown)
        sleepMs = shortestSleepMs
      }
    } while (looking.mustLookAgain)
    if (state !== looking) return
    state = { kind: 'sleeping', timer: sleepMs === undefined ? undefined : setTimeout(lookForJobs, sleepMs) }
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
      extendTimer = setInterval(() => void leases.extend(), extendEveryMs)
      track(look())
    },
    lookForJobs,
    async stop({ graceMs }) {
      if (state.kind === 'sleeping') clearTimeout(state.timer)
      state = { kind: 'stopping' }
      const ended = async () => {
        while (works.size > 0) await Promise.all(works)
      }
      const outer = new AbortController().signal
      await withDeadline({ outer, ms: graceMs }, ended)
      leases.abortAll()
      await withDeadline({ outer, ms: releaseMs }, ended)
      clearInterval(extendTimer)
    },
  }
}
