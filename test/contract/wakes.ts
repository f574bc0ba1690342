// A wake is done when its delivery is accepted. An engine may store it without a row for its job: of all calls, only `progress` shows that.
import { describe, expect, test } from 'vitest'
import { accepted, newDelivery, newEvent, newWake, parked } from './stage.ts'
import type { Stage } from './store.ts'

const main = { agentId: 'main', sessionKey: 'main' }

export function describeWakes(stage: () => Stage): void {
  describe('a wake', () => {
    test('a wake is counted as a job that is done, and is found by its delivery, its id and a prefix of its id', async () => {
      const { store, clock } = stage()
      const wake = newWake('Disk full')
      const delivery = newDelivery({ at: clock(), jobs: [wake] })
      await store.append(delivery)
      const job = {
        id: wake.id,
        deliveryId: delivery.id,
        planned: wake.planned,
        state: 'done',
        attempts: 0,
        createdAt: clock(),
        runAt: clock(),
        lockedUntil: undefined,
        lastError: undefined,
        failingSince: undefined,
        failures: [],
        steps: wake.steps,
        posts: [],
      }
      expect(await store.job(wake.id)).toEqual(job)
      expect(await store.delivery(wake.id)).toMatchObject({ deliveryId: delivery.id, jobs: [job] })
      expect(await store.delivery(delivery.id)).toEqual(await store.delivery(wake.id))
      expect(await store.deliveries({ limit: 9, before: wake.id })).toEqual([])
      expect(await store.idsFrom({ prefix: wake.id.slice(0, -1), limit: 9 })).toEqual([
        { id: wake.id, deliveryId: delivery.id },
      ])
      expect((await store.counts()).jobs).toMatchObject({ queued: 0, running: 0, done: 1, dead: 0 })
      expect(await store.claim({ limit: 9, leaseMs: 1_000 })).toEqual([])
      expect(await store.job('nobody')).toBeUndefined()
    })

    test.each(['Disk full', '', 'a\0b', 'half \uD83D', '"quoted" \\ \u{1f600}\n'])(
      'the event of a wake with the text %j has this text without characters that cannot be stored, waits in its session and names its delivery',
      async (text) => {
        const { store, clock } = stage()
        const delivery = newDelivery({ at: clock(), jobs: [newWake(text, { wakes: true })] })
        await store.append(delivery)
        const event = {
          ...main,
          text: text.replace('\0', '\uFFFD').replace(/\uD83D(?!\uDE00)/, '\uFFFD'),
          source: 'ci',
          trusted: false,
          wakes: true,
          at: clock(),
          deliveryId: delivery.id,
          consumedAt: undefined,
        }
        expect(await store.events({ limit: 9 })).toEqual([event])
        expect(await store.waitingEvents({ ...main, limit: 9 })).toMatchObject({
          events: [event],
          count: 1,
          wakes: true,
        })
        expect(await store.wokenForMs(main)).toBe(0)
        expect(await store.session(main)).toMatchObject({ updatedAt: clock() })
      },
    )

    test('a wake and its event each keep their text if the texts differ', async () => {
      const { store, clock } = stage()
      const wake = { ...newWake('one'), events: [newEvent({ text: 'other' })] }
      await store.append(newDelivery({ at: clock(), jobs: [wake] }))
      expect(await store.events({ limit: 9 })).toMatchObject([{ text: 'other' }])
      expect(await store.job(wake.id)).toMatchObject({ planned: { action: { text: 'one' } } })
    })

    test('a wake of a delivery that was parked is found like any other', async () => {
      const { store, clock } = stage()
      const delivery = newDelivery({ at: clock(), ...parked() })
      await store.append(delivery)
      await store.append(newDelivery({ at: clock() }))
      clock.advance(5)
      const wake = newWake('late')
      expect(await store.settle(delivery.id, accepted({ jobs: [wake] }))).toBe(true)
      expect(await store.job(wake.id)).toMatchObject({ state: 'done', createdAt: clock(), deliveryId: delivery.id })
      expect(await store.delivery(wake.id)).toMatchObject({ deliveryId: delivery.id, jobs: [{ id: wake.id }] })
      expect(await store.events({ limit: 9 })).toMatchObject([{ text: 'late', at: clock(), deliveryId: delivery.id }])
    })

    test('two wakes of one delivery are listed in order, and so are their events', async () => {
      const { store, clock } = stage()
      const jobs = [newWake('one'), newWake('two')]
      const delivery = newDelivery({ at: clock(), jobs })
      await store.append(delivery)
      expect((await store.delivery(delivery.id))?.jobs.map(({ id }) => id)).toEqual(jobs.map(({ id }) => id))
      expect((await store.events({ limit: 9 })).map(({ text }) => text)).toEqual(['one', 'two'])
    })

    test('a wake and its event are deleted with the delivery, and newer ones stay', async () => {
      const { store, clock } = stage()
      const [old, young] = [newWake('old'), newWake('young')]
      await store.append(newDelivery({ at: clock(), jobs: [old] }))
      clock.advance(1_000)
      await store.append(newDelivery({ at: clock(), jobs: [young] }))
      expect(await store.sweep(500)).toBe(1)
      expect(await store.job(old.id)).toBeUndefined()
      expect(await store.job(young.id)).toMatchObject({ id: young.id })
      expect((await store.events({ limit: 9 })).map(({ text }) => text)).toEqual(['young'])
      expect((await store.counts()).jobs.done).toBe(1)
      // the store is empty now; new rows must not be confused with the deleted ones
      clock.advance(1_000)
      expect(await store.sweep(500)).toBe(1)
      const next = newWake('next')
      const delivery = newDelivery({ at: clock(), hook: 'again', jobs: [next] })
      await store.append(delivery)
      expect(await store.deliveries({ limit: 9, text: 'again' })).toMatchObject([{ deliveryId: delivery.id }])
      expect(await store.events({ limit: 9 })).toMatchObject([{ text: 'next', deliveryId: delivery.id }])
      expect((await store.sessions({ limit: 9 })).map(({ updatedAt }) => updatedAt)).toEqual([clock()])
    })
  })
}
