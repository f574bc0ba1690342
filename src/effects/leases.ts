// The jobs that this process holds. A job whose lease was lost is stopped and reports nothing; the store decides whose it is, never a local clock.
import type { ClaimedJob } from '../model/job.ts'
import type { Log } from '../model/log.ts'
import type { JobReport, Store } from '../store/store.ts'
import { pause } from './deadline.ts'
import { toThrownName } from './thrown.ts'

export const leaseMs = 30_000

const storeRetryMs = { first: 500, cap: 5_000 }

/** A job in hand. The signal ends when it must stop: lost, or given back at a shutdown. */
export type HeldJob = { readonly job: ClaimedJob; readonly abort: AbortController; isEnding: boolean }

export type Leases = {
  readonly size: number
  /** True after a store call that failed, until one succeeds. */
  readonly storeIsAway: boolean
  noteStore(away: boolean, thrown?: unknown): void
  hold(job: ClaimedJob): HeldJob
  letGo(held: HeldJob): void
  /** False: the job is not ours any more, or the store stayed away until its signal ended. */
  report(held: HeldJob, what: JobReport): Promise<boolean>
  /** Prolongs all of them and stops those that were lost. Never rejects. */
  extend(): Promise<void>
  abortAll(): void
}

export function createLeases({ store, log }: { store: Pick<Store, 'report' | 'extend'>; log: Log }): Leases {
  const jobs = new Map<string, HeldJob>()
  let storeIsAway = false

  /** Hears of every store call, and logs only when the store goes and when it comes back. */
  function noteStore(away: boolean, thrown?: unknown): void {
    if (away && !storeIsAway) log.error({ thrown: toThrownName(thrown) }, 'the store is away; jobs wait for it')
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
    noteStore,
    hold(job) {
      // claimed again under a new fence: the old hold is over
      const before = jobs.get(job.id)
      if (before !== undefined) stop(before)
      const held: HeldJob = { job, abort: new AbortController(), isEnding: false }
      jobs.set(job.id, held)
      return held
    },
    letGo(held) {
      if (isOurs(held)) jobs.delete(held.job.id)
    },
    async report(held, what) {
      held.isEnding = what.outcome !== undefined
      for (let wait = storeRetryMs.first; isOurs(held); wait = Math.min(storeRetryMs.cap, wait * 2)) {
        // a job that must stop gets one try: its lease runs out by itself
        const isLastTry = held.abort.signal.aborted
        try {
          const written = await store.report(held.job, what)
          noteStore(false)
          if (!written && isOurs(held)) stop(held)
          return written
        } catch (thrown) {
          noteStore(true, thrown)
          if (isLastTry) return false
        }
        await pause(wait, held.abort.signal)
      }
      return false
    },
    async extend() {
      const before = [...jobs.values()]
      if (before.length === 0) return
      try {
        const ids = new Set(
          await store.extend(
            before.map(({ job: { id, fence } }) => ({ id, fence })),
            leaseMs,
          ),
        )
        noteStore(false)
        // a job that ended meanwhile is no longer held, and not lost either
        for (const held of before) if (!ids.has(held.job.id) && !held.isEnding && isOurs(held)) stop(held)
      } catch (thrown) {
        noteStore(true, thrown)
      }
    },
    abortAll() {
      for (const { abort } of jobs.values()) abort.abort()
    },
  }
}
