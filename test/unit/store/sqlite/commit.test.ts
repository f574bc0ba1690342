// Durability: a call resolves after its commit, and a commit is synced.
import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openDatabase } from '../../../../src/store/sqlite/driver.ts'
import { spawnWriter } from '../../../../src/store/sqlite/queue.ts'
import { createSqliteReader } from '../../../../src/store/sqlite/sqlite.ts'
import { keyed, newDelivery, newJob, parked, request } from '../../../contract/stage.ts'
import { createSpawn, newFolder, openStore, small } from './stage.ts'

describe('a commit', () => {
  test('a commit is synced: the connection of the writer has journal_mode=WAL and synchronous=FULL', async () => {
    const store = openStore(join(newFolder(), 'x.db'))
    await store.ready()
    expect((await store.health()).facts).toMatchObject({ journal_mode: 'wal', synchronous: 2 })
  })

  test('a commit comes before the answer: until then the call does not resolve and nothing can be read', async () => {
    const file = join(newFolder(), 'x.db')
    const store = openStore(file, { commitDelayMs: 2000 })
    const delivery = small()
    const began = performance.now()
    let resolved = false
    const appended = store.append(delivery).then(() => {
      resolved = true
      return store.delivery(delivery.id)
    })
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(resolved).toBe(false)
    expect(await store.delivery(delivery.id)).toBeUndefined()
    expect(await appended).toMatchObject({ deliveryId: delivery.id })
    expect(performance.now() - began).toBeGreaterThan(2000)
  })

  test('a commit contains everything that arrived during the previous one', async () => {
    const store = openStore(join(newFolder(), 'x.db'), { commitDelayMs: 50 })
    await store.ready()
    const before = Number((await store.health()).facts['commits'])
    const first = store.append(small())
    // the first operation is sent alone, with the next turn of the event loop
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
    await Promise.all([first, ...Array.from({ length: 200 }, () => store.append(small()))])
    expect(Number((await store.health()).facts['commits']) - before).toBe(2)
    expect((await store.counts()).deliveries.accepted).toBe(201)
  })

  test('a commit keeps the order of the calls: of two deliveries with one key that are appended at once, the first is stored', async () => {
    const store = openStore(join(newFolder(), 'x.db'))
    const twins = [1, 2, 3].map(() => newDelivery({ at: 1, ...keyed('k') }))
    const appended = await Promise.all(twins.map((twin) => store.append(twin)))
    expect(appended).toMatchObject([{ kind: 'stored' }, ...[1, 2].map(() => ({ first: { deliveryId: twins[0]?.id } }))])
  })

  test('a commit contains the valid operations of a batch even if one operation fails', async () => {
    const store = openStore(join(newFolder(), 'x.db'))
    await store.ready()
    const taken = newJob()
    const good = [small(), newDelivery({ at: 1, jobs: [taken] }), small()] as const
    const bad = newDelivery({ at: 1, ...keyed('k'), jobs: [taken] })
    const results = await Promise.allSettled([good[0], good[1], bad, good[2]].map((each) => store.append(each)))
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled'])
    expect(results[2]).toMatchObject({ reason: { code: 'store-unavailable' } })
    expect(await store.delivery(bad.id)).toBeUndefined()
    for (const { id } of good) expect(await store.delivery(id)).toBeDefined()
    expect(await store.health()).toMatchObject({ trouble: undefined })
  })

  test('a copy of the files of an open store has every acknowledged write and passes the integrity check, as after a crash', async () => {
    const folder = newFolder()
    const file = join(folder, 'x.db')
    const store = openStore(file)
    const deliveries = Array.from({ length: 50 }, () =>
      newDelivery({ at: Date.now(), ...parked(), jobs: [newJob({ lane: 'a' })] }),
    )
    await Promise.all(deliveries.map((delivery) => store.append(delivery)))
    const [held] = await store.claim({ limit: 1, leaseMs: 60_000 })
    const copy = join(folder, 'copy')
    mkdirSync(copy)
    // by another process: closing a descriptor of the file here would drop SQLite's own locks
    execFileSync('cp', [file, `${file}-wal`, copy])
    const reopened = openStore(join(copy, 'x.db'))
    await reopened.ready()
    for (const { id } of deliveries) expect(await reopened.delivery(id)).toBeDefined()
    expect(await reopened.openDeliveries({ limit: 100 })).toHaveLength(50)
    // the lease belonged to a dead process: the job is due at once, and the attempt counts, because the job may have crashed the process
    expect(await reopened.claim({ limit: 9, leaseMs: 1000 })).toMatchObject([
      { id: held?.id, lapsedFence: held?.fence, attempts: 1 },
    ])
    const db = openDatabase(join(copy, 'x.db'), { readOnly: true, busyMs: 1000 })
    expect(db.get('PRAGMA integrity_check')).toMatchObject({ integrity_check: 'ok' })
    db.close()
  })

  test('a commit removes the request of a settled delivery, unless the settlement has one', async () => {
    const file = join(newFolder(), 'x.db')
    const store = openStore(file)
    const [gone, kept] = [newDelivery({ at: 1, ...parked() }), newDelivery({ at: 1, ...parked() })]
    for (const each of [gone, kept]) await store.append(each)
    const settled = { ...parked(), state: 'accepted', waitsFor: undefined, problem: undefined } as const
    await store.settle(gone.id, { ...settled, request: undefined })
    await store.settle(kept.id, settled)
    const db = openDatabase(file, { readOnly: true, busyMs: 1000 })
    expect(db.all('SELECT head IS NULL AS head, body IS NULL AS body FROM deliveries ORDER BY seq')).toEqual([
      { head: 1, body: 1 },
      { head: 0, body: 0 },
    ])
    db.close()
  })
})

describe('the queue of the writer', () => {
  test('the queue of the writer is bounded: an append beyond the limit is refused at once, and the waiting appends are stored', async () => {
    const store = openStore(join(newFolder(), 'x.db'), { maxQueued: 3, commitDelayMs: 20 })
    const results = await Promise.allSettled([1, 2, 3, 4].map(() => store.append(small())))
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled', 'rejected'])
    expect(results[3]).toMatchObject({ reason: { code: 'store-unavailable', retryAfterSeconds: 1 } })
    expect(await store.append(small())).toEqual({ kind: 'stored' })
  })

  test('the queue of the writer is bounded for appendAll too, and the bodies of its deliveries are stored whole', async () => {
    const store = openStore(join(newFolder(), 'x.db'), { maxQueued: 3, commitDelayMs: 20 })
    const cursor = { name: 'mail', from: undefined, to: '7' }
    const bodies = ['{"a":1}', '{"b":2}']
    const together = bodies.map((body) => newDelivery({ at: 1, ...parked({ request: request(body) }) }))
    const waiting = [store.append(small()), store.appendAll(together, cursor), store.append(small())]
    await expect(store.appendAll([small()], { name: 'mail', from: '7', to: '8' })).rejects.toMatchObject({
      code: 'store-unavailable',
      retryAfterSeconds: 1,
    })
    await Promise.all(waiting)
    expect(await store.cursor('mail')).toBe('7')
    const open = await store.openDeliveries({ limit: 9 })
    expect(open.map((each) => new TextDecoder().decode(each.request?.body))).toEqual(bodies)
  })

  test('close() empties the queue of the writer, and later calls are refused', async () => {
    const file = join(newFolder(), 'x.db')
    const store = openStore(file)
    const delivery = small()
    const appended = store.append(delivery)
    await store.close()
    expect(await appended).toEqual({ kind: 'stored' })
    await expect(store.append(small())).rejects.toMatchObject({ code: 'store-unavailable' })
    const reader = createSqliteReader({ file })
    expect(await reader.delivery(delivery.id)).toBeDefined()
    await reader.close()
  })

  test('the queue of the writer refuses calls while its thread cannot be started, and starts the thread with a later call', async () => {
    let failures = 1
    const spawn: typeof spawnWriter = (options) => {
      if (failures-- > 0) throw new Error('no thread left')
      return spawnWriter(options)
    }
    const store = openStore(join(newFolder(), 'x.db'), { spawn })
    await expect(store.append(small())).rejects.toMatchObject({ code: 'store-unavailable' })
    expect(await store.append(small())).toEqual({ kind: 'stored' })
  })

  test('the queue of the writer survives the end of its thread: the running batch is refused, and a new thread stores the next call', async () => {
    const { spawn, spawned } = createSpawn()
    const store = openStore(join(newFolder(), 'x.db'), { spawn, commitDelayMs: 300 })
    await store.append(newDelivery({ at: 1, jobs: [newJob()] }))
    const [held] = await store.claim({ limit: 1, leaseMs: 60_000 })
    // the thread throws at this message and dies; terminate() would abort the process if it came while SQLite runs
    spawned[0]?.postMessage(null)
    const lost = store.append(small())
    await expect(lost).rejects.toMatchObject({ code: 'store-unavailable', message: /thread died/ })
    expect(await store.append(small())).toEqual({ kind: 'stored' })
    expect(spawned).toHaveLength(2)
    // the process survives, and so does the worker that runs this job
    expect(held && (await store.report(held, { outcome: { kind: 'done' } }))).toBe(true)
  })
})
