// The jobs of the memory store: lanes, leases and fences as store.ts promises them.
import type { ClaimedJob, Job } from '../model/job.ts'
import type { Clock, JobReport, NewEvent, NewJob, NewTask, Store } from './store.ts'
import { leaseLost } from './rules.ts'
import { clockSetBackMs } from './rules.ts'

/** A job in order of arrival: the map keeps it. */
export type MemoryJob = {
  -readonly [Key in keyof ClaimedJob]: ClaimedJob[Key]
} & { readonly lane: string | undefined; readonly standsFor: string | undefined; endedAt: number | undefined }

type Effects = {
  clock: Clock
  addEvents: (deliveryId: string | undefined, events: readonly NewEvent[]) => void
  keepTurn: (job: MemoryJob, report: JobReport) => void
}

export function createMemoryJobs({ clock, addEvents, keepTurn }: Effects) {
  const all = new Map<string, MemoryJob>()
  const ofDelivery = new Map<string, MemoryJob[]>()
  /** In order of arrival, so that a claim does not look at what has ended. */
  let unfinished = new Set<MemoryJob>()
  const running = new Set<MemoryJob>()

  /** The queued jobs that no other job of their lane holds up, in order of arrival. */
  function* inFront(): Generator<MemoryJob> {
    const taken = new Set([...running].map(({ lane }) => lane))
    for (const job of unfinished) {
      if (job.state !== 'queued') continue
      if (job.lane !== undefined && taken.has(job.lane)) continue
      taken.add(job.lane)
      yield job
    }
  }

  function held({ id, fence }: { id: string; fence: number }): MemoryJob | undefined {
    const job = all.get(id)
    return job?.state === 'running' && job.fence === fence ? job : undefined
  }

  function add(made: Pick<MemoryJob, 'id' | 'deliveryId' | 'planned' | 'lane' | 'state' | 'steps' | 'standsFor'>) {
    const now = clock()
    const job: MemoryJob = {
      ...made,
      attempts: 0,
      createdAt: now,
      runAt: now,
      lockedUntil: undefined,
      lastError: undefined,
      posts: [],
      fence: 0,
      endedAt: made.state === 'done' ? now : undefined,
    }
    all.set(job.id, job)
    if (job.state === 'queued') unfinished.add(job)
    return job
  }

  function giveBack(job: MemoryJob, runAt: number): void {
    running.delete(job)
    Object.assign(job, { state: 'queued', lockedUntil: undefined, runAt })
  }

  function finish(job: MemoryJob, state: 'done' | 'dead'): void {
    running.delete(job)
    unfinished.delete(job)
    Object.assign(job, { state, lockedUntil: undefined, endedAt: clock() })
  }

  function end(job: MemoryJob, outcome: NonNullable<JobReport['outcome']>): void {
    switch (outcome.kind) {
      case 'release':
        return giveBack(job, clock())
      case 'retry':
        if (outcome.counted !== false) job.attempts += 1
        job.lastError = outcome.error
        return giveBack(job, outcome.runAt)
      case 'done':
      case 'dead':
        if (outcome.kind === 'done' || outcome.counted !== false) job.attempts += 1
        if (outcome.kind === 'dead') job.lastError = outcome.error
        finish(job, outcome.kind)
    }
  }

  /** Ends those that are queued; gives back how many. */
  function drop(jobs: readonly MemoryJob[]): number {
    const queued = jobs.filter(({ state }) => state === 'queued')
    for (const job of queued) {
      job.lastError = 'dropped'
      finish(job, 'dead')
    }
    return queued.length
  }

  return {
    all,
    add(deliveryId: string, { id, planned, lane, state, steps }: NewJob): void {
      const job = add({ id, deliveryId, planned, lane, state, steps, standsFor: undefined })
      ofDelivery.set(deliveryId, [...(ofDelivery.get(deliveryId) ?? []), job])
    },
    isQueued: (standsFor: string): boolean =>
      [...unfinished].some((job) => job.standsFor === standsFor && job.state === 'queued'),
    addTask({ id, planned, lane, standsFor }: NewTask): void {
      add({ id, deliveryId: undefined, planned, lane, state: 'queued', steps: [], standsFor })
    },
    claim({ limit, leaseMs }: Parameters<Store['claim']>[0]): ClaimedJob[] {
      const now = clock()
      for (const job of running) {
        if ((job.lockedUntil ?? 0) > now) continue
        Object.assign(job, { attempts: job.attempts + 1, lastError: leaseLost })
        giveBack(job, now)
      }
      const due: MemoryJob[] = []
      for (const job of inFront()) {
        if (due.length >= limit) break
        // one that was never tried is due whatever the clock says: it may have been set back
        if (job.runAt <= now || job.runAt === job.createdAt || job.runAt > now + clockSetBackMs) due.push(job)
      }
      return due.map((job) => {
        running.add(job)
        Object.assign(job, { state: 'running', fence: job.fence + 1, lockedUntil: now + leaseMs })
        return { ...toJob(job), fence: job.fence }
      })
    },
    report(which: { id: string; fence: number }, report: JobReport): boolean {
      const { step, events = [], posts, outcome } = report
      const job = held(which)
      if (!job) return false
      if (!step || !job.steps.some(({ name }) => name === step.name)) {
        if (step) job.steps = [...job.steps, step]
        addEvents(job.deliveryId, events)
        keepTurn(job, report)
      }
      if (posts) job.posts = posts
      if (outcome) end(job, outcome)
      return true
    },
    extend(which: readonly { id: string; fence: number }[], leaseMs: number): string[] {
      return which.flatMap((each) => {
        const job = held(each)
        if (!job) return []
        job.lockedUntil = clock() + leaseMs
        return [job.id]
      })
    },
    nextRunAt(): number | undefined {
      let next: number | undefined
      for (const { runAt } of inFront()) next = Math.min(next ?? runAt, runAt)
      return next
    },
    dueSince(): number | undefined {
      const due = [...inFront()].map(({ runAt }) => runAt).filter((runAt) => runAt <= clock())
      return due.length === 0 ? undefined : Math.min(...due)
    },
    lastTaskAt: (standsFor: string): number | undefined =>
      [...all.values()].findLast((job) => job.standsFor === standsFor)?.createdAt,
    requeue(id: string): boolean {
      const job = all.get(id)
      if (job?.state !== 'dead') return false
      const posts = job.posts.filter(({ state }) => state === 'sent')
      Object.assign(job, { state: 'queued', attempts: 0, posts, runAt: clock(), endedAt: undefined })
      unfinished = new Set([...all.values()].filter(({ endedAt }) => endedAt === undefined))
      return true
    },
    /** Ends the queued jobs of a delivery; gives back how many. */
    endQueued: (deliveryId: string): number => drop(ofDelivery.get(deliveryId) ?? []),
    /** What ended before the moment goes, what waits since then is dropped: of the jobs that no delivery caused. */
    pruneTasks(before: number): void {
      const old = [...all.values()].filter((job) => job.standsFor !== undefined && job.createdAt < before)
      for (const { id, endedAt = before } of old) if (endedAt < before) all.delete(id)
      drop(old)
    },
    job(id: string): Job | undefined {
      const job = all.get(id)
      return job && toJob(job)
    },
    dead(limit: number): Job[] {
      const dead = [...all.values()].filter(({ state }) => state === 'dead')
      return dead.slice(-limit).map(toJob)
    },
    of(deliveryId: string): Job[] {
      return (ofDelivery.get(deliveryId) ?? []).map(toJob)
    },
    endedBefore(deliveryId: string, before: number): boolean {
      return (ofDelivery.get(deliveryId) ?? []).every(({ endedAt }) => endedAt !== undefined && endedAt < before)
    },
    remove(deliveryId: string): void {
      for (const { id } of ofDelivery.get(deliveryId) ?? []) all.delete(id)
      ofDelivery.delete(deliveryId)
    },
  }
}

function toJob({ id, deliveryId, planned, state, attempts, createdAt, runAt, ...job }: MemoryJob): Job {
  const { lockedUntil, lastError, steps, posts } = job
  return { id, deliveryId, planned, state, attempts, createdAt, runAt, lockedUntil, lastError, steps, posts }
}
