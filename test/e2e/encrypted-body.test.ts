// A sender that encrypts its events: after the proof, the delivery has what was encrypted, everywhere.
import { createCipheriv, createHash, randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCommand } from './command.ts'
import { type Inside, readStore, startInside } from './inside.ts'

const key = 'an-encrypt-key-of-the-app'
const former = 'an-encrypt-key-of-before'
const token = 'l802sPhp2r1AMSPDTaJc5eYZOEnKypxx'

const toEvent = (id: string, text = 'Hello') => ({
  schema: '2.0',
  header: { event_id: id, event_type: 'im.message.receive_v1', token },
  event: { message: { content: text } },
})

const toHash = (...parts: readonly (string | Uint8Array)[]) =>
  parts.reduce((sum, part) => sum.update(part), createHash('sha256'))

/** Encrypts and signs with code of its own. */
function buildRequest(event: unknown, { from = key, headers = {} }: { from?: string; headers?: object } = {}) {
  const iv = randomBytes(16)
  const cipher = createCipheriv('aes-256-cbc', toHash(from).digest(), iv)
  const json = typeof event === 'string' ? event : JSON.stringify(event)
  const encrypted = Buffer.concat([iv, cipher.update(json), cipher.final()]).toString('base64')
  const body = JSON.stringify({ encrypt: encrypted })
  const time = String(Math.floor(Date.now() / 1_000))
  return {
    method: 'POST',
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'x-lark-request-timestamp': time,
      'x-lark-request-nonce': '7',
      'x-lark-signature': toHash(time, '7', from, body).digest('hex'),
      ...headers,
    },
    body,
  }
}

const buildConfig = (secret: string, mapping: object = {}) => ({
  agents: { defaults: { heartbeat: { every: 0 } } },
  hooks: {
    mappings: [
      {
        id: 'lark',
        match: { path: 'lark', event: 'im.message.receive_v1', payload: { 'event.message.content': 'Hello' } },
        verify: { scheme: 'lark', secret },
        messageTemplate: '{{header.event_type}}: {{event.message.content}}',
        deliver: false,
        retain: 5,
        ...mapping,
      },
    ],
  },
})

async function send({ url }: Inside, request: ReturnType<typeof buildRequest>) {
  const answer = await fetch(`${url}/lark`, request)
  return { status: answer.status, text: await answer.text() }
}

async function readRecords({ dir }: Pick<Inside, 'dir'>) {
  const records = await readStore(dir, (store) => store.deliveries({ limit: 99 }))
  return records.map(({ event, source, jobs, bodyDiffered, repeats, deliveryId }) => ({
    deliveryId,
    event,
    source,
    bodyDiffered,
    repeats,
    texts: jobs.flatMap(({ planned }) =>
      'action' in planned && 'message' in planned.action ? [planned.action.message] : [],
    ),
  }))
}

const shown = { event: 'im.message.receive_v1', source: 'lark', texts: ['im.message.receive_v1: Hello'] }

test('filters, templates, the event and the delivery id are those of the encrypted event', async () => {
  const inside = await startInside({ config: buildConfig(key) })
  const waited = await send(inside, buildRequest(toEvent('ev-1'), { headers: { prefer: 'wait=20' } }))
  expect(waited).toMatchObject({ status: 200, text: expect.stringContaining('"ok":true') })
  // the sender encrypts a repetition again, so its bytes are others
  expect((await send(inside, buildRequest(toEvent('ev-1')))).status).toBe(200)
  expect((await send(inside, buildRequest(toEvent('ev-2', 'Something else')))).status).toBe(204)
  await expect
    .poll(async () => (await readRecords(inside)).filter(({ texts }) => texts.length > 0))
    .toMatchObject([{ ...shown, repeats: 1, bodyDiffered: false }])
})

test('what is kept, captured and run again is the event, and the verification token is no part of a fixture', async () => {
  const transform = `export default ({ payload }) => ({ kind: 'agent', message: payload.header.event_type + ': ' + payload.event.message.content })`
  const inside = await startInside({
    config: buildConfig(key, { messageTemplate: undefined, transform: { module: 'lark.ts' } }),
    files: { 'hooks/transforms/lark.ts': transform },
  })
  await send(inside, buildRequest(toEvent('ev-1')))
  const [record] = await readRecords(inside)
  expect(record).toMatchObject(shown)
  const replayed = await runCommand(['replay', '--json'], { dir: inside.dir })
  expect(replayed.code).toBe(0)
  const captured = await runCommand(['capture', record?.deliveryId ?? '', '--json'], { dir: inside.dir })
  expect([captured.code, captured.stderr]).toEqual([0, ''])
  const { file } = captured.json()[0] as unknown as { file: string }
  const fixture = readFileSync(file.startsWith('/') ? file : join(inside.dir, file), 'utf8')
  expect(fixture).toContain('"content": "Hello"')
  expect(fixture).not.toContain(token)
  expect(fixture).not.toContain('encrypt"')
})

test('a request that was refused for its key is kept as it was sent, and opened when it is retried', async () => {
  const before = await startInside({ config: buildConfig(former) })
  expect((await send(before, buildRequest(toEvent('ev-1')))).status).toBe(401)
  await before.stop()
  const file = join(before.dir, 'hookloom.jsonc')
  writeFileSync(file, readFileSync(file, 'utf8').replaceAll(former, key))
  const inside = await startInside({ dir: before.dir })
  const retried = await runCommand(['retry', '--refused', '--json'], { dir: before.dir })
  expect(retried.json()).toMatchObject([{ ran: 1, stillRefused: 0 }])
  expect(await readRecords(inside)).toMatchObject([shown])
})

test('a delivery that was parked is stored as the event, and runs when its transform is corrected', async () => {
  const module = 'hooks/transforms/lark.ts'
  const config = buildConfig(key, { messageTemplate: undefined, transform: { module: 'lark.ts' } })
  const inside = await startInside({ config, files: { [module]: 'export default () => { throw new Error() }' } })
  expect((await send(inside, buildRequest(toEvent('ev-1')))).status).toBe(200)
  const good = `export default ({ payload }) => ({ kind: 'agent', message: payload.header.event_type + ': ' + payload.event.message.content })`
  writeFileSync(join(inside.dir, module), good)
  await expect.poll(() => readRecords(inside)).toMatchObject([shown])
})

test('what decrypts to no JSON is refused', async () => {
  const inside = await startInside({ config: buildConfig(key) })
  expect((await send(inside, buildRequest('tide'))).status).toBe(401)
  expect(await readRecords(inside)).toEqual([])
})

test('hookloom send encrypts and signs as the sender does', async () => {
  const inside = await startInside({ config: buildConfig(key) })
  const file = join(inside.dir, 'event.json')
  writeFileSync(file, JSON.stringify(toEvent('ev-9')))
  const sent = await runCommand(['send', 'lark', file, '--json'], { dir: inside.dir })
  expect([sent.code, sent.stderr]).toEqual([0, ''])
  await expect.poll(() => readRecords(inside)).toMatchObject([shown])
})

const own = `import { defineVerifier } from 'hookloom/define'
export default defineVerifier({
  scheme: 'mirror',
  headers: ['x-mirror'],
  verify: ({ rawBody, headers }) => ({ ok: true, id: headers['x-mirror'], body: BODY }),
})`

test.each([
  ['a verifier of a plugin opens a body too', 'rawBody.slice().reverse()', 200],
  ['an opened body is under the limit of the hook', 'new Uint8Array(3e6).fill(32)', 413],
  ['a body that is no bytes is a fault of the gateway', "'text'", 503],
])('%s', async (_, body, status) => {
  const mapping = {
    id: 'm',
    match: { path: 'lark' },
    verify: { scheme: 'mirror', secret: key },
    messageTemplate: '{{a}}',
    deliver: false,
  }
  const inside = await startInside({
    config: { hooks: { mappings: [mapping] } },
    files: { 'hooks/verifiers/mirror.ts': own.replace('BODY', body) },
  })
  const given = [...'{"a":"opened"}'].toReversed().join('')
  const headers = { 'content-type': 'application/json', 'x-mirror': 'id-1' }
  const answer = await fetch(`${inside.url}/lark`, { method: 'POST', headers, body: given })
  expect(answer.status).toBe(status)
  if (status === 200) expect(await readRecords(inside)).toMatchObject([{ texts: ['opened'] }])
})
