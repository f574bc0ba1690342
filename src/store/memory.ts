// The store without a disk, for tests and trials: it keeps every promise of store.ts but the one of surviving.
import { deliveryStates } from '../model/delivery.ts'
import { jobStates } from '../model/job.ts'
import { Problem } from '../model/problem.ts'
import { createMemoryJobs } from './memory-jobs.ts'
import { createMemorySessions, newest } from './memory-sessions.ts'
import type {
  Clock,
  DedupeKey,
  DeliveryRecord,
  KeptRequest,
  NewDelivery,
  NewJob,
  OpenDelivery,
  Settlement,
  Store,
} from './store.ts'

/** A delivery as it stands. */
type Kept = Omit<NewDelivery, keyof Settlement> & {
  settlement: Omit<Settlement, 'jobs'>
  settledAt: number | undefined
  bodyDiffered: boolean
}

export function createMemoryStore({ clock }: { clock: Clock }): Store {
  const deliveries = new Map<string, Kept>()
  const keys = new Map<string, Kept>()
  const sessions = createMemorySessions({ clock })
  const jobs = createMemoryJobs({ clock, ...sessions })

  /** As a database would: nothing of a write is there when an id in it is taken. */
  function refuseTwins(id: string | undefined, added: readonly NewJob[]): void {
    const isTwin = (id !== undefined && deliveries.has(id)) || added.some((job) => jobs.all.has(job.id))
    if (isTwin) throw new Problem('store-unavailable', 'The store cannot write this.', { retryAfterSeconds: 5 })
  }

  function addJobs(deliveryId: string, added: readonly NewJob[]): void {
    for (const job of added) {
      jobs.add(deliveryId, job)
      sessions.addEvents(deliveryId, job.events)
    }
  }

  function byKey({ hook, key }: Pick<DedupeKey, 'hook' | 'key'>): Kept | undefined {
    return keys.get(JSON.stringify([hook, key]))
  }

  function forget(kept: Kept): void {
    if (kept.dedupe && byKey(kept.dedupe) === kept) keys.delete(JSON.stringify([kept.dedupe.hook, kept.dedupe.key]))
  }

  function isWaiting(kept: Kept): boolean {
    return kept.settlement.state === 'pending' || kept.settlement.state === 'parked'
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

  function toAnswered(kept: Kept) {
    const { id, settlement, answer, dedupe } = kept
    return { deliveryId: id, state: settlement.state, ...answer, bodyHash: dedupe?.bodyHash ?? '' }
  }

  function toRecord({ id, settlement, ...kept }: Kept): DeliveryRecord {
    return {
      deliveryId: id,
      receivedAt: kept.receivedAt,
      hook: kept.hook,
      source: kept.source,
      event: kept.event,
      mappingId: settlement.mappingId,
      generation: settlement.generation,
      transformHash: settlement.transformHash,
      state: settlement.state,
      bodyDiffered: kept.bodyDiffered,
      problem: settlement.problem,
      trace: settlement.trace,
      log: settlement.log,
      jobs: jobs.of(id),
    }
  }

  function toOpen({ id, receivedAt, hook, settlement }: Kept): OpenDelivery[] {
    const { state, waitsFor, generation, request } = settlement
    if ((state !== 'pending' && state !== 'parked') || !request) return []
    return [{ deliveryId: id, receivedAt, state, hook, waitsFor, generation, request }]
  }

  return {
    append: async ({ id, receivedAt, hook, source, event, dedupe, answer, ...settlement }) => {
      const first = dedupe && byKey(dedupe)
      if (first) {
        first.bodyDiffered ||= first.dedupe?.bodyHash !== dedupe.bodyHash
        return { kind: 'duplicate', first: toAnswered(first) }
      }
      refuseTwins(id, settlement.jobs)
      const kept: Kept = {
        id,
        receivedAt,
        hook,
        source,
        event,
        dedupe,
        answer,
        ...toKept(settlement),
        bodyDiffered: false,
      }
      deliveries.set(id, kept)
      if (dedupe && answer.status === 200) keys.set(JSON.stringify([dedupe.hook, dedupe.key]), kept)
      addJobs(id, settlement.jobs)
      return { kind: 'stored' }
    },
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
      refuseTwins(undefined, settlement.jobs)
      Object.assign(kept, toKept(settlement, kept.settlement.request))
      addJobs(id, settlement.jobs)
      return true
    },
    forget: async (key) => {
      const kept = byKey(key)
      if (kept) forget(kept)
    },
    open: async ({ limit, waitsFor, state, id }) =>
      [...deliveries.values()]
        .flatMap(toOpen)
        .filter((open) => id === undefined || open.deliveryId === id)
        .filter((open) => waitsFor === undefined || open.waitsFor === waitsFor)
        .filter((open) => state === undefined || open.state === state)
        .toSorted((a, b) => a.receivedAt - b.receivedAt)
        .slice(0, limit),
    claim: async (query) => jobs.claim(query),
    report: async (job, report) => jobs.report(job, report),
    extend: async (held, leaseMs) => jobs.extend(held, leaseMs),
    nextRunAt: async () => jobs.nextRunAt(),
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
      sessions.prune(before)
      return count
    },
    deliveries: async ({ limit, state }) =>
      newest(
        [...deliveries.values()].filter((kept) => !state || kept.settlement.state === state),
        limit,
      ).map(toRecord),
    delivery: async (id) => {
      const kept = deliveries.get(jobs.all.get(id)?.deliveryId ?? id)
      return kept && toRecord(kept)
    },
    request: async (id) => deliveries.get(jobs.all.get(id)?.deliveryId ?? id)?.settlement.request,
    events: async ({ limit }) => sessions.events(limit),
    sessions: async ({ limit }) => sessions.sessions(limit),
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

  function toKept(settlement: Settlement, before?: KeptRequest): Pick<Kept, 'settlement' | 'settledAt'> {
    const waits = settlement.state === 'pending' || settlement.state === 'parked'
    const request = settlement.request ?? (waits ? before : undefined)
    const copy = request && { head: request.head, body: new Uint8Array(request.body) }
    return { settlement: { ...settlement, request: copy }, settledAt: waits ? undefined : clock() }
  }
}

function countBy<State extends string>(states: readonly State[], found: readonly State[]): Record<State, number> {
  const counts = states.map((state) => [state, found.filter((each) => each === state).length])
  // as: fromEntries forgets which keys it was given
  return Object.fromEntries(counts) as Record<State, number>
}
