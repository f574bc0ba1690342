// The signals by which one owner of a store learns about the writes of another.
import { randomUUID } from 'node:crypto'
import { createServer, connect, type Socket } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { createPostgresStore, type PostgresOptions } from '../../src/store/postgres/postgres.ts'
import { createMemoryStore } from '../../src/store/sqlite/sqlite.ts'
import type { Signal } from '../../src/store/owners.ts'
import type { Store } from '../../src/store/store.ts'
import { claimOne } from './jobs.ts'
import { databaseUrl, newSchema, whyNoPostgres, withDatabase } from './postgres-stage.ts'
import { accepted, createClock, newDelivery, newEvent, newJob, parked } from './stage.ts'
import { newTask } from './tasks.ts'

const never = 3_600_000
const quiet = { pingMs: never, pongMs: never, pollMs: never }
const clock = createClock()
const slow = { timeout: 60_000 }

let closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.toReversed()) await close()
  closing = []
})

async function openTwo(listening = quiet, listenerUrl = (url: string) => url) {
  const { url, drop } = await newSchema()
  closing.push(drop)
  const open = (options: Partial<PostgresOptions> = {}) => {
    const store = createPostgresStore({ url, listening, now: () => `${clock()}::bigint`, ...options })
    closing.push(store.close)
    return store
  }
  return { writer: open(), reader: open({ url: listenerUrl(url) }), url }
}

/** Collects the signals of a store. `next` resolves at the next signal of a kind. */
function collectSignals(store: Store) {
  const signals: Signal[] = []
  let onSignal = () => {}
  store.subscribe((signal) => {
    signals.push(signal)
    onSignal()
  })
  const waitForSignal = async (signal: Signal) => {
    while (!signals.includes(signal)) await new Promise<void>((resolve) => (onSignal = resolve))
    signals.length = 0
  }
  return { signals, next: waitForSignal }
}

/** Writes until the store gets a signal: from then on, it gets a signal for each write of `writer`. */
async function waitUntilConnected(store: Store, writer: Store): Promise<ReturnType<typeof collectSignals>> {
  const listener = collectSignals(store)
  await expect
    .poll(async () => {
      await writer.addTask(newTask({ standsFor: `hello/${randomUUID()}`, lane: 'hello' }))
      return listener.signals
    }, slow)
    .toContain('jobs')
  listener.signals.length = 0
  return listener
}

describe('a store with one owner', () => {
  test('a store with one owner calls no listener: the caller knows its own writes', async () => {
    const store = createMemoryStore({ clock })
    const { signals } = collectSignals(store)
    await store.append(newDelivery({ at: clock(), jobs: [newJob()] }))
    expect(signals).toEqual([])
  })
})

describe.skipIf(whyNoPostgres !== undefined)(`a store with several owners (${whyNoPostgres ?? 'Postgres'})`, () => {
  test('writes that create work are signalled to the other owners, and not to the writer', async () => {
    const { writer, reader } = await openTwo()
    const { next } = await waitUntilConnected(reader, writer)
    const own = collectSignals(writer)
    const job = newJob()
    await writer.append(newDelivery({ at: clock(), jobs: [job] }))
    await next('jobs')
    const waiting = newDelivery({ at: clock(), ...parked() })
    await writer.append(waiting)
    await next('waiting')
    await writer.settle(waiting.id, accepted({ jobs: [newJob()] }))
    await next('jobs')
    const move = { name: 'place', from: undefined, to: '1' }
    await writer.appendAll([newDelivery({ at: clock(), ...parked({ state: 'pending' }) })], move)
    await next('waiting')
    await writer.report(await claimOne(writer), { outcome: { kind: 'release' } })
    await next('jobs')
    const [dead] = await writer.claim({ limit: 1, leaseMs: 1_000 })
    if (dead === undefined) throw new Error('a job is due')
    await writer.report(dead, { outcome: { kind: 'dead', error: 'no' } })
    await writer.requeue(dead.id)
    await next('jobs')
    expect(own.signals).toEqual([])
  })

  test('a write that creates no work is not signalled', async () => {
    const { writer, reader } = await openTwo()
    const { signals, next } = await waitUntilConnected(reader, writer)
    signals.length = 0
    await writer.append(newDelivery({ at: clock(), jobs: [newJob({ state: 'done', events: [newEvent()] })] }))
    await writer.append(newDelivery({ at: clock(), state: 'skipped' }))
    await writer.append(newDelivery({ at: clock(), ...parked() }))
    await next('waiting')
    expect(signals).toEqual([])
  })

  test('a store that polls finds work without a notification, and signals only the kind of work that exists', async () => {
    const { writer, reader } = await openTwo({ ...quiet, pollMs: 20 })
    const { signals, next } = collectSignals(reader)
    // this write comes before the listener is connected
    await writer.append(newDelivery({ at: clock(), jobs: [newJob()] }))
    await next('jobs')
    await writer.append(
      newDelivery({ at: clock(), jobs: [newJob({ state: 'done', events: [newEvent({ wakes: true })] })] }),
    )
    await next('wakes')
    expect(signals).not.toContain('waiting')
    await writer.append(newDelivery({ at: clock(), ...parked() }))
    await next('waiting')
  })

  test('nodes() lists each gateway that joined within the last half minute', async () => {
    const { writer, reader } = await openTwo()
    const buildNode = (id: string) => ({ id, version: '1', generation: 'g', address: '' })
    const readNodeIds = async () => (await reader.nodes()).map(({ id }) => id)
    await reader.join(buildNode('b'))
    await writer.join(buildNode('a'))
    expect(await readNodeIds()).toEqual(['a', 'b'])
    clock.advance(29_999)
    await reader.join(buildNode('b'))
    expect(await readNodeIds()).toEqual(['a', 'b'])
    clock.advance(1)
    expect(await readNodeIds()).toEqual(['b'])
  })

  test('a client whose failures at all gateways add up to the limit is locked out, and no other client is', async () => {
    const { writer, reader } = await openTwo()
    const rule = { failures: 20, windowMs: 60_000, lockMs: 60_000 }
    const recordFailures = (store: Store, client: string, count: number, scope = 'tokens') =>
      store.noteFailures({ scope, clients: [{ client, count }], ...rule })
    await recordFailures(writer, 'a', 10)
    await recordFailures(reader, 'a', 9)
    await recordFailures(writer, 'b', 19)
    await recordFailures(writer, 'a', 5, 'signers')
    expect(await reader.lockouts('tokens')).toEqual([])
    await recordFailures(writer, 'a', 1)
    expect(await reader.lockouts('tokens')).toEqual([{ client: 'a', forMs: 60_000 }])
    expect(await reader.lockouts('signers')).toEqual([])
    clock.advance(59_999)
    await recordFailures(reader, 'a', 40)
    expect(await reader.lockouts('tokens')).toEqual([{ client: 'a', forMs: 1 }])
    clock.advance(1)
    expect(await reader.lockouts('tokens')).toEqual([])
    // the window of the earlier failures is over
    await recordFailures(writer, 'b', 19)
    await recordFailures(writer, 'a', 19)
    expect(await reader.lockouts('tokens')).toEqual([])
    await recordFailures(reader, 'c', 20)
    expect(await writer.lockouts('tokens')).toMatchObject([{ client: 'c' }])
  })

  test('the failures of one scope are counted for its whole window, even if another scope has a shorter one', async () => {
    const { writer, reader } = await openTwo()
    const rule = { failures: 20, lockMs: 60_000 }
    const recordFailures = (store: Store, scope: string, windowMs: number, count: number) =>
      store.noteFailures({ scope, clients: [{ client: 'a', count }], windowMs, ...rule })
    await recordFailures(writer, 'tokens', 60_000, 19)
    clock.advance(10_000)
    await recordFailures(reader, 'signers', 1_000, 1)
    await recordFailures(reader, 'tokens', 60_000, 1)
    expect(await writer.lockouts('tokens')).toEqual([{ client: 'a', forMs: 60_000 }])
  })

  test('a store gets signals again after its connection was terminated', async () => {
    const { writer, reader } = await openTwo()
    await waitUntilConnected(reader, writer)
    await withDatabase((client) =>
      client.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'hookloom listener'`,
      ),
    )
    expect(await waitUntilConnected(reader, writer)).toBeDefined()
  })

  test('a store notices that a connection loses notifications, reports it, and opens another one', async () => {
    const proxy = await startProxy()
    const { writer, reader } = await openTwo({ pingMs: 200, pongMs: 3_000, pollMs: never }, proxy.through)
    const readWarning = async () => (await reader.health()).warning
    await waitUntilConnected(reader, writer)
    await expect.poll(readWarning, slow).toBeUndefined()
    proxy.freezeListener()
    await expect.poll(readWarning, slow).toMatch(/LISTEN needs a direct connection/)
    await waitUntilConnected(reader, writer)
    await expect.poll(readWarning, slow).toBeUndefined()
  })
})

/** Starts a proxy in front of the database. It can silently stop forwarding a connection, as a lost network does. */
async function startProxy() {
  const target = new URL(databaseUrl)
  const listeners: Socket[] = []
  const server = createServer((client) => {
    const upstream = connect(Number(target.port || 5432), target.hostname)
    client.pipe(upstream).pipe(client)
    client.on('data', (chunk) => {
      if (chunk.includes('hookloom listener')) listeners.push(upstream)
    })
    for (const socket of [client, upstream]) socket.on('error', () => {})
    client.on('close', () => upstream.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the proxy has a port')
  closing.push(async () => server.close())
  return {
    through: (url: string) => Object.assign(new URL(url), { host: `127.0.0.1:${address.port}` }).href,
    freezeListener: () => {
      for (const upstream of listeners) upstream.unpipe()
    },
  }
}
