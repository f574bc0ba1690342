// 200 means durable: the delivery is on disk before the answer. The answer is 503 while nothing can be written. An orderly stop loses
// nothing.
import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { createSqliteReader, createSqliteStore } from '../../src/store/sqlite/sqlite.ts'
import { count } from '../counts.ts'
import { drain, findDamage } from '../e2e/aftermath.ts'
import { readDeliveryId, readVerdict } from '../e2e/answers.ts'
import { gatewayToken, makeConfigDir, makeFolder, startGateway } from '../e2e/gateway.ts'
import { readStore, startInside } from '../e2e/inside.ts'
import { askRun, createLoad } from '../e2e/load.ts'
import { type Headers, post, type Reply, send } from '../e2e/wire.ts'
import { createHistory, deliveryKey, recordStored, startWitness } from '../history/history.ts'

const wake = { text: 'hello' }
const portOf = (url: string) => Number(new URL(url).port)
const runs = (command: string, args: readonly string[]) => spawnSync(command, args, { stdio: 'ignore' }).status === 0

function expectUnavailable(reply: Reply): void {
  expect(readVerdict(reply)).toBe('store-unavailable')
  expect(Number(reply.headers['retry-after'])).toBeGreaterThan(0)
}

test('no 200 is sent before its commit, and the delivery of each 200 has its row', async () => {
  const heldMs = 2_000
  const dir = makeConfigDir()
  const file = join(dir, 'state/hookloom.db')
  const store = createSqliteStore({ file, clock: Date.now, commitDelayMs: heldMs })
  const gateway = await startInside({ dir, store })
  const began = performance.now()
  const replies = await Promise.all(
    [1, 2, 3].map(async (n) => {
      const reply = await post(gateway.port, '/hooks/wake', { text: `held ${n}` })
      const afterMs = performance.now() - began
      const record = await readStore(dir, (reader) => reader.delivery(readDeliveryId(reply)))
      return { afterMs, state: record?.state }
    }),
  )
  for (const { afterMs, state } of replies) {
    expect(afterMs).toBeGreaterThanOrEqual(heldMs - 5)
    expect(state).toBe('accepted')
  }
})

describe('a full disk', () => {
  const disk = makeFolder()
  const mounted = runs('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', disk])
  afterAll(() => {
    if (mounted) runs('umount', ['-l', disk])
  })

  test.skipIf(!mounted)(
    'with a full disk, a gateway answers 503, never 200 without a row, and recovers when space returns (skipped: a tmpfs cannot be mounted)',
    { timeout: 120_000 },
    async () => {
      const ballast = join(disk, 'ballast')
      writeFileSync(ballast, Buffer.alloc(3 * 1024 * 1024))
      const gateway = await startInside({ config: { store: { file: join(disk, 'hookloom.db') } } })
      const large = { text: 'x'.repeat(200_000) }
      const accepted: string[] = []
      let refused = 0
      for (let n = 0; n < 200 && refused < 50; n++) {
        const reply = await post(gateway.port, '/hooks/wake', large)
        if (reply.status === 200) accepted.push(readDeliveryId(reply))
        else {
          expectUnavailable(reply)
          refused += 1
        }
      }
      expect([accepted.length > 3, refused]).toEqual([true, 50])
      const full = await fetch(`${gateway.adminUrl}/readyz`)
      expect(full.status).toBe(503)

      rmSync(ballast)
      accepted.push(readDeliveryId(await post(gateway.port, '/hooks/wake', wake)))
      accepted.push(readDeliveryId(await post(gateway.port, '/hooks/wake', large)))
      const ready = await fetch(`${gateway.adminUrl}/readyz`)
      expect(ready.status).toBe(200)
      await gateway.stop()
      const reader = createSqliteReader({ file: join(disk, 'hookloom.db') })
      const states = await Promise.all(accepted.map(async (id) => (await reader.delivery(id))?.state))
      await reader.close()
      expect(new Set(states)).toEqual(new Set(['accepted']))
    },
  )
})

test('a gateway whose store has too much waiting work answers 503, never 200 without a row, and accepts deliveries again when there is room', async () => {
  const hooks = { mappings: [{ id: 'gone', match: { path: 'gone' }, transform: { module: 'gone.ts' } }] }
  const gateway = await startInside({ config: { hooks, store: { maxWaitingBytes: 100_000 } } })
  const deliver = () => post(gateway.port, '/hooks/gone', { more: 'x'.repeat(9_000) })
  const parked: string[] = []
  let refused: Reply | undefined
  while (refused === undefined && parked.length < 50) {
    const reply = await deliver()
    if (reply.status === 200) parked.push(readDeliveryId(reply))
    else refused = reply
  }
  expect([refused && readVerdict(refused), refused?.headers['retry-after']]).toEqual(['store-full', '60'])
  expect(parked.length).toBe(10)
  const states = await readStore(gateway.dir, async (reader) => (await reader.counts()).deliveries)
  expect(states.parked).toBe(parked.length)
  expect((await fetch(`${gateway.adminUrl}/readyz`)).status).toBe(503)

  const headers: Headers = [['authorization', `Bearer ${gatewayToken}`]]
  for (const id of parked.slice(0, 3)) {
    const target = `/api/deliveries/${id}/drop`
    expect((await send(portOf(gateway.adminUrl), { target, headers })).status).toBe(200)
  }
  expect((await fetch(`${gateway.adminUrl}/readyz`)).status).toBe(200)
  readDeliveryId(await deliver())
})

test('a gateway whose store cannot be opened starts, and answers 503 until the store is repaired and 200 afterwards', async () => {
  // a file in place of the folder stops every user, even root
  const dir = makeConfigDir({ files: { state: 'in the way' } })
  const gateway = await startInside({ dir })
  expectUnavailable(await post(gateway.port, '/hooks/wake', wake))
  expectUnavailable(await post(gateway.port, '/hooks/agent', { message: 'x' }, [['idempotency-key', 'early']]))
  expect((await fetch(`${gateway.adminUrl}/readyz`)).status).toBe(503)
  expect((await fetch(`${gateway.adminUrl}/healthz`)).status).toBe(200)

  rmSync(join(dir, 'state'))
  mkdirSync(join(dir, 'state'))
  const id = readDeliveryId(await post(gateway.port, '/hooks/wake', wake))
  expect((await readStore(dir, (reader) => reader.delivery(id)))?.state).toBe('accepted')
  expect((await fetch(`${gateway.adminUrl}/readyz`)).status).toBe(200)
})

test('a second gateway on a store is refused until the first one has ended, and the error names the owner', async () => {
  const first = await startGateway()
  const second = await startGateway({ dir: first.dir }).then(
    () => 'it listens',
    (error: unknown) => String(error),
  )
  expect(second).toMatch(/ended with 69 .*in use by another gateway \(pid \d+\)/s)
  expect(second).toContain(`pid ${first.child.pid}`)
  expect(readVerdict(await post(portOf(first.url), '/hooks/wake', wake))).toBe('accepted')
  expect(await first.stop()).toBe(0)
  const third = await startGateway({ dir: first.dir })
  expect(readVerdict(await post(portOf(third.url), '/hooks/wake', wake))).toBe('accepted')
  expect(await third.stop()).toBe(0)
})

test('SIGTERM under load ends the gateway with exit code 0, and no acknowledged delivery is lost', async (context) => {
  const mapping = { id: 'mapped', match: { path: 'mapped' }, messageTemplate: '{{text}}', deliver: false }
  const history = createHistory('stop')
  const gateway = await startGateway({
    config: { hooks: { mappings: [mapping] }, ...(await startWitness(history, deliveryKey)) },
  })
  let turn = 0
  const load = createLoad({ connections: 16, pickBelow: (limit) => turn++ % limit, history })
  load.open(gateway, 100_000)
  await vi.waitUntil(() => load.acknowledged.length > 200, { timeout: 60_000, interval: 10 })
  load.close()
  const next = await history.during('stop', async () => {
    expect(await gateway.stop()).toBe(0)
    expect(findDamage(gateway.dir)).toEqual([])
    return startGateway({ dir: gateway.dir })
  })
  load.open(next, 0)
  const acknowledged = await load.finish()
  expect(load.unexpected).toEqual([])
  await drain(gateway.dir)
  await recordStored(history, { dir: gateway.dir, ask: (run) => askRun(next.url, run) })
  history.judge()
  count(context, { acknowledged: acknowledged.length, lost: 0, twice: 0 })
  expect(await next.stop()).toBe(0)
})
