// The jobs that this process has claimed. A job whose lease was lost is stopped and reports nothing. The store decides who has a lease,
// never a local clock.
import { toBackoffMs } from '../../base/retry.ts'
import type { Spending } from '../../model/spending.ts'
import type { ClaimedJob } from '../../model/job.ts'
import type { Log } from '../../base/log.ts'
import type { Reservation, ReserveResult, SettledTurn } from '../../store/budgets.ts'
import type { JobReport } from '../../store/records.ts'
import type { Clock, Store } from '../../store/store.ts'
import { sleepUntilAborted, readClocks, measureElapsedMs, type Moment } from '../../base/time.ts'
import { toErrorName } from '../../base/exceptions.ts'

export const leaseMs = 30_000
/** A lease is trusted for this part of its time. The rest is a margin, for example for clocks that do not run equally fast. */
const confirmedMs = 20_000
const storeRetry = { firstMs: 500, capMs: 5_000 }

/** The lease of one claimed job. */
export type JobLease = {
  /** Aborted when the job must stop: its lease was lost, or the gateway stops. */
  readonly signal: AbortSignal
  /** Whether a newer request or an operator has ended the job. All that the job started must end before its last report frees its key. */
  mustEnd(): boolean
  /**
   * Whether the lease is certainly still valid. If not, the process may have paused for longer than the lease, so another worker may have the
   * job.
   */
  isConfirmed(): boolean
  /** Reports to the store. Resolves to false if the lease was lost, or if the store failed until the signal was aborted. */
  report(what: JobReport): Promise<boolean>
  /**
   * Reserves what a turn may use of its budgets. `ifUnknown`: the amounts that the next report settles if it has no usage of the turn. After
   * `waits`, the lease has ended. `lost`: the lease was lost, or the store failed until the signal was aborted.
   */
  reserve(turn: TurnReservation): Promise<ReserveResult>
  /** Called when the job has ended here. If its lease is over already, its key and its lane are free from then on. */
  end(): Promise<void>
}

/** Asks the store for a lease that this process cannot confirm. Returns false if the lease was lost. */
export async function confirmLease(lease: Pick<JobLease, 'isConfirmed' | 'report'>): Promise<boolean> {
  while (!lease.isConfirmed()) if (!(await lease.report({}))) return false
  return true
}

type TurnReservation = { readonly reservations: readonly Reservation[]; readonly ifUnknown: Spending }

type Leases = {
  readonly size: number
  /** Whether a job runs here that a newer request may end. */
  readonly hasFlows: boolean
  /** Whether a job that no delivery caused runs here. */
  readonly hasTask: boolean
  /** `calledAt`: when the claim was made, which may have been answered late. `isStopping`: the job must stop at once. */
  acquire(job: ClaimedJob, options: { readonly calledAt: Moment; readonly isStopping: boolean }): JobLease
  /**
   * Returns true if this job already runs here, so it must not start a second time: its lease expired because the clock jumped, and no other
   * worker claimed it. The running work continues under the new claim.
   */
  renew(job: ClaimedJob, calledAt: Moment): boolean
  /** Extends all leases and stops the jobs whose lease was lost. Never rejects. */
  extend(): Promise<void>
  /** Like `extend`, but only if the leases may have expired: after an outage of the store or a jump of the clock. */
  extendAfterGap(): Promise<void>
  /** Stops the jobs that an operator or a newer request has ended. Their last report ends them in the store. Never rejects. */
  stopEnding(): Promise<void>
  /** The first failure of the store and its recovery are logged. */
  noteStoreAnswer(): void
  noteStoreFailure(thrown: unknown): void
  abortAll(): void
}

/**
 * ```
 *             renew: a new fence after a jump of the clock
 *              ┌──┐
 *              │  ▼                 an outcome is reported
 * acquire ──▶ running ────────────────────────────────────▶ ending
 *               │                                             │
 *               │ end, or the store refuses the fence         │ end, or the store refuses the fence
 *               └───────────────▶ over ◀──────────────────────┘
 * ```
 */
type Claim = {
  state: 'running' | 'ending' | 'over'
  /** The job, with the fields of its last claim. */
  job: ClaimedJob
  /** When the claim of the job, or its last successful report or extension began, by the clocks of this machine. */
  confirmedAt: Moment
  /** Whether the store refuses its reports, because a newer request or an operator has ended the job. */
  mustEnd: boolean
  readonly abort: AbortController
  /** The amounts that the next report settles if it has no usage of the turn. */
  unsettled: readonly SettledTurn[] | undefined
}

/** `onLaneLeft`: called when a job has left its lane or has settled a turn, so that another job may be due. */
export function createLeases(options: {
  store: Pick<Store, 'report' | 'reserve' | 'extend' | 'jobsToEnd'>
  clock: Clock
  log: Log
  onLaneLeft: () => void
}): Leases {
  const { store, clock, log, onLaneLeft } = options
  /** The claims that are not over, by job id. */
  const claims = new Map<string, Claim>()
  let isStoreDown = false
  let extendedAt = 0

  function end(claim: Claim): void {
    if (claims.get(claim.job.id) === claim) claims.delete(claim.job.id)
    claim.state = 'over'
  }

  function lose(claim: Claim): void {
    end(claim)
    claim.abort.abort()
    if (claim.mustEnd) return
    log.warn({ jobId: claim.job.id }, 'the lease of a job was lost; this gateway stops running it')
  }

  function stop(claim: Claim): void {
    claim.mustEnd = true
    claim.abort.abort(new DOMException('The job was ended.', 'EndedError'))
    log.info({ jobId: claim.job.id }, 'a job is stopped, because it was ended')
  }

  function noteStoreAnswer(): void {
    if (isStoreDown) log.info({}, 'the store can be used again')
    isStoreDown = false
  }

  function noteStoreFailure(thrown: unknown): void {
    if (!isStoreDown)
      log.error({ thrown: toErrorName(thrown) }, 'the store cannot be used; jobs wait; run "hookloom doctor"')
    isStoreDown = true
  }

  async function report(claim: Claim, what: JobReport): Promise<boolean> {
    const isOver = () => claim.state === 'over'
    if (what.outcome !== undefined && !isOver()) claim.state = 'ending'
    for (let failures = 0; !isOver(); failures += 1) {
      // for a job that must stop, the report is tried only once: the lease expires anyway
      const isLastTry = claim.abort.signal.aborted
      try {
        const { job } = claim
        const calledAt = readClocks(clock)
        const settled = claim.unsettled && { settled: claim.unsettled }
        const isWritten = await store.report(job, { leaseMs, ...settled, ...what })
        noteStoreAnswer()
        if (isWritten) {
          claim.confirmedAt = calledAt
          if (what.leavesLane === true || settled !== undefined) onLaneLeft()
          claim.unsettled = undefined
          return true
        }
        // the job was claimed again during the call: the report counts under the new fence
        if (job !== claim.job) continue
        if (claim.mustEnd) {
          end(claim)
          onLaneLeft()
        } else if (!isOver()) lose(claim)
        return false
      } catch (thrown) {
        noteStoreFailure(thrown)
        if (isLastTry) return false
      }
      await sleepUntilAborted(toBackoffMs(failures, storeRetry), claim.abort.signal)
    }
    return false
  }

  async function reserve(claim: Claim, { reservations, ifUnknown }: TurnReservation): Promise<ReserveResult> {
    const isOver = () => claim.state === 'over'
    for (let failures = 0; !isOver() && !claim.abort.signal.aborted; failures += 1) {
      const { job } = claim
      try {
        const reserved = await store.reserve(job, reservations)
        noteStoreAnswer()
        // the job was claimed again during the call
        if (reserved.kind === 'lost' && job !== claim.job) continue
        if (reserved.kind === 'lost' && !isOver()) lose(claim)
        if (reserved.kind === 'waits') claim.state = 'ending'
        if (reserved.kind === 'reserved') {
          claim.unsettled = reservations.map(({ name, startsAt }) => ({ name, startsAt, used: ifUnknown }))
        }
        return reserved
      } catch (thrown) {
        noteStoreFailure(thrown)
      }
      await sleepUntilAborted(toBackoffMs(failures, storeRetry), claim.abort.signal)
    }
    return { kind: 'lost' }
  }

  async function extend(): Promise<void> {
    const before = [...claims.values()].map((claim) => ({ claim, job: claim.job }))
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
      noteStoreAnswer()
      for (const { claim, job } of before) {
        if (ids.has(job.id)) claim.confirmedAt = now
        // the lease of a job that ended, or was claimed again, during the call was not lost
        else if (claim.state === 'running' && claim.job === job) lose(claim)
      }
    } catch (thrown) {
      noteStoreFailure(thrown)
    }
  }

  return {
    get size() {
      return claims.size
    },
    get hasTask() {
      return [...claims.values()].some(({ job }) => job.deliveryId === undefined)
    },
    get hasFlows() {
      return [...claims.values()].some(({ job }) => job.hasFlow)
    },
    acquire(job, { calledAt, isStopping }) {
      if (claims.size === 0) extendedAt = clock()
      const before = claims.get(job.id)
      // the job was claimed again under a new fence, so the old claim has ended
      if (before?.state === 'ending') end(before)
      else if (before !== undefined) lose(before)
      const claim: Claim = {
        state: 'running',
        job,
        confirmedAt: calledAt,
        abort: new AbortController(),
        mustEnd: false,
        unsettled: undefined,
      }
      if (isStopping) claim.abort.abort()
      claims.set(job.id, claim)
      return {
        signal: claim.abort.signal,
        mustEnd: () => claim.mustEnd,
        isConfirmed: () =>
          claim.state !== 'over' &&
          !claim.mustEnd &&
          measureElapsedMs(claim.confirmedAt, readClocks(clock)) < confirmedMs,
        report: (what) => report(claim, what),
        reserve: (turn) => reserve(claim, turn),
        end: async () => {
          const isLost = claim.state === 'over'
          end(claim)
          // the work on the job has ended here, so its key and its lane are free; if the lease was really lost, the store refuses the report
          if (isLost) await store.report(claim.job, { outcome: { kind: 'release' } }).catch(noteStoreFailure)
        },
      }
    },
    renew(job, calledAt) {
      const claim = claims.get(job.id)
      // if the lease that expired is not the one of this claim, another worker had the job and may have started steps
      if (claim === undefined || job.lapsedFence !== claim.job.fence) return false
      claim.job = job
      claim.confirmedAt = calledAt
      return true
    },
    extend,
    async stopEnding() {
      if (claims.size === 0 || isStoreDown) return
      try {
        for (const { id, fence } of await store.jobsToEnd()) {
          const claim = claims.get(id)
          if (claim?.job.fence === fence && !claim.mustEnd) stop(claim)
        }
      } catch (thrown) {
        noteStoreFailure(thrown)
      }
    },
    async extendAfterGap() {
      if (isStoreDown || (claims.size > 0 && clock() - extendedAt > leaseMs / 2)) await extend()
    },
    noteStoreAnswer,
    noteStoreFailure,
    abortAll() {
      for (const { abort } of claims.values()) abort.abort()
    },
  }
}
