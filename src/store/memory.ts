// The store without a disk, for tests and trials: it keeps every promise of store.ts but the one of surviving.
import { deliveryStates } from '../model/delivery.ts'
import { jobStates } from '../model/job.ts'
import { Problem } from '../model/problem.ts'
import { isWaiting, type Kept, toAnswered, toKept, toKey, toOpen, toRecord } from './memory-deliveries.ts'
import { createMemoryJobs } from './memory-jobs.ts'
import { createMemorySessions, newest } from './memory-sessions.ts'
import type { Appended, Clock, DedupeKey, NewDelivery, NewJob, Store } from './store.ts'

export function createMemoryStore({ clock }: { clock: Clock }): Store {
  const deliveries = new Map<string, Kept>()
  const keys = new Map<string, Kept>()
  const cursors = new Map<string, string>()
  const sessions = createMemorySessions({ clock })
  const jobs = createMemoryJobs({ clock, ...sessions })

  /** As a database would: nothing of a write is there when an id in it is taken. */
  function refuseTwins(added: readonly { id?: string; jobs: readonly { id: string }[] }[]): void {
    const ids = added.flatMap(({ id, jobs: own }) => [...(id === undefined ? [] : [id]), ...own.map((job) => job.id)])
    const isTaken = ids.some((id) => deliveries.has(id) || jobs.all.has(id))
    if (isTaken || new Set(ids).size < ids.length) {
      throw new Problem('store-unavailable', 'The store cannot write this.', { retryAfterSeconds: 5 })
    }
  }

  function addJobs(deliveryId: string, added: readonly NewJob[]): void {
    for (const job of added) {
      jobs.add(deliveryId, job)
      sessions.addEvents(deliveryId, job.events)
    }
  }

  function byKey(key: Pick<DedupeKey, 'hook' | 'key'>): Kept | undefined {
    return keys.get(toKey(key))
  }

  function forget(kept: Kept): void {
    if (kept.dedupe && byKey(kept.dedupe) === kept) keys.delete(toKey(kept.dedupe))
  }

  /** Ends what waits of a delivery. */
  function drop(kept: Kept): boolean {
    const waited = isWaiting(kept)
    if (waited) {
      kept.settlement = { ...kept.settlement, state: 'dropped', waitsFor: undefined, request: undefined }
      kept.settledAt = clock()
    }
    return jobs.endQueued(kept.id) > 0 || waited
  }

  function append({ id, receivedAt, hook, source, event, dedupe, answer, ...settlement }: NewDelivery): Appended {
    const first = dedupe && byKey(dedupe)
    if (first) {
      first.bodyDiffered ||= first.dedupe?.bodyHash !== dedupe.bodyHash
      return { kind: 'duplicate', first: toAnswered(first) }
    }
    refuseTwins([{ id, jobs: settlement.jobs }])
    const about = { id, receivedAt, hook, source, event, dedupe, answer }
    const kept: Kept = { ...about, ...toKept(settlement, clock()), bodyDiffered: false }
    deliveries.set(id, kept)
    if (dedupe && answer.status === 200) keys.set(toKey(dedupe), kept)
    addJobs(id, settlement.jobs)
    return { kind: 'stored' }
  }

  /** Those that would be stored if all were appended one after the other. */
  function withoutDuplicates(added: readonly NewDelivery[]): NewDelivery[] {
    const taken = new Set(keys.keys())
    return added.filter(({ dedupe, answer }) => {
      if (dedupe && taken.has(toKey(dedupe))) return false
      if (dedupe && answer.status === 200) taken.add(toKey(dedupe))
      return true
    })
  }

  return {
    append: async (delivery) => append(delivery),
    appendAll: async (added, cursor) => {
      refuseTwins(withoutDuplicates(added))
      const appended = added.map(append)
      cursors.set(cursor.name, cursor.value)
      return appended
    },
    cursor: async (name) => cursors.get(name),
    answered: async (key) => {
      const first = byKey(key)
      return first && toAnswered(first)
    },
    markDiffering: async (id) => {
      const kept = deliveries.get(id)
      if (kept) kept.bodyDiffered = true
    },
    settle: async (id, settlement) => {
      const kept = deliveries.get(id)
      if (!kept || !isWaiting(kept)) return false
      refuseTwins([{ jobs: settlement.jobs }])
      Object.assign(kept, toKept(settlement, clock(), kept.settlement.request))
      addJobs(id, settlement.jobs)
      return true
    },
    forget: async (key) => {
      const kept = byKey(key)
      if (kept) forget(kept)
    },
    open: async ({ limit, waitsFor, state, id, after }) => {
      const inOrder = [...deliveries.values()].toSorted((a, b) => a.receivedAt - b.receivedAt)
      const from = after === undefined ? -1 : inOrder.findIndex((kept) => kept.id === after)
      return inOrder
        .slice(from === -1 && after !== undefined ? inOrder.length : from + 1)
        .flatMap(toOpen)
        .filter((open) => id === undefined || open.deliveryId === id)
        .filter((open) => waitsFor === undefined || open.waitsFor === waitsFor)
        .filter((open) => state === undefined || open.state === state)
        .slice(0, limit)
    },
    claim: async (query) => jobs.claim(query),
    report: async (job, report) => jobs.report(job, report),
    extend: async (held, leaseMs) => jobs.extend(held, leaseMs),
    nextRunAt: async () => jobs.nextRunAt(),
    dueSince: async () => jobs.dueSince(),
    addTask: async (task) => {
      if (jobs.isQueued(task.standsFor)) return false
      refuseTwins([{ jobs: [task] }])
      jobs.addTask(task)
      return true
    },
    lastTaskAt: async (standsFor) => jobs.lastTaskAt(standsFor),
    requeue: async (id) => jobs.requeue(id),
    drop: async (id) => {
      const kept = deliveries.get(id)
      return kept !== undefined && drop(kept)
    },
    sweep: async (before) => {
      let count = 0
      for (const kept of [...deliveries.values()].filter(({ receivedAt }) => receivedAt < before)) {
        const isOver = kept.settledAt !== undefined && kept.settledAt < before && jobs.endedBefore(kept.id, before)
        if (isOver) {
          forget(kept)
          deliveries.delete(kept.id)
          jobs.remove(kept.id)
          count += 1
        } else if (drop(kept)) count += 1
      }
      jobs.pruneTasks(before)
      sessions.prune(before)
      return count
    },
    deliveries: async ({ limit, state }) =>
      newest(
        [...deliveries.values()].filter((kept) => !state || kept.settlement.state === state),
        limit,
      ).map((kept) => toRecord(kept, jobs.of(kept.id))),
    delivery: async (id) => {
      const kept = deliveries.get(jobs.all.get(id)?.deliveryId ?? id)
      return kept && toRecord(kept, jobs.of(kept.id))
    },
    request: async (id) => deliveries.get(jobs.all.get(id)?.deliveryId ?? id)?.settlement.request,
    job: async (id) => jobs.job(id),
    deadJobs: async ({ limit }) => jobs.dead(limit),
    events: async ({ limit }) => sessions.events(limit),
    waiting: async (query) => sessions.waiting(query),
    sessions: async ({ limit }) => sessions.sessions(limit),
    session: async (name) => sessions.session(name),
    messages: async (query) => sessions.messages(query),
    counts: async () => ({
      deliveries: countBy(
        deliveryStates,
        [...deliveries.values()].map(({ settlement }) => settlement.state),
      ),
      jobs: countBy(
        jobStates,
        [...jobs.all.values()].map(({ state }) => state),
      ),
    }),
    health: async () => ({ engine: 'memory', trouble: undefined, facts: {} }),
    close: async () => {},
  }
}

function countBy<State extends string>(states: readonly State[], found: readonly State[]): Record<State, number> {
  const counts = states.map((state) => [state, found.filter((each) => each === state).length])
  // as: fromEntries forgets which keys it was given
  return Object.fromEntries(counts) as Record<State, number>
}
