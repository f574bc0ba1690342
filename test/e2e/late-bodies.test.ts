// Bodies that are not plain JSON wait for repaired code, on each engine, and are read as they were sent.
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Store } from '../../src/store/store.ts'
import { buildWaitingModule, closeAfterEach, engines, readMessages, slow, startStage } from './edit-stage.ts'
import { makeFolder } from './gateway.ts'
import { bearer, send } from './wire.ts'

closeAfterEach()

const mapping = { id: 'x', match: { path: 'x' }, accept: ['xml', 'empty'], transform: { module: 'x.ts' } }
const form = 'application/x-www-form-urlencoded'
const multipart = 'multipart/form-data; boundary=x'
const part = (head: string, value: string) => `--x\r\nContent-Disposition: form-data; ${head}\r\n\r\n${value}\r\n`

async function park(store: Store, door: string, mappings: readonly object[], bodies: readonly [string, string][]) {
  const module = buildWaitingModule(door, 'JSON.stringify(payload)')
  const stage = await startStage(store, module, mappings)
  for (const [type, text] of bodies) {
    const headers = [...bearer, ['content-type', type] as const]
    const body = Buffer.from(text, 'latin1')
    const answer = await send(stage.port, { target: '/hooks/x', headers, body })
    expect([answer.status, JSON.parse(String(answer.body))]).toMatchObject([200, { status: 'parked' }])
  }
  return stage
}

const readAll = async (store: Store) => (await readMessages(store)).map((text): unknown => JSON.parse(text))

for (const [name, why, open] of engines) {
  describe.skipIf(why !== undefined)(`parked bodies, on ${name} (${why ?? 'available'})`, () => {
    test('a body in Latin-1, a multipart form and an empty body keep their payload through a park and a restart', async () => {
      const reopen = await open()
      const door = join(makeFolder(), 'door')
      const first = await park(
        reopen(),
        door,
        [mapping],
        [
          ['application/json; charset=iso-8859-1', '{"a":"caf\xe9 \x80"}'],
          [form, 'a=caf%E9&b=\xe9'],
          [multipart, `${part('name="a"', '\xe9')}--x--\r\n`],
          ['text/xml', '<?xml version="1.0" encoding="ISO-8859-1"?><a>\xe9</a>'],
          ['text/plain', ''],
        ],
      )
      await first.stop()
      expect(existsSync(door)).toBe(false)
      writeFileSync(door, '')
      const store = reopen()
      const { retry } = await startStage(store, buildWaitingModule(door, 'JSON.stringify(payload)'), [mapping])
      await retry()
      await expect.poll(async () => (await readMessages(store)).length, slow).toBe(5)
      expect(await readAll(store)).toEqual([
        { a: 'café €' },
        { a: 'café', b: 'é' },
        { a: 'é' },
        '<?xml version="1.0" encoding="ISO-8859-1"?><a>é</a>',
        null,
      ])
    })

    test('a form that waited is opened by jsonFields that its mapping names later', async () => {
      const store = (await open())()
      const door = join(makeFolder(), 'door')
      const bodies: [string, string][] = [[form, 'data=%7B%22n%22%3A%22%C3%A9%22%7D&more=%7B%7D']]
      const { editLive, retry } = await park(store, door, [mapping], bodies)
      await editLive([{ ...mapping, jsonFields: ['data'] }])
      writeFileSync(door, '')
      await retry()
      await expect.poll(() => readAll(store), slow).toEqual([{ data: { n: 'é' }, more: '{}' }])
    })
  })
}
