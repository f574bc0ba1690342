// Calls of several owners on the same data. A seed decides their order, and several calls run at once. Checks the promises that a user
// would notice: one running job in each lane, arrival order in a lane, no effect lost or repeated, and each event consumed at most once,
// after it was shown.
import { expect } from 'vitest'
import type { ClaimedJob } from '../../src/model/job.ts'
import type { WaitingEvent } from '../../src/store/records.ts'
import type { Store } from '../../src/store/store.ts'
import { newTask } from './tasks.ts'
import { keyed, type Moved, newDelivery, newEvent, newJob, planned } from './stage.ts'

const leaseMs = 1_000
const lanes = ['a', 'b', 'c', 'd', undefined] as const
const maxInFlight = 6

type Held = { readonly job: ClaimedJob; readonly store: Store; readonly shown: readonly WaitingEvent[] }

export type Run = {
  readonly stores: readonly Store[]
  readonly clock: Moved
  readonly seed: number
  readonly steps: number
}

export async function interleave({ stores, clock, seed, steps }: Run): Promise<{ done: number; stale: number }> {
  const random = createRandom(seed)
  const drawBelow = (count: number) => Math.floor(random() * count)
  const pick = <Item>(items: readonly Item[]): Item | undefined => items[drawBelow(items.length)]
  const pickStore = () => pick(stores) as Store
  /** The ids of the jobs of each lane, in order of arrival. */
  const arrived = new Map<string, string[]>()
  const ended = new Map<string, string[]>()
  const appending = new Map<string, Promise<unknown>>()
  const consumed = new Set<number>()
  const keys: { key: string; stored: number }[] = []
  const all = new Set<string>()
  const finished = new Set<string>()
  let held: Held[] = []
  let stale = 0

  async function append(): Promise<void> {
    const lane = pick(lanes)
    const store = pickStore()
    const session = lane ?? 'none'
    const events = [newEvent({ sessionKey: session, text: 'said' })]
    const jobs = [newJob({ lane, planned: planned(session) }), newJob({ state: 'done', events })]
    const write = () => store.append(newDelivery({ at: clock(), jobs }))
    const [{ id }] = jobs as [{ id: string }, unknown]
    // within a lane, one append after the other, so that the order of arrival is known
    const before = appending.get(session)
    const mine = (async () => {
      await before
      await write()
      all.add(id)
      if (lane !== undefined) arrived.set(lane, [...(arrived.get(lane) ?? []), id])
    })()
    appending.set(session, mine)
    await mine
  }

  /** Appends deliveries with the same key to all owners at once. */
  async function appendTwins(): Promise<void> {
    const key = { key: `k${keys.length}`, stored: 0 }
    keys.push(key)
    const twins = stores.map(() => newJob())
    const results = await Promise.all(
      stores.map((store, index) =>
        store.append(newDelivery({ at: clock(), ...keyed(key.key), jobs: twins.slice(index, index + 1) })),
      ),
    )
    for (const [index, { kind }] of results.entries()) {
      if (kind === 'stored') all.add(twins[index]?.id ?? '')
      key.stored += kind === 'stored' ? 1 : 0
    }
    expect(key.stored).toBe(1)
  }

  async function claim(store = pickStore()): Promise<void> {
    const jobs = await store.claim({ limit: 1 + drawBelow(3), leaseMs })
    for (const job of jobs) {
      const { agentId, sessionKey } = job.planned
      const waiting = await pickStore().waitingEvents({ agentId, sessionKey, limit: 1 + drawBelow(4) })
      held.push({ job, store, shown: waiting.events })
    }
  }

  async function report(): Promise<void> {
    const mine = pick(held)
    if (mine === undefined) return
    held = held.filter((each) => each !== mine)
    const { job, store, shown } = mine
    const dice = drawBelow(10)
    if (dice === 0) return // as if the worker had died
    if (dice === 1) return void (await store.report(job, { outcome: { kind: 'release' } }))
    if (dice === 2) {
      const outcome = { kind: 'retry', afterMs: drawBelow(2 * leaseMs), error: 'busy' } as const
      return void (await store.report(job, { outcome }))
    }
    const isWritten = await store.report(job, {
      steps: [{ name: 'run', state: 'done', at: clock() }],
      events: [newEvent({ sessionKey: 'effects', text: job.id })],
      consumed: shown,
      outcome: { kind: 'done' },
    })
    if (!isWritten) return void (stale += 1)
    expect(finished.has(job.id)).toBe(false)
    finished.add(job.id)
    const lane = job.planned.sessionKey
    if (arrived.has(lane)) ended.set(lane, [...(ended.get(lane) ?? []), job.id])
    for (const { id } of shown) {
      // a job without a lane may run at the same time as another job of its session
      if (lane !== 'none') expect(consumed.has(id)).toBe(false)
      consumed.add(id)
    }
  }

  async function addTasks(): Promise<void> {
    const given = { standsFor: 'beat', lane: 'beat', unlessWithinMs: 5 * leaseMs }
    const tasks = stores.map(() => newTask(given))
    const added = await Promise.all(stores.map((store, index) => store.addTask(tasks[index] ?? newTask(given))))
    expect(added.filter(Boolean).length).toBeLessThanOrEqual(1)
    for (const [index, isAdded] of added.entries()) if (isAdded) all.add(tasks[index]?.id ?? '')
  }

  async function step(): Promise<void> {
    const dice = drawBelow(100)
    if (dice < 25) return append()
    if (dice < 28) return appendTwins()
    if (dice < 58) return claim()
    if (dice < 90) return report()
    if (dice < 93) return addTasks()
    const mine = pick(held)
    if (dice < 97 && mine !== undefined) return void (await mine.store.extend([mine.job], leaseMs))
    clock.advance(drawBelow(2 * leaseMs))
  }

  const inFlight = new Set<Promise<void>>()
  for (let count = 0; count < steps; count += 1) {
    const running = step().finally(() => inFlight.delete(running))
    inFlight.add(running)
    if (inFlight.size >= maxInFlight) await Promise.race(inFlight)
  }
  await Promise.all(inFlight)
  // at the end, every stored job is done, however many workers died
  for (let round = 0; finished.size < all.size && round < 50 * all.size; round += 1) {
    clock.advance(2 * leaseMs)
    await claim()
    while (held.length > 0) await report()
  }

  const [store] = stores
  if (store === undefined) throw new Error('no store was given')
  expect([...finished].toSorted()).toEqual([...all].toSorted())
  for (const [lane, ids] of arrived) expect(ended.get(lane)).toEqual(ids)
  const events = await store.events({ limit: 10 * (steps + 1) })
  const effects = events.filter(({ sessionKey }) => sessionKey === 'effects').map(({ text }) => text)
  expect(effects.toSorted()).toEqual([...all].toSorted())
  expect(events.filter(({ consumedAt }) => consumedAt !== undefined)).toHaveLength(consumed.size)
  expect((await store.counts()).jobs).toMatchObject({ queued: 0, running: 0, dead: 0 })
  return { done: finished.size, stale }
}

/** The mulberry32 generator: the same seed gives the same numbers. */
export function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
