import { describe, expect, test } from 'vitest'
import { newId } from '../../src/base/id.ts'
import type { SealedRequest } from '../../src/store/quarantine.ts'
import { createRandom } from './interleaved.ts'
import { newDelivery } from './stage.ts'
import type { Stage } from './store.ts'

export function describeQuarantine(stage: () => Stage): void {
  const wide = { maxRequests: 1_000, maxBytes: 1_000_000, olderThan: 0 }
  const buildSealedRequest = (over: Partial<SealedRequest> = {}): SealedRequest => ({
    requestId: newId(),
    receivedAt: stage().clock(),
    hook: 'github',
    hookLabel: over.hook ?? 'github',
    network: '192.0.2.0/24',
    isKnown: false,
    refusal: '{"code":"unauthorized"}',
    keyId: 'key-1',
    sealed: new Uint8Array([0, 1, 255]),
    ...over,
  })
  const buildSealedRequests = (count: number, over: Partial<SealedRequest> = {}) =>
    Array.from({ length: count }, () => buildSealedRequest(over))
  const toIds = (requests: readonly { requestId: string }[]) => requests.map(({ requestId }) => requestId)
  const readKeptIds = async () => toIds(await stage().store.quarantinedRequests({ limit: 1_000 }))

  describe('sealed requests in quarantine', () => {
    test('a sealed request keeps its fields and its bytes, and is not a delivery', async () => {
      const { store } = stage()
      const request = buildSealedRequest()
      await store.quarantine([request], wide)
      const { requestId, receivedAt, hook, refusal, keyId } = request
      expect(await store.quarantinedRequests({ limit: 9 })).toEqual([
        { place: expect.any(Number), requestId, receivedAt, hook, refusal, keyId },
      ])
      expect([...((await store.sealedContent(requestId)) ?? [])]).toEqual([0, 1, 255])
      expect(await store.sealedContent(newId())).toBeUndefined()
      expect(await store.deliveries({ limit: 9 })).toEqual([])
      expect(await store.delivery(requestId)).toBeUndefined()
      expect(await store.idsFrom({ prefix: '', limit: 9 })).toEqual([])
      expect(await store.waitingBytes()).toBe(0)
    })

    test('sealed requests are read in order of arrival: the newest ones, or those that follow a given one', async () => {
      const { store } = stage()
      const requests = buildSealedRequests(5)
      const ids = toIds(requests)
      await store.quarantine(requests.slice(0, 2), wide)
      await store.quarantine(requests.slice(2), wide)
      expect(toIds(await store.quarantinedRequests({ limit: 2 }))).toEqual(ids.slice(3))
      expect(toIds(await store.quarantinedRequests({ limit: 2, after: 0 }))).toEqual(ids.slice(0, 2))
      const [, second] = await store.quarantinedRequests({ limit: 2, after: 0 })
      await store.deleteSealed([second?.requestId ?? ''])
      expect(toIds(await store.quarantinedRequests({ limit: 9, after: second?.place }))).toEqual(ids.slice(2))
    })

    test('a query finds the sealed requests of one hook, and those that arrived since a given moment', async () => {
      const { store, clock } = stage()
      const [old, other] = [buildSealedRequest(), buildSealedRequest({ hook: 'stripe' })]
      clock.advance(1_000)
      const late = buildSealedRequest()
      await store.quarantine([old, other, late], wide)
      expect(toIds(await store.quarantinedRequests({ limit: 9, hook: 'github', after: 0 }))).toEqual(toIds([old, late]))
      expect(toIds(await store.quarantinedRequests({ limit: 9, since: clock() }))).toEqual(toIds([late]))
    })

    test('a query for a request id finds only the sealed request with this id, and only if it matches the filters', async () => {
      const { store, clock } = stage()
      const [one, other] = [buildSealedRequest(), buildSealedRequest()]
      await store.quarantine([one, other], wide)
      const find = async (requestId: string, hook?: string) =>
        toIds(await store.quarantinedRequests({ limit: 9, requestId, hook }))
      expect(await find(one.requestId)).toEqual([one.requestId])
      expect(await find(one.requestId, 'stripe')).toEqual([])
      expect(await find(newId())).toEqual([])
      const since = clock() + 1
      expect(await store.quarantinedRequests({ limit: 9, requestId: one.requestId, since })).toEqual([])
    })

    test('a sealed request that is already stored is not changed, and is deleted only once', async () => {
      const { store } = stage()
      const [one, two] = [buildSealedRequest(), buildSealedRequest()]
      await store.quarantine([one, two], wide)
      await store.quarantine([{ ...one, refusal: '{}' }], wide)
      expect((await store.quarantinedRequests({ limit: 1, after: 0 }))[0]?.refusal).toBe(one.refusal)
      expect(await store.deleteSealed([one.requestId, newId()])).toBe(1)
      expect(await store.deleteSealed([one.requestId])).toBe(0)
      expect(await readKeptIds()).toEqual([two.requestId])
    })

    test('noteRefusals() replaces the reasons of the requests that it names, and of no others', async () => {
      const { store } = stage()
      const [one, two] = [buildSealedRequest(), buildSealedRequest()]
      await store.quarantine([one, two], wide)
      await store.noteRefusals([
        { requestId: one.requestId, refusal: '{"code":"body-invalid"}' },
        { requestId: newId(), refusal: '{}' },
      ])
      const reasons = (await store.quarantinedRequests({ limit: 9 })).map(({ refusal }) => refusal)
      expect(reasons).toEqual(['{"code":"body-invalid"}', two.refusal])
    })

    test('sealed requests older than the limit are deleted even if no new one arrives', async () => {
      const { store, clock } = stage()
      const old = buildSealedRequest()
      clock.advance(1_000)
      const late = buildSealedRequest()
      await store.quarantine([old, late], wide)
      await store.quarantine([], { ...wide, olderThan: clock() })
      expect(await readKeptIds()).toEqual([late.requestId])
    })

    test('a flood from one network deletes its own oldest requests, and no request from a quieter network', async () => {
      const { store } = stage()
      const quiet = buildSealedRequests(10)
      await store.quarantine(quiet, { ...wide, maxRequests: 20 })
      const flood = buildSealedRequests(100, { network: '198.51.100.0/24' })
      await store.quarantine(flood, { ...wide, maxRequests: 20 })
      expect(await readKeptIds()).toEqual(toIds([...quiet, ...flood.slice(-10)]))
    })

    test('large requests from one network do not delete small ones from another', async () => {
      const { store } = stage()
      const quiet = buildSealedRequests(40)
      const bounds = { ...wide, maxBytes: 10_000 }
      await store.quarantine(quiet, bounds)
      await store.quarantine(
        buildSealedRequests(30, { network: '198.51.100.0/24', sealed: new Uint8Array(4_000) }),
        bounds,
      )
      const kept = await readKeptIds()
      expect(kept.slice(0, 40)).toEqual(toIds(quiet))
      expect(kept).toHaveLength(42)
    })

    test('a flood from many networks to one hook leaves half of the room to the other hook', async () => {
      const { store } = stage()
      const quiet = buildSealedRequests(10, { hook: 'stripe' })
      const flood = Array.from({ length: 100 }, (_, index) => buildSealedRequest({ network: `10.0.${index}.0/24` }))
      await store.quarantine([...quiet, ...flood], { ...wide, maxRequests: 20 })
      const kept = await store.quarantinedRequests({ limit: 1_000 })
      expect(kept.filter(({ hook }) => hook === 'stripe')).toHaveLength(10)
      expect(kept).toHaveLength(20)
    })

    test('requests from networks that the hook knows are deleted last', async () => {
      const { store } = stage()
      const known = buildSealedRequests(15, { isKnown: true })
      const flood = Array.from({ length: 100 }, (_, index) => buildSealedRequest({ network: `10.0.${index}.0/24` }))
      await store.quarantine([...known, ...flood], { ...wide, maxRequests: 20 })
      expect((await readKeptIds()).slice(0, 15)).toEqual(toIds(known))
      await store.quarantine([], { ...wide, maxRequests: 5 })
      expect(await readKeptIds()).toEqual(toIds(known.slice(-5)))
    })

    test.each([1, 2, 3])(
      'whatever is stored, only the oldest requests of the largest shares are deleted, and not one too many, seed %i',
      async (seed) => {
        const random = createRandom(seed)
        const pick = (count: number) => Math.floor(random() * count)
        const requests = Array.from({ length: 300 }, () => {
          const network = `10.${pick(2) * pick(90)}.0.0/24`
          return buildSealedRequest({ hook: `hook${pick(3) * pick(2)}`, network, isKnown: pick(4) === 0 })
        })
        await stage().store.quarantine(requests, { ...wide, maxRequests: 60 })
        const kept = new Set(await readKeptIds())
        expect(kept.size).toBe(60)
        const isOneShare = (one: SealedRequest) => (other: SealedRequest) =>
          one.hook === other.hook && one.network === other.network && one.isKnown === other.isKnown
        const shares = requests.map((request) => {
          const { hook, isKnown } = request
          const group = requests.filter(isOneShare(request))
          const left = group.filter(({ requestId }) => kept.has(requestId))
          expect(left).toEqual(group.slice(group.length - left.length))
          return { hook, isKnown, left: left.length, isCut: left.length < group.length }
        })
        const areStrangersLeft = shares.some(({ isKnown, left }) => !isKnown && left > 0)
        if (areStrangersLeft) expect(shares.filter(({ isKnown, isCut }) => isKnown && isCut)).toEqual([])
        // those that were compared last
        const compared = shares.filter(({ isKnown }) => isKnown !== areStrangersLeft)
        const countLeft = (hook: string) =>
          requests.filter((request) => request.hook === hook && kept.has(request.requestId)).length
        for (const one of compared.filter(({ isCut }) => isCut)) {
          for (const other of compared.filter(({ left }) => left > 0)) {
            if (other.hook === one.hook) expect(one.left).toBeGreaterThanOrEqual(other.left - 1)
            expect(countLeft(one.hook)).toBeGreaterThanOrEqual(countLeft(other.hook) - 1)
          }
        }
      },
    )

    test('the retention of deliveries deletes no sealed request', async () => {
      const { store, clock } = stage()
      const request = buildSealedRequest()
      await store.quarantine([request], wide)
      await store.append(newDelivery({ at: clock() }))
      expect(await store.sweep(-1)).toBe(1)
      expect(await readKeptIds()).toEqual([request.requestId])
    })
  })
}
