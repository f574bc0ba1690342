// The jobs that this process holds. A job whose lease was lost is stopped and reports nothing; the store decides whose it is, never a local clock.
import { toBackoffMs } from '../base/retry.ts'
import type { ClaimedJob } from '../model/job.ts'
import type { Log } from '../model/log.ts'
import type { Clock, JobReport, Store } from '../store/store.ts'
import { pause } from '../base/time.ts'
import { toErrorName } from '../base/exceptions.ts'

export const leaseMs = 30_000

const storeRetry = { firstMs: 500, capMs: 5_000 }

/** A job in hand. The signal ends when it must stop: lost, or given back at a shutdown. */
export type HeldJob = {
  /** As it was claimed last: see `takeOver`. */
  job: ClaimedJob
  readonly abort: AbortController
  isEnding: boolean
  /** The claim whose end the store has written. */
  ended: ClaimedJob | undefined
}

export type Leases = {
  readonly size: number
  /** True after a store call that failed, until one succeeds. */
  readonly storeIsAway: boolean
  /** True when so much time went by since they were prolonged that the store may give them away. */
  readonly mayBeOver: boolean
  noteStore(away: boolean, thrown?: unknown): void
  hold(job: ClaimedJob): HeldJob
  /**
   * True: this job is in hand already and must not be begun a second time. Its lease ran out unnoticed, as the clock jumped,
   * and it was nobody's between: what is in flight goes on under the new claim.
   */
  takeOver(job: ClaimedJob): boolean
  /** Gives back a claim that was taken over after the job had ended, as a retry may be: it is still to be performed. */
  letGo(held: HeldJob): ClaimedJob | undefined
  /** False: the job is not ours any more, or the store stayed away until its signal ended. */
  report(held: HeldJob, what: JobReport): Promise<boolean>
  /** Prolongs all of them and stops those that were lost. Never rejects. */
  extend(): Promise<void>
  abortAll(): void
}

export function createLeases(options: { store: Pick<Store, 'report' | 'extend'>; clock: Clock; log: Log }): Leases {
  const { store, clock, log } = options
  const jobs = new Map<string, HeldJob>()
  let storeIsAway = false
  let keptAt = 0

  /** Hears of every store call, and logs only when the store goes and when it comes back. */
  function noteStore(away: boolean, thrown?: unknown): void {
    if (away && !storeIsAway)
      log.error(
        { thrown: toErrorName(thrown) },
        'the store is away; jobs wait for it, and "hookloom doctor" looks at it',
      )
    if (!away && storeIsAway) log.info({}, 'the store is back')
    storeIsAway = away
  }

  function isOurs(held: HeldJob): boolean {
    return jobs.get(held.job.id) === held
  }

  function stop(held: HeldJob): void {
    jobs.delete(held.job.id)
    held.abort.abort()
    log.warn({ jobId: held.job.id }, 'the lease of a job was lost; it is stopped here')
  }

  return {
    get size() {
      return jobs.size
    },
    get storeIsAway() {
      return storeIsAway
    },
    get mayBeOver() {
      return jobs.size > 0 && clock() - keptAt > leaseMs / 2
    },
    noteStore,
    hold(job) {
      if (jobs.size === 0) keptAt = clock()
      // claimed again under a new fence: the old hold is over
      const before = jobs.get(job.id)
      if (before !== undefined) stop(before)
      const held: HeldJob = { job, abort: new AbortController(), isEnding: false, ended: undefined }
      jobs.set(job.id, held)
      return held
    },
    takeOver(job) {
      const held = jobs.get(job.id)
      // a fence between: another worker had it, and began what ours does not know of
      if (held === undefined || job.fence !== held.job.fence + 1) return false
      held.job = job
      return true
    },
    letGo(held) {
      if (!isOurs(held)) return undefined
      jobs.delete(held.job.id)
      return held.ended !== undefined && held.ended !== held.job ? held.job : undefined
    },
    async report(held, what) {
      held.isEnding = what.outcome !== undefined
      for (let failures = 0; isOurs(held); failures += 1) {
        // a job that must stop gets one try: its lease runs out by itself
        const isLastTry = held.abort.signal.aborted
        try {
          const { job } = held
          const written = await store.report(job, what)
          noteStore(false)
          if (written && held.isEnding) held.ended = job
          // taken over meanwhile: the report counts under the new fence
          if (!written && job !== held.job) continue
          if (!written && isOurs(held)) stop(held)
          return written
        } catch (thrown) {
          noteStore(true, thrown)
          if (isLastTry) return false
        }
        await pause(toBackoffMs(failures, storeRetry), held.abort.signal)
      }
      return false
    },
    async extend() {
      const before = [...jobs.values()].map((held) => ({ held, job: held.job }))
      if (before.length === 0) return
      const now = clock()
      try {
        const ids = new Set(
          await store.extend(
            before.map(({ job: { id, fence } }) => ({ id, fence })),
            leaseMs,
          ),
        )
        keptAt = now
        noteStore(false)
        // a job that ended meanwhile is no longer held, and not lost either
        for (const { held, job } of before) {
          if (!ids.has(job.id) && !held.isEnding && held.job === job && isOurs(held)) stop(held)
        }
      } catch (thrown) {
        noteStore(true, thrown)
      }
    },
    abortAll() {
      for (const { abort } of jobs.values()) abort.abort()
    },
  }
}
