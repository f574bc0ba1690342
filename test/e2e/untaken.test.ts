// An edit removes the mapping of parked deliveries and restores it, on each engine, and with two gateways on one database.
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Store } from '../../src/store/store.ts'
import { whyNoPostgres } from '../contract/postgres-stage.ts'
import {
  closeAfterEach,
  engines,
  openPostgres,
  slow,
  startStage,
  readMessages,
  buildWaitingModule,
} from './edit-stage.ts'
import { hookToken, makeFolder, post } from './gateway.ts'

closeAfterEach()

const github = { scheme: 'github', secret: 'sender-secret-0123456789abcdefghij' }
const mapping = { id: 'x', match: { path: 'x' }, transform: { module: 'x.ts' } }
const other = { id: 'other', match: { path: 'x', payload: { kind: 'other' } }, messageTemplate: 'other' }

/** Edits, each with the mappings after it. */
const edits: readonly [string, readonly object[]][] = [
  ['the mapping is commented out', []],
  ['its hook has another name', [{ ...mapping, match: { path: 'renamed' } }]],
  ['its conditions changed', [{ ...mapping, match: { path: 'x', payload: { kind: 'new' } } }]],
  ['the hook has only another mapping now', [other]],
  ['it now requires a proof', [{ ...mapping, verify: github }]],
  ['its forEach names another list', [{ ...mapping, forEach: 'items' }]],
]

async function start(store: Store, door: string, mappings: readonly object[]) {
  const stage = await startStage(store, buildWaitingModule(door, "'of ' + payload.n"), mappings)
  const send = async (n: number) => String((await post({ url: stage.url, token: hookToken }, 'x', { n }))['deliveryId'])
  return { ...stage, send }
}

for (const [name, why, open] of engines) {
  describe.skipIf(why !== undefined)(`deliveries that no mapping takes, on ${name} (${why ?? 'available'})`, () => {
    test.each(edits)('a parked delivery survives an edit: %s', async (_what, mappings) => {
      const store = (await open())()
      const door = join(makeFolder(), 'door')
      const { edit, editLive, send, retry } = await start(store, door, [mapping])
      const id = await send(1)
      expect(await store.delivery(id)).toMatchObject({ state: 'parked', problem: { code: 'transform-failed' } })
      await editLive(mappings)
      writeFileSync(door, '')
      expect(await retry()).toMatchObject({ settled: 0, stillParked: 1 })
      await expect.poll(async () => (await store.delivery(id))?.problem?.code, slow).toBe('mapping-missing')
      const left = await store.delivery(id)
      expect(left).toMatchObject({ state: 'parked', mappingId: 'x', problem: { code: 'mapping-missing' } })
      expect(left?.problem?.detail).toMatch(/ since \d{4}-\d\d-\d\d \d\d:\d\dZ/)
      expect(await store.request(id)).toBeDefined()
      expect((await store.counts()).deliveries).toMatchObject({ parked: 1, skipped: 0 })
      edit([mapping])
      await expect.poll(async () => (await store.delivery(id))?.state, slow).toBe('accepted')
      expect(await readMessages(store)).toEqual(['of 1'])
    })

    test('a parked delivery survives the removal of its mapping, and still belongs to its flow afterwards', async () => {
      const store = (await open())()
      const door = join(makeFolder(), 'door')
      const withFlow = { ...mapping, flow: { key: 'one', onNew: 'gather', delay: '5s' } }
      const { edit, editLive, send } = await start(store, door, [withFlow])
      const ids = [await send(1), await send(2)]
      await editLive([])
      writeFileSync(door, '')
      const readDeliveries = () => Promise.all(ids.map((id) => store.delivery(id)))
      const readCodes = async () => (await readDeliveries()).map((delivery) => delivery?.problem?.code)
      await expect.poll(readCodes, slow).toEqual(['mapping-missing', 'mapping-missing'])
      edit([withFlow])
      const readStates = async () =>
        (await readDeliveries()).flatMap((delivery) => delivery?.jobs.map(({ state }) => state))
      await expect.poll(async () => (await readStates()).toSorted(), slow).toEqual(['done', 'superseded'])
    })

    test('a delivery that no mapping takes stays parked after a start, and its record says since when no mapping takes it', async () => {
      const reopen = await open()
      const store = reopen()
      const door = join(makeFolder(), 'door')
      const first = await start(store, door, [mapping])
      const id = await first.send(1)
      first.edit([])
      await expect.poll(() => first.lines.join('\n'), slow).toMatch(/1 parked delivery waits for a mapping/)
      const { problem } = (await store.delivery(id)) ?? {}
      expect(problem?.code).toBe('mapping-missing')
      await first.stop()
      const next = reopen()
      const second = await start(next, door, [{ ...other, match: { path: 'else' } }])
      await expect.poll(() => second.lines.join('\n'), slow).toMatch(/1 parked delivery waits for a mapping/)
      expect(await next.delivery(id)).toMatchObject({ state: 'parked', problem })
      expect(existsSync(door)).toBe(false)
      writeFileSync(door, '')
      second.edit([mapping])
      await expect.poll(async () => (await next.delivery(id))?.state, slow).toBe('accepted')
    })
  })
}

describe.skipIf(whyNoPostgres !== undefined)(
  `two gateways on one Postgres (${whyNoPostgres ?? 'available'})`,
  { timeout: 120_000 },
  () => {
    test('a gateway without a mapping does not end a parked delivery of another gateway, and runs it when it gets the mapping', async () => {
      const open = await openPostgres()
      const [one, two] = [open(), open()]
      const door = join(makeFolder(), 'door')
      const taker = await start(one, door, [mapping])
      const id = await taker.send(1)
      await taker.stop()
      const without = await start(two, door, [])
      await expect.poll(() => without.lines.join('\n'), slow).toMatch(/waits for a mapping/)
      expect(await two.delivery(id)).toMatchObject({ state: 'parked', problem: { code: 'mapping-missing' } })
      writeFileSync(door, '')
      without.edit([mapping])
      await expect.poll(async () => (await two.delivery(id))?.state, slow).toBe('accepted')
    })

    test('a delivery that no gateway maps stays parked, and the gateway that gets the mapping runs it once', async () => {
      const open = await openPostgres()
      const [one, two] = [open(), open()]
      const door = join(makeFolder(), 'door')
      const taker = await start(one, door, [mapping])
      const without = await start(two, door, [])
      const id = await taker.send(1)
      expect(await two.delivery(id)).toMatchObject({ state: 'parked', problem: { code: 'transform-failed' } })
      taker.edit([])
      await expect.poll(async () => (await two.delivery(id))?.problem?.code, slow).toBe('mapping-missing')
      writeFileSync(door, '')
      for (const gateway of [taker, without]) expect(await gateway.retry()).toMatchObject({ settled: 0 })
      expect(await one.delivery(id)).toMatchObject({ state: 'parked', problem: { code: 'mapping-missing' } })
      without.edit([mapping])
      await expect.poll(async () => (await one.delivery(id))?.state, slow).toBe('accepted')
      expect(await readMessages(one)).toEqual(['of 1'])
    })

    test('parked deliveries run in the order of the store, even if the clock of a gateway is behind', async () => {
      const open = await openPostgres()
      const store = open()
      const door = join(makeFolder(), 'door')
      const taker = await start(store, door, [mapping])
      for (const n of [1, 2, 3]) {
        const id = await taker.send(n)
        await expect.poll(async () => (await store.delivery(id))?.state, slow).toBe('parked')
      }
      // this delivery was stored by a gateway whose clock is 90 s late, and parked by this generation, so that it runs only at the retry
      const [last] = await store.openDeliveries({ limit: 1, state: 'parked' })
      if (last?.request === undefined) throw new Error('three are parked')
      const { request, hook, generation } = last
      const behind = { id: 'behind', receivedAt: Date.now() - 90_000, hook, mappingId: 'x', generation, jobs: [] }
      const rest = { source: undefined, event: undefined, dedupe: undefined, trace: [], log: [] }
      const body = Buffer.from('{"n":4}')
      await store.append({
        ...behind,
        ...rest,
        state: 'parked',
        waitsFor: 'x.ts',
        answer: { status: 200, body: '{}' },
        request: { ...request, body },
      })
      writeFileSync(door, '')
      expect(await taker.retry()).toMatchObject({ settled: 4 })
      const jobs = (await store.deliveries({ limit: 9 })).flatMap((delivery) => delivery.jobs)
      const inOrder = jobs.toSorted((a, b) => (a.id < b.id ? -1 : 1))
      const messages = inOrder.map(({ planned }) => planned.kind === 'agent' && planned.action.message)
      expect(messages).toEqual(['of 1', 'of 2', 'of 3', 'of 4'])
    })
  },
)
