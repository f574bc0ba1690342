// The limit on the size of waiting work in a store: the store warns before it refuses, and loses nothing that is stored.
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { silentLog } from '../../../../src/base/log.ts'
import { newDelivery, newEvent, newJob, parked, request } from '../../../contract/stage.ts'
import { newFolder, openStore, small } from './stage.ts'

const maxBytes = 100_000
const full = { code: 'store-full', status: 503, retryAfterSeconds: 60 }
const newLarge = () => newDelivery({ at: Date.now(), ...parked({ request: request('x'.repeat(9_000)) }) })

function recordLog() {
  const told: string[] = []
  const note = (_: object, message: string) => void told.push(message)
  return { told, log: { ...silentLog, info: note, warn: note, error: note } }
}

describe('a store in which too much waits', () => {
  test('a full store refuses deliveries that would wait, and accepts them again when others have ended; each change is logged', async () => {
    const { told, log } = recordLog()
    const store = openStore(join(newFolder(), 'x.db'), { maxWaitingBytes: () => maxBytes, log })
    const stored: string[] = []
    const fill = async () => {
      for (;;) {
        const delivery = newLarge()
        await store.append(delivery)
        stored.push(delivery.id)
        const { trouble, warning } = await store.health()
        expect([trouble, warning === undefined]).toEqual([undefined, (await store.waitingBytes()) < 0.8 * maxBytes])
      }
    }
    await expect(fill()).rejects.toMatchObject(full)
    expect(stored.length).toBe(10)
    expect(await store.waitingBytes()).toBeLessThanOrEqual(maxBytes)
    expect(await store.health()).toMatchObject({
      trouble: expect.stringContaining('store.maxWaitingBytes'),
      warning: undefined,
    })
    await expect(store.appendAll([newLarge()], { name: 'gmail', from: undefined, to: '7' })).rejects.toMatchObject(full)
    expect(await store.cursor('gmail')).toBeUndefined()

    expect(await store.settle(stored[0] ?? '', { ...parked(), state: 'accepted', request: undefined })).toBe(true)
    for (const id of stored.slice(1, 3)) await store.drop(id)
    expect(await store.append(newLarge())).toEqual({ kind: 'stored' })
    expect((await store.counts()).deliveries).toMatchObject({ parked: 8, accepted: 1, dropped: 2 })
    expect(told).toEqual([
      expect.stringMatching(/^Parked deliveries and queued jobs use 8\d % of store\.maxWaitingBytes/),
      expect.stringMatching(/^The store is full/),
      'The store takes deliveries again.',
    ])
  })

  test('a store stays within its limit even if many deliveries arrive at once', async () => {
    const store = openStore(join(newFolder(), 'x.db'), { maxWaitingBytes: () => maxBytes })
    await store.ready()
    const answers = await Promise.allSettled(Array.from({ length: 40 }, () => store.append(newLarge())))
    expect(answers.filter(({ status }) => status === 'fulfilled').length).toBeLessThanOrEqual(11)
    expect(await store.waitingBytes()).toBeLessThanOrEqual(maxBytes)
  })

  test('a full store still accepts deliveries that do not wait, such as wakes, and its stored jobs can end', async () => {
    const store = openStore(join(newFolder(), 'x.db'), { maxWaitingBytes: () => 500 })
    const [job] = [newJob()]
    await store.append(newDelivery({ at: Date.now(), jobs: [job] }))
    await expect(store.append(newDelivery({ at: Date.now(), jobs: [newJob()] }))).rejects.toMatchObject(full)
    const wake = newJob({ state: 'done', events: [newEvent()] })
    expect(await store.append(newDelivery({ at: Date.now(), jobs: [wake] }))).toEqual({ kind: 'stored' })
    expect(await store.append(small())).toEqual({ kind: 'stored' })
    const [claimed] = await store.claim({ limit: 1, leaseMs: 1_000 })
    if (claimed === undefined) throw new Error('no job is due')
    expect(await store.report(claimed, { outcome: { kind: 'done' } })).toBe(true)
    expect(await store.append(newDelivery({ at: Date.now(), jobs: [newJob()] }))).toEqual({ kind: 'stored' })
  })

  test('one delivery larger than the limit does not make the store full', async () => {
    const store = openStore(join(newFolder(), 'x.db'), { maxWaitingBytes: () => 5_000 })
    await store.ready()
    await expect(store.append(newLarge())).rejects.toMatchObject(full)
    expect(await store.health()).toMatchObject({ trouble: undefined, warning: undefined })
  })

  test('a store knows after a restart how much waits in it, and a higher limit applies at once', async () => {
    const file = join(newFolder(), 'x.db')
    const before = openStore(file)
    for (let count = 0; count < 12; count++) await before.append(newLarge())
    const bytes = await before.waitingBytes()
    await before.close()
    let limit = maxBytes
    const store = openStore(file, { maxWaitingBytes: () => limit })
    await store.ready()
    expect(await store.waitingBytes()).toBe(bytes)
    await expect(store.append(newLarge())).rejects.toMatchObject(full)
    limit *= 2
    expect(await store.append(newLarge())).toEqual({ kind: 'stored' })
    expect(await store.health()).toMatchObject({ trouble: undefined })
  })
})
