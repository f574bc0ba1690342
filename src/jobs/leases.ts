// The jobs that this process has claimed. A job whose lease was lost is stopped and reports nothing. The store decides who has a lease, never a local clock.
import { toBackoffMs } from '../base/retry.ts'
import type { ClaimedJob } from '../model/job.ts'
import type { Log } from '../model/log.ts'
import type { JobReport } from '../store/records.ts'
import type { Clock, Store } from '../store/store.ts'
import { pause, readClocks, measureElapsedMs, type Moment } from '../base/time.ts'
import { toErrorName } from '../base/exceptions.ts'

export const leaseMs = 30_000

const storeRetry = { firstMs: 500, capMs: 5_000 }

/** A claimed job. The signal ends when the job must stop: its lease was lost, or the gateway stops. */
type HeldJob = {
  /** The last claim: see `takeOver`. */
  job: ClaimedJob
  readonly abort: AbortController
  isEnding: boolean
  /** When the last call began that the store answered with a lease, on this machine's clocks. */
  confirmedAt: Moment
}

/** A lease is trusted for this part of its time. The rest is a margin for what is not measured, such as clocks of different speed. */
const confirmedMs = 20_000

type Leases = {
  readonly size: number
  /** True after a store call that failed, until one succeeds. */
  readonly isStoreDown: boolean
  /** True if the leases may have expired since they were last extended. */
  readonly mayHaveExpired: boolean
  noteStoreState(away: boolean, thrown?: unknown): void
  add(job: ClaimedJob): HeldJob
  /**
   * True: this job is running here already and must not start a second time. Its lease expired because the clock jumped, and
   * no other worker claimed it: the work in progress continues under the new claim.
   */
  takeOver(job: ClaimedJob): boolean
  remove(held: HeldJob): void
  /** False: the process may have paused for longer than the lease since the store confirmed it, so another worker may have the job. */
  isConfirmed(held: HeldJob): boolean
  /** False: the lease was lost, or the store failed until the signal ended. */
  report(held: HeldJob, what: JobReport): Promise<boolean>
  /** Extends all leases and stops the jobs whose lease was lost. Never rejects. */
  extend(): Promise<void>
  abortAll(): void
}

export function createLeases(options: { store: Pick<Store, 'report' | 'extend'>; clock: Clock; log: Log }): Leases {
  const { store, clock, log } = options
  const jobs = new Map<string, HeldJob>()
  let storeIsAway = false
  let extendedAt = 0

  /** Called after every store call. Logs the first failure and the recovery. */
  function noteStoreState(away: boolean, thrown?: unknown): void {
    if (away && !storeIsAway)
      log.error({ thrown: toErrorName(thrown) }, 'the store cannot be used; jobs wait; run "hookloom doctor"')
    if (!away && storeIsAway) log.info({}, 'the store can be used again')
    storeIsAway = away
  }

  function isOurs(held: HeldJob): boolean {
    return jobs.get(held.job.id) === held
  }

  function stop(held: HeldJob): void {
    jobs.delete(held.job.id)
    held.abort.abort()
    log.warn({ jobId: held.job.id }, 'the lease of a job was lost; this gateway stops running it')
  }

  return {
    get size() {
      return jobs.size
    },
    get isStoreDown() {
      return storeIsAway
    },
    get mayHaveExpired() {
      return jobs.size > 0 && clock() - extendedAt > leaseMs / 2
    },
    noteStoreState,
    add(job) {
      if (jobs.size === 0) extendedAt = clock()
      // claimed again under a new fence: the old claim has ended
      const before = jobs.get(job.id)
      if (before?.isEnding) jobs.delete(job.id)
      else if (before !== undefined) stop(before)
      const held: HeldJob = { job, abort: new AbortController(), isEnding: false, confirmedAt: readClocks(clock) }
      jobs.set(job.id, held)
      return held
    },
    takeOver(job) {
      const held = jobs.get(job.id)
      // another fence in between: another worker had the job and may have started steps
      if (held === undefined || job.lapsed !== held.job.fence) return false
      held.job = job
      held.confirmedAt = readClocks(clock)
      return true
    },
    remove(held) {
      if (isOurs(held)) jobs.delete(held.job.id)
    },
    isConfirmed(held) {
      const now = readClocks(clock)
      const pastMs = measureElapsedMs(held.confirmedAt, now)
      return isOurs(held) && pastMs < confirmedMs
    },
    async report(held, what) {
      held.isEnding = what.outcome !== undefined
      for (let failures = 0; isOurs(held); failures += 1) {
        // a job that must stop gets one try: its lease expires anyway
        const isLastTry = held.abort.signal.aborted
        try {
          const { job } = held
          const sureAt = readClocks(clock)
          const written = await store.report(job, { leaseMs, ...what })
          noteStoreState(false)
          if (written) held.confirmedAt = sureAt
          // the job was taken over during the call: the report counts under the new fence
          if (!written && job !== held.job) continue
          if (!written && isOurs(held)) stop(held)
          return written
        } catch (thrown) {
          noteStoreState(true, thrown)
          if (isLastTry) return false
        }
        await pause(toBackoffMs(failures, storeRetry), held.abort.signal)
      }
      return false
    },
    async extend() {
      const before = [...jobs.values()].map((held) => ({ held, job: held.job }))
      if (before.length === 0) return
      const now = readClocks(clock)
      try {
        const ids = new Set(
          await store.extend(
            before.map(({ job: { id, fence } }) => ({ id, fence })),
            leaseMs,
          ),
        )
        extendedAt = now.wall
        noteStoreState(false)
        // a job that ended during the call was not lost
        for (const { held, job } of before) {
          if (ids.has(job.id)) held.confirmedAt = now
          else if (!held.isEnding && held.job === job && isOurs(held)) stop(held)
        }
      } catch (thrown) {
        noteStoreState(true, thrown)
      }
    },
    abortAll() {
      for (const { abort } of jobs.values()) abort.abort()
    },
  }
}
