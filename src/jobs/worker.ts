// Performs accepted jobs under leases, up to the allowed number at a time. A job that does not end before a stop is queued again.
import { randomBytes } from 'node:crypto'
import type { Config } from '../model/config.ts'
import type { ClaimedJob } from '../model/job.ts'
import { findMissingSteps } from './plan.ts'
import type { Log, Meter } from '../model/log.ts'
import type { Clock, Store } from '../store/store.ts'
import { cut } from '../base/text.ts'
import { withDeadline } from '../base/time.ts'
import { createLeases, leaseMs } from './leases.ts'
import { type JobContext, performJob } from './perform.ts'
import { defaultRetry, type RetryPolicy, toVerdict } from './retry.ts'
import { toErrorName } from '../base/exceptions.ts'
import { type StepTools, toRetryForMs } from './step.ts'
import { steps } from './steps.ts'

/** Read anew for every job, so that a new config counts at once. */
export type WorkerSettings = Pick<JobContext, 'agent'> &
  Pick<StepTools, 'runner' | 'readWorkspaceFile' | 'channels' | 'defaultRoute' | 'wakeStep'> & {
    readonly config: Config
    /** Jobs at the same time. */
    readonly maxConcurrent: number
    readonly retry?: RetryPolicy
  }

export type WorkerOptions = {
  readonly store: Pick<Store, 'claim' | 'report' | 'extend' | 'nextDueInMs' | 'messages' | 'session' | 'waiting'>
  readonly settings: () => WorkerSettings
  /** Called when an event in the main session of an agent asks for a turn. */
  readonly woken: (agentId: string) => void
  /** Called when a job is dead. */
  readonly died: JobContext['died']
  readonly clock: Clock
  /** In [0, 1), for the jitter of retries. */
  readonly random: () => number
  readonly meter: Meter
  readonly log: Log
  /** 16 unpredictable lower-case hex digits at every call. */
  readonly newBoundaryId?: () => string
}

export type Worker = {
  start(): void
  /** Something may be due: called after each append. */
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

export function createWorker(options: WorkerOptions): Worker {
  const { store, settings, woken, clock, random, log } = options
  const newBoundaryId = options.newBoundaryId ?? (() => randomBytes(8).toString('hex'))
  const leases = createLeases({ store, clock, log })
  const runs = new Set<Promise<void>>()
  let state: 'new' | 'started' | 'stopping' = 'new'
  let pumping: Promise<void> | undefined
  let mustLookAgain = false
  let sleepTimer: NodeJS.Timeout | undefined
  let extendTimer: NodeJS.Timeout | undefined

  async function runJob(job: ClaimedJob): Promise<void> {
    const held = leases.add(job)
    const claimedAt = clock()
    // claimed while the gateway began to stop: released at once
    if (state === 'stopping') held.abort.abort()
    try {
      const {
        retry = defaultRetry,
        config,
        agent,
        wakeStep,
        runner,
        readWorkspaceFile,
        channels,
        defaultRoute,
      } = settings()
      const note = (message: string) => log.info({ jobId: job.id }, cut(message, 500))
      const savePosts: StepTools['savePosts'] = (posts) => leases.report(held, { posts })
      await performJob(job, {
        agent,
        tools: {
          store,
          clock,
          runner,
          readWorkspaceFile,
          newBoundaryId,
          note,
          channels,
          defaultRoute,
          savePosts,
          mayAct: () => leases.isConfirmed(held),
          wakeStep,
        },
        clock,
        signal: held.abort.signal,
        report: async (what) => {
          const isHeld = await leases.report(held, what)
          if (isHeld && what.leavesLane === true) lookForJobs()
          return isHeld
        },
        judge: (failure, step) => {
          const { attempts } = job
          // the failures of an earlier step of this attempt are over
          const isSame = findMissingSteps(job.planned, job.steps)[0] === step && job.failingForMs !== undefined
          return toVerdict(failure, {
            attempts,
            failingForMs: isSame ? job.failingForMs + Math.max(0, clock() - claimedAt) : undefined,
            forMs: toRetryForMs(steps[step], config),
            random: random(),
            policy: retry,
          })
        },
        maxAttempts: retry.attempts,
        woken,
        died: options.died,
        meter: options.meter,
        log,
      })
    } catch (thrown) {
      log.error(
        { jobId: job.id, thrown: toErrorName(thrown) },
        'a job failed unexpectedly; it is tried again when its lease expires',
      )
    } finally {
      leases.remove(held)
    }
  }

  function launch(job: ClaimedJob): void {
    if (leases.takeOver(job)) return
    const run = runJob(job).finally(() => {
      runs.delete(run)
      lookForJobs()
    })
    runs.add(run)
  }

  /** Fills the free slots. Returns the milliseconds to sleep; undefined: until a slot is free. */
  async function fill(): Promise<number | undefined> {
    if (state !== 'started') return undefined
    // after an outage or a jump of the clock our leases may have expired: extend them first, or we would claim our own jobs again
    if (leases.isStoreDown || leases.mayHaveExpired) await leases.extend()
    const free = settings().maxConcurrent - leases.size
    if (free <= 0) return undefined
    const jobs = await store.claim({ limit: free, leaseMs })
    for (const job of jobs) launch(job)
    if (leases.size >= settings().maxConcurrent) return undefined
    const untilDue = await store.nextDueInMs()
    leases.noteStoreState(false)
    if (untilDue === undefined) return longestSleepMs
    return untilDue > 0 ? Math.min(longestSleepMs, untilDue) : shortestSleepMs
  }

  async function pump(): Promise<void> {
    clearTimeout(sleepTimer)
    let sleepMs: number | undefined
    do {
      mustLookAgain = false
      try {
        sleepMs = await fill()
      } catch (thrown) {
        leases.noteStoreState(true, thrown)
        sleepMs = shortestSleepMs
      }
    } while (mustLookAgain)
    pumping = undefined
    if (sleepMs !== undefined && state === 'started') sleepTimer = setTimeout(lookForJobs, sleepMs)
  }

  function lookForJobs(): void {
    if (state !== 'started') return
    mustLookAgain = true
    pumping ??= pump()
  }

  return {
    start() {
      if (state !== 'new') return
      state = 'started'
      extendTimer = setInterval(() => void leases.extend(), extendEveryMs)
      lookForJobs()
    },
    lookForJobs,
    async stop({ graceMs }) {
      state = 'stopping'
      clearTimeout(sleepTimer)
      const ended = async () => {
        await pumping
        await Promise.all(runs)
      }
      const outer = new AbortController().signal
      await withDeadline({ outer, ms: graceMs }, ended)
      leases.abortAll()
      await withDeadline({ outer, ms: releaseMs }, ended)
      clearInterval(extendTimer)
    },
  }
}
