import { describe, expect, test } from 'vitest'
import type { Stage } from './store.ts'
import { accepted, keyed, newDelivery, newJob, parked, request } from './stage.ts'

export function describeDeliveries(stage: () => Stage): void {
  describe('append()', () => {
    test('a delivery and its jobs can be read as soon as append resolves', async () => {
      const { store, clock } = stage()
      const job = newJob()
      const delivery = newDelivery({ at: clock(), jobs: [job] })
      expect(await store.append(delivery)).toEqual({ kind: 'stored' })
      expect(await store.delivery(delivery.id)).toMatchObject({
        deliveryId: delivery.id,
        receivedAt: clock(),
        hook: 'github',
        source: 'github',
        event: 'push',
        mappingId: 'github-push',
        generation: 'g1',
        transformHash: 'abc',
        state: 'accepted',
        bodyDiffered: false,
        trace: delivery.trace,
        log: ['seen'],
        jobs: [{ id: job.id, deliveryId: delivery.id, planned: job.planned, state: 'queued', attempts: 0, steps: [] }],
      })
    })

    test('two deliveries with the same key and hook are stored once, and the second gets the first answer', async () => {
      const { store, clock } = stage()
      const first = newDelivery({ at: clock(), ...keyed('k'), answer: { status: 200, body: 'first' } })
      const again = newDelivery({
        at: clock(),
        ...keyed('k'),
        answer: { status: 200, body: 'second' },
        jobs: [newJob()],
      })
      await store.append(first)
      expect(await store.append(again)).toEqual({
        kind: 'duplicate',
        first: { deliveryId: first.id, state: 'accepted', status: 200, body: 'first', bodyHash: 'hash-1' },
      })
      expect(await store.delivery(again.id)).toBeUndefined()
      expect((await store.counts()).jobs.queued).toBe(0)
    })

    test('deliveries with another key, another hook or no key are stored separately', async () => {
      const { store, clock } = stage()
      await store.append(newDelivery({ at: clock(), ...keyed('k') }))
      for (const other of [keyed('k2'), keyed('k', 'hash-1', 'stripe'), {}, {}]) {
        expect(await store.append(newDelivery({ at: clock(), ...other }))).toEqual({ kind: 'stored' })
      }
    })

    test('if deliveries with the same key arrive at once, only one is stored', async () => {
      const { store, clock } = stage()
      const twins = [1, 2, 3].map(() => newDelivery({ at: clock(), ...keyed('k'), jobs: [newJob()] }))
      const appended = await Promise.all(twins.map((twin) => store.append(twin)))
      // with two gateways, any of the three deliveries may come first
      const first = twins[appended.findIndex(({ kind }) => kind === 'stored')]
      const others = appended.filter(({ kind }) => kind === 'duplicate')
      expect(others).toMatchObject([1, 2].map(() => ({ first: { deliveryId: first?.id } })))
      expect((await store.counts()).jobs.queued).toBe(1)
    })

    test('a duplicate of a delivery writes nothing, even if its body differs', async () => {
      const { store, clock } = stage()
      const first = newDelivery({ at: clock(), ...keyed('k', 'hash-1') })
      await store.append(first)
      const before = await store.delivery(first.id)
      await store.append(newDelivery({ at: clock(), ...keyed('k', 'hash-1') }))
      await store.append(newDelivery({ at: clock(), ...keyed('k', 'hash-2') }))
      expect(await store.delivery(first.id)).toEqual(before)
    })

    test('an answer of any type, or without a type, is returned to a duplicate as it was stored', async () => {
      const { store, clock } = stage()
      const answers = [
        { status: 200, body: '{"ok":true}' },
        { status: 202, contentType: 'text/plain', body: 'content-type: text/xml\n\nä 😀 \r\n' },
        { status: 200, contentType: 'application/json', body: '' },
      ]
      for (const [index, answer] of answers.entries()) {
        const first = newDelivery({ at: clock(), ...keyed(`k${index}`), answer })
        await store.append(first)
        const again = await store.append(newDelivery({ at: clock(), ...keyed(`k${index}`) }))
        const known = { deliveryId: first.id, ...answer }
        expect(again).toMatchObject({ kind: 'duplicate', first: known })
        expect(await store.findAnswer({ hook: 'github', key: `k${index}` })).toMatchObject(known)
        expect((await store.delivery(first.id))?.answer).toEqual(answer)
      }
    })

    test('a delivery takes its dedupe key unless the delivery is skipped', async () => {
      const { store, clock } = stage()
      const newSkipped = () =>
        newDelivery({ at: clock(), ...keyed('k'), state: 'skipped', answer: { status: 204, body: '' } })
      expect(await store.append(newSkipped())).toEqual({ kind: 'stored' })
      expect(await store.findAnswer({ hook: 'github', key: 'k' })).toBeUndefined()
      const first = newDelivery({ at: clock(), ...keyed('k') })
      expect(await store.append(first)).toEqual({ kind: 'stored' })
      expect(await store.append(newSkipped())).toMatchObject({
        kind: 'duplicate',
        first: { deliveryId: first.id },
      })
    })

    test('a delivery with a job whose id is taken is rejected, and nothing of it is stored', async () => {
      const { store, clock } = stage()
      const job = newJob()
      await store.append(newDelivery({ at: clock(), jobs: [job] }))
      const bad = newDelivery({ at: clock(), ...keyed('k'), jobs: [newJob(), job] })
      await expect(store.append(bad)).rejects.toMatchObject({ code: 'store-unavailable' })
      expect(await store.delivery(bad.id)).toBeUndefined()
      expect(await store.findAnswer({ hook: 'github', key: 'k' })).toBeUndefined()
      expect((await store.counts()).jobs.queued).toBe(1)
    })
  })

  describe('repetitions of a delivery', () => {
    const buildRepetition = (deliveryId: string, times: number, lastAt: number, bodyDiffered = false) => ({
      deliveryId,
      times,
      lastAt,
      bodyDiffered,
    })

    test('repetitions of a delivery add up, and the time of the latest one is kept', async () => {
      const { store, clock } = stage()
      const [one, two] = [newDelivery({ at: clock() }), newDelivery({ at: clock() })]
      await store.append(one)
      await store.append(two)
      expect(await store.delivery(one.id)).toMatchObject({ repeats: 0, repeatedAt: undefined, bodyDiffered: false })
      await store.noteRepeats([buildRepetition(one.id, 2, 70), buildRepetition(two.id, 1, 5, true)])
      await store.noteRepeats([buildRepetition(one.id, 3, 60)])
      await store.noteRepeats([])
      expect(await store.deliveries({ limit: 9 })).toMatchObject([
        { deliveryId: one.id, repeats: 5, repeatedAt: 70, bodyDiffered: false },
        { deliveryId: two.id, repeats: 1, repeatedAt: 5, bodyDiffered: true },
      ])
      await store.noteRepeats([buildRepetition(two.id, 1, 80)])
      expect(await store.delivery(two.id)).toMatchObject({ repeats: 2, repeatedAt: 80, bodyDiffered: true })
    })

    test('a delivery is shown as edited only if it was stored as edited', async () => {
      const { store, clock } = stage()
      const [edited, sent] = [newDelivery({ at: clock(), edited: true }), newDelivery({ at: clock() })]
      await store.append(edited)
      await store.append(sent)
      expect(await store.delivery(edited.id)).toMatchObject({ edited: true, recovered: false })
      expect(await store.delivery(sent.id)).toMatchObject({ edited: false, recovered: false })
    })

    test('a delivery is shown as recovered only if it was stored as recovered, even after it is settled', async () => {
      const { store, clock } = stage()
      const [asked, received] = [
        newDelivery({ at: clock(), ...parked(), recovered: true }),
        newDelivery({ at: clock(), ...parked() }),
      ]
      await store.append(received)
      await store.appendAll([asked], { name: 'recover', from: undefined, to: '1' })
      for (const { id } of [asked, received]) await store.settle(id, accepted())
      expect(await store.deliveries({ limit: 9 })).toMatchObject([
        { deliveryId: received.id, recovered: false },
        { deliveryId: asked.id, recovered: true },
      ])
    })

    test('repetitions of an unknown delivery are ignored, and those of a known delivery in the same call are stored', async () => {
      const { store, clock } = stage()
      const known = newDelivery({ at: clock() })
      await store.append(known)
      await store.noteRepeats([buildRepetition('unknown', 1, 5, true), buildRepetition(known.id, 1, 6)])
      expect(await store.delivery(known.id)).toMatchObject({ repeats: 1, repeatedAt: 6 })
    })

    test('repetitions are deleted with their delivery', async () => {
      const { store, clock } = stage()
      const old = newDelivery({ at: clock(), jobs: [] })
      await store.append(old)
      await store.noteRepeats([buildRepetition(old.id, 2, 70)])
      clock.advance(1_000)
      expect(await store.sweep(500)).toBe(1)
      await store.append(newDelivery({ at: clock(), jobs: [], id: old.id }))
      expect(await store.delivery(old.id)).toMatchObject({ repeats: 0, repeatedAt: undefined })
    })

    test('repetitions that several calls note at once are all counted', async () => {
      const { store, clock } = stage()
      const all = [newDelivery({ at: clock() }), newDelivery({ at: clock() })]
      for (const each of all) await store.append(each)
      const ids = all.map(({ id }) => id)
      const notes = Array.from({ length: 20 }, (_, index) =>
        store.noteRepeats((index % 2 === 0 ? ids : ids.toReversed()).map((id) => buildRepetition(id, 1, index, true))),
      )
      await Promise.all(notes)
      for (const id of ids) expect(await store.delivery(id)).toMatchObject({ repeats: 20, repeatedAt: 19 })
    })
  })

  describe('dedupe keys of deliveries', () => {
    test('findAnswer() returns the first answer with the current state of its delivery', async () => {
      const { store, clock } = stage()
      const first = newDelivery({ at: clock(), ...parked(), ...keyed('k'), answer: { status: 200, body: 'parked' } })
      await store.append(first)
      const known = { deliveryId: first.id, status: 200, body: 'parked', bodyHash: 'hash-1' }
      expect(await store.findAnswer({ hook: 'github', key: 'k' })).toEqual({ ...known, state: 'parked' })
      await store.settle(first.id, accepted())
      expect(await store.findAnswer({ hook: 'github', key: 'k' })).toEqual({ ...known, state: 'accepted' })
      expect(await store.findAnswer({ hook: 'stripe', key: 'k' })).toBeUndefined()
    })

    test('a dedupe key that contains a NUL can be found and forgotten', async () => {
      const { store, clock } = stage()
      const key = 'a\0b'
      const first = newDelivery({ at: clock(), ...keyed(key) })
      await store.append(first)
      expect(await store.append(newDelivery({ at: clock(), ...keyed(key) }))).toMatchObject({
        kind: 'duplicate',
        first: { deliveryId: first.id },
      })
      expect(await store.findAnswer({ hook: 'github', key })).toMatchObject({ deliveryId: first.id })
      expect(await store.findAnswer({ hook: 'github', key: 'ab' })).toBeUndefined()
      await store.forget({ hook: 'github', key })
      expect(await store.findAnswer({ hook: 'github', key })).toBeUndefined()
    })

    test('a forgotten dedupe key can be taken again, and its first delivery remains', async () => {
      const { store, clock } = stage()
      const [first, other] = [newDelivery({ at: clock(), ...keyed('k') }), newDelivery({ at: clock(), ...keyed('k2') })]
      await store.append(first)
      await store.append(other)
      await store.forget({ hook: 'github', key: 'k' })
      expect(await store.findAnswer({ hook: 'github', key: 'k' })).toBeUndefined()
      expect(await store.append(newDelivery({ at: clock(), ...keyed('k') }))).toEqual({ kind: 'stored' })
      expect(await store.delivery(first.id)).toBeDefined()
      expect(await store.findAnswer({ hook: 'github', key: 'k2' })).toMatchObject({ deliveryId: other.id })
    })
  })

  describe('settle()', () => {
    test('a parked delivery is accepted once, with its jobs', async () => {
      const { store, clock } = stage()
      const delivery = newDelivery({ at: clock(), ...parked() })
      await store.append(delivery)
      expect(await store.settle(delivery.id, accepted({ generation: 'g2', jobs: [newJob()] }))).toBe(true)
      expect(await store.settle(delivery.id, accepted({ generation: 'g3', jobs: [newJob()] }))).toBe(false)
      const record = await store.delivery(delivery.id)
      expect(record).toMatchObject({ state: 'accepted', generation: 'g2', problem: undefined })
      expect(record?.jobs).toHaveLength(1)
    })

    test('a delivery that is unknown, or neither pending nor parked, cannot be settled', async () => {
      const { store, clock } = stage()
      const delivery = newDelivery({ at: clock() })
      await store.append(delivery)
      expect(await store.settle(delivery.id, accepted({ jobs: [newJob()] }))).toBe(false)
      expect(await store.settle('nobody', accepted())).toBe(false)
      expect((await store.counts()).jobs.queued).toBe(0)
    })

    test('a pending delivery can be parked with a new request, and parked again without one, which keeps that request', async () => {
      const { store, clock } = stage()
      const delivery = newDelivery({ at: clock(), ...parked({ state: 'pending', waitsFor: undefined }) })
      await store.append(delivery)
      await store.settle(delivery.id, parked({ request: request('mended') }))
      expect(await store.settle(delivery.id, parked({ waitsFor: 'other.ts', request: undefined }))).toBe(true)
      const [open] = await store.openDeliveries({ limit: 10 })
      expect(open).toMatchObject({ state: 'parked', waitsFor: 'other.ts' })
      expect(new TextDecoder().decode(open?.request?.body)).toBe('mended')
    })
  })

  describe('drop()', () => {
    test('a drop ends a parked delivery, and an accepted one together with its queued job', async () => {
      const { store, clock } = stage()
      const waiting = newDelivery({ at: clock(), ...parked() })
      const working = newDelivery({ at: clock(), jobs: [newJob()] })
      await store.append(waiting)
      await store.append(working)
      expect(await store.drop(waiting.id)).toBe(true)
      expect(await store.drop(working.id)).toBe(true)
      expect(await store.delivery(waiting.id)).toMatchObject({ state: 'dropped' })
      expect(await store.delivery(working.id)).toMatchObject({ state: 'dropped', jobs: [{ state: 'dropped' }] })
      expect(await store.openDeliveries({ limit: 10 })).toEqual([])
      expect(await store.claim({ limit: 10, leaseMs: 1000 })).toEqual([])
      expect(await store.settle(waiting.id, accepted())).toBe(false)
    })

    test('a dropped dead job keeps its error, is no longer listed as dead, and cannot be queued again', async () => {
      const { store, clock } = stage()
      const [dead, done] = [newJob(), newJob()]
      const delivery = newDelivery({ at: clock(), jobs: [dead, done] })
      await store.append(delivery)
      for (const job of await store.claim({ limit: 2, leaseMs: 1000 })) {
        const isDead = job.id === dead.id
        await store.report(job, { outcome: isDead ? { kind: 'dead', error: 'no route' } : { kind: 'done' } })
      }
      expect(await store.drop(delivery.id)).toBe(true)
      expect(await store.drop(delivery.id)).toBe(false)
      expect(await store.delivery(delivery.id)).toMatchObject({
        state: 'dropped',
        jobs: [{ state: 'dropped', lastError: 'no route' }, { state: 'done' }],
      })
      expect(await store.deadJobs({ limit: 10 })).toEqual([])
      expect(await store.requeue(dead.id)).toBe(false)
      expect((await store.counts()).jobs).toMatchObject({ dropped: 1, done: 1, dead: 0 })
    })

    test('a drop does not stop a running job, and returns false if there is nothing else to drop', async () => {
      const { store, clock } = stage()
      const delivery = newDelivery({ at: clock(), jobs: [newJob()] })
      await store.append(delivery)
      const [job] = await store.claim({ limit: 1, leaseMs: 1000 })
      expect(await store.drop(delivery.id)).toBe(false)
      expect(await store.drop('nobody')).toBe(false)
      expect(job && (await store.report(job, { outcome: { kind: 'done' } }))).toBe(true)
    })
  })
}
