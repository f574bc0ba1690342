import { describe, expect, test } from 'vitest'
import type { Stage } from './store.ts'
import { flowJob } from './flow.ts'
import { claimOne } from './jobs.ts'
import { accepted, keyed, newDelivery, newEvent, newJob, parked } from './stage.ts'

export function describeSweep(stage: () => Stage): void {
  describe('sweep()', () => {
    test('sweep() deletes deliveries that ended before the given time, with their jobs, and keeps later ones', async () => {
      const { store, clock } = stage()
      const old = newDelivery({ at: clock(), jobs: [newJob({ state: 'done' })] })
      const late = newDelivery({ at: clock(), ...parked() })
      await store.append(old)
      await store.append(late)
      clock.advance(1000)
      await store.settle(late.id, accepted())
      expect(await store.sweep(0)).toBe(1)
      expect(await store.delivery(old.id)).toBeUndefined()
      expect((await store.counts()).jobs.done).toBe(0)
      expect(await store.delivery(late.id)).toMatchObject({ state: 'accepted' })
    })

    test('sweep() keeps a delivery if one of its jobs ended later or still runs', async () => {
      const { store, clock } = stage()
      const delivery = newDelivery({ at: clock(), jobs: [newJob()] })
      await store.append(delivery)
      const held = await claimOne(store)
      clock.advance(1000)
      expect(await store.sweep(0)).toBe(0)
      await store.report(held, { outcome: { kind: 'done' } })
      expect(await store.sweep(0)).toBe(0)
      expect(await store.sweep(-1)).toBe(1)
    })

    test('sweep() drops old parked deliveries and queued jobs', async () => {
      const { store, clock } = stage()
      const waiting = newDelivery({ at: clock(), ...parked() })
      const queued = newDelivery({ at: clock(), jobs: [newJob()] })
      const young = newDelivery({ at: clock() + 1000, ...parked() })
      for (const each of [waiting, queued, young]) await store.append(each)
      clock.advance(1000)
      expect(await store.sweep(0)).toBe(2)
      expect(await store.delivery(waiting.id)).toMatchObject({ state: 'dropped' })
      expect(await store.delivery(queued.id)).toMatchObject({ jobs: [{ state: 'dropped' }] })
      expect((await store.openDeliveries({ limit: 9 })).map(({ deliveryId }) => deliveryId)).toEqual([young.id])
      expect(await store.sweep(0)).toBe(0)
    })

    test('sweep() keeps a dedupe key until its delivery is deleted', async () => {
      const { store, clock } = stage()
      const buildTwin = () => newDelivery({ at: clock(), ...keyed('k') })
      await store.append(buildTwin())
      await store.sweep(0)
      expect(await store.append(buildTwin())).toMatchObject({ kind: 'duplicate' })
      clock.advance(1)
      await store.sweep(0)
      expect(await store.findAnswer({ hook: 'github', key: 'k' })).toBeUndefined()
      expect(await store.append(buildTwin())).toEqual({ kind: 'stored' })
    })

    test('sweep() deletes old events, messages and sessions, and keeps later ones', async () => {
      const { store, clock } = stage()
      const buildEventJob = (text: string, sessionKey: string) =>
        newDelivery({
          at: clock(),
          jobs: [newJob({ state: 'done', events: [newEvent({ text, sessionKey })] }), newJob()],
        })
      await store.append(buildEventJob('old', 'one'))
      await store.report(await claimOne(store), { messages: [{ role: 'user', text: 'old' }] })
      clock.advance(1000)
      await store.append(buildEventJob('young', 'two'))
      await store.sweep(0)
      expect((await store.events({ limit: 9 })).map(({ text }) => text)).toEqual(['young'])
      expect((await store.sessions({ limit: 9 })).map(({ sessionKey }) => sessionKey)).toEqual(['two'])
      expect(await store.messages({ agentId: 'main', sessionKey: 'hook:one', limit: 9 })).toEqual([])
    })

    test('sweep() deletes the time of the last turn of a mapping if it is old, and keeps a later one', async () => {
      const { store, clock } = stage()
      const claimKey = async () => {
        const job = await claimOne(store)
        await store.report(job, { outcome: { kind: 'done' } })
        return job.id
      }
      const keys = ['a1', 'a2', 'a3', 'b1', 'b2']
      const jobs = keys.map((key) => flowJob({ key }, { id: key, ring: key.slice(0, 1) }))
      for (const job of jobs) {
        clock.advance(1)
        // sweep() does not visit a delivery whose time of arrival is in the future
        await store.append(newDelivery({ at: clock() + 1_000_000, jobs: [job] }))
      }
      clock.advance(10)
      expect(await claimKey()).toBe('a1')
      await store.sweep(0)
      expect(await claimKey()).toBe('b1')
      clock.advance(10)
      expect(await claimKey()).toBe('a2')
      clock.advance(10)
      await store.sweep(0)
      // it would be b2 if the store still knew that the last turn was a2
      expect(await claimKey()).toBe('a3')
    })

    test('after sweep(), a mapping whose last turn is in the future, because the clock was set back, no longer waits for all others', async () => {
      const { store, clock } = stage()
      const add = (key: string) => {
        const job = flowJob({ key }, { id: key, ring: key.slice(0, 1) })
        return store.append(newDelivery({ at: clock(), jobs: [job] }))
      }
      const monthMs = 30 * 86_400_000
      clock.advance(monthMs)
      await add('a1')
      await store.report(await claimOne(store), { outcome: { kind: 'done' } })
      clock.advance(-monthMs)
      for (const key of ['a2', 'b1', 'b2']) {
        await add(key)
        clock.advance(1)
      }
      await store.sweep(monthMs)
      expect((await claimOne(store)).id).toBe('a2')
    })

    test('now() is the time by which sweep() decides what is old', async () => {
      const { store, clock } = stage()
      const before = await store.now()
      clock.advance(1000)
      expect([before, await store.now()]).toEqual([clock() - 1000, clock()])
    })

    test('sweep() deletes all old deliveries, even if that takes several steps', async () => {
      const { store, clock } = stage()
      await Promise.all(Array.from({ length: 1203 }, () => store.append(newDelivery({ at: clock() }))))
      clock.advance(1)
      expect(await store.sweep(0)).toBe(1203)
      expect((await store.counts()).deliveries.accepted).toBe(0)
    })

    test('sweep() keeps rows from a time when the clock was ahead, and deletes old rows that came after them', async () => {
      const { store, clock } = stage()
      const buildEventJob = (text: string) =>
        newDelivery({ at: clock(), jobs: [newJob({ state: 'done', events: [newEvent({ text })] })] })
      const yearMs = 31_536_000_000
      clock.advance(yearMs)
      await Promise.all(Array.from({ length: 501 }, () => store.append(buildEventJob('ahead'))))
      clock.advance(-yearMs)
      const old = buildEventJob('old')
      await store.append(old)
      clock.advance(1000)
      expect(await store.sweep(0)).toBe(1)
      expect(await store.delivery(old.id)).toBeUndefined()
      expect((await store.events({ limit: 999 })).filter(({ text }) => text === 'old')).toEqual([])
      expect((await store.counts()).deliveries.accepted).toBe(501)
    })
  })
}
