// An edit moves mappings without an id. The proofs and secrets of a moved mapping never open the mapping that is now at its old position.
import { createHmac } from 'node:crypto'
import { writeFileSync } from 'node:fs'
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
import { gatewayToken, makeFolder } from './gateway.ts'

closeAfterEach()

const keyOfA = 'sender-a-secret-0123456789abcdef'
const keyOfB = 'sender-b-secret-0123456789abcdef'
const ofA = { match: { path: 'x' }, verify: { scheme: 'github', secret: keyOfA }, transform: { module: 'x.ts' } }
const ofB = { match: { path: 'x' }, verify: { scheme: 'github', secret: keyOfB }, messageTemplate: 'trusted as B' }
const rotated = { ...ofA, verify: { scheme: 'github', secrets: ['the-next-secret-0123456789abcdef', keyOfA] } }

async function start(store: Store, door: string, mappings: readonly object[]) {
  const stage = await startStage(store, buildWaitingModule(door, "'trusted as A'"), mappings)
  return {
    ...stage,
    send: (hook: string, header: string, key: string, delivery: string) => {
      const body = '{"n":1}'
      const signature = createHmac('sha256', key).update(body).digest('hex')
      const headers = {
        'content-type': 'application/json',
        'x-github-event': 'push',
        'x-github-delivery': delivery,
        [header]: header === 'x-hub-signature-256' ? `sha256=${signature}` : signature,
      }
      return fetch(`${stage.url}/${hook}`, { method: 'POST', body, headers })
    },
  }
}

const readState = async (store: Store) => {
  const [record] = await store.deliveries({ limit: 1 })
  return `${record?.state} ${record?.problem?.code ?? ''}`.trim()
}

for (const [name, why, open] of engines) {
  describe.skipIf(why !== undefined)(`positions of mappings on ${name} (${why ?? 'available'})`, () => {
    test('a parked delivery never runs in the mapping of another sender, even if an edit gives that mapping the position of the removed one', async () => {
      const store = (await open())()
      const door = join(makeFolder(), 'door')
      const gateway = await start(store, door, [ofA, ofB])
      expect((await gateway.send('x', 'x-hub-signature-256', keyOfA, 'd-1')).status).toBe(200)
      expect(await readState(store)).toBe('parked transform-failed')
      await gateway.editLive([ofB])
      await gateway.retry()
      await expect.poll(() => readState(store), slow).toBe('parked mapping-missing')
      expect(await readMessages(store)).toEqual([])
      writeFileSync(door, '')
      await gateway.editLive([ofB, rotated])
      await expect.poll(() => readState(store), slow).toBe('accepted')
      expect(await readMessages(store)).toEqual(['trusted as A'])
    })

    test('a repeated delivery stays a duplicate when an edit moves its mapping or changes its secret', async () => {
      const store = (await open())()
      const gateway = await start(store, '/', [ofA])
      await gateway.send('x', 'x-hub-signature-256', keyOfA, 'd-1')
      await expect.poll(() => readState(store), slow).toBe('accepted')
      await gateway.editLive([ofB, rotated])
      const again = await gateway.send('x', 'x-hub-signature-256', keyOfA, 'd-1')
      expect([again.status, again.headers.get('idempotent-replay'), (await readMessages(store)).length]).toEqual([
        200,
        'true',
        1,
      ])
    })

    test('a secret from a handshake of one hook does not open another hook, even if an edit gives its mapping the same position', async () => {
      const store = (await open())()
      const buildAsanaMapping = (path: string) => ({ match: { path }, verify: { scheme: 'asana' } })
      const gateway = await start(store, '/', [buildAsanaMapping('one')])
      const headers = { authorization: `Bearer ${gatewayToken}` }
      await fetch(`${gateway.adminUrl}/api/mappings/mapping-1/arm`, { method: 'POST', headers })
      const secret = 'b537207f20cbfa02357cf448134da559e8bd39d61597dcd5631b8012eae53e81'
      const greeting = { method: 'POST', headers: { 'x-hook-secret': secret } }
      expect((await fetch(`${gateway.url}/one`, greeting)).status).toBe(200)
      const knock = async (hook: string, id: string) =>
        (await gateway.send(hook, 'x-hook-signature', secret, id)).status
      expect(await knock('one', 'd-1')).toBe(200)
      await gateway.editLive([buildAsanaMapping('two')])
      expect(await knock('two', 'd-2')).toBe(401)
      await gateway.editLive([buildAsanaMapping('two'), buildAsanaMapping('one')])
      expect(await knock('one', 'd-3')).toBe(200)
    })
  })
}

describe.skipIf(whyNoPostgres !== undefined)(
  `two gateways on one Postgres (${whyNoPostgres ?? 'available'})`,
  { timeout: 120_000 },
  () => {
    test('a gateway with another order of mappings runs a parked delivery only in the mapping of its sender', async () => {
      const open = await openPostgres()
      const [one, two] = [open(), open()]
      const door = join(makeFolder(), 'door')
      const taker = await start(one, door, [ofA, ofB])
      await taker.send('x', 'x-hub-signature-256', keyOfA, 'd-1')
      expect(await readState(one)).toBe('parked transform-failed')
      await taker.stop()
      const other = await start(two, door, [ofB])
      await other.retry()
      await expect.poll(() => readState(two), slow).toBe('parked mapping-missing')
      writeFileSync(door, '')
      await other.editLive([ofB, ofA])
      await expect.poll(() => readState(two), slow).toBe('accepted')
      expect(await readMessages(two)).toEqual(['trusted as A'])
    })
  },
)
