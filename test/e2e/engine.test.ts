// The mapping engine inside servers of other people: a proved sender, a transform that reloads, and the answers.
import { once } from 'node:events'
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createHmac } from 'node:crypto'
import express from 'express'
import { Hono } from 'hono'
import Koa from 'koa'
import { afterEach, describe, expect, test } from 'vitest'
import { defineSender } from '../../src/define.ts'
import {
  type AcceptedRequest,
  createEngine,
  type Engine,
  type EngineOptions,
  Problem,
  senderRows,
} from '../../src/engine/engine.ts'

const secret = 'a secret of the sender, long enough'
const mappings: EngineOptions['mappings'] = [
  { id: 'pushes', match: { path: 'github' }, verify: { scheme: 'github', secret }, transform: { module: 'github.ts' } },
  { id: 'plain', match: { path: 'plain' }, messageTemplate: 'Order {{id}}' },
  {
    id: 'answers',
    match: { path: 'answers' },
    messageTemplate: 'Hello {{name}}',
    response: { status: 202, contentType: 'application/json', body: '{"hello":"{{name}}"}' },
  },
]

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end()
})

const write = async (dir: string, text: string) => {
  const file = join(dir, 'hooks', 'transforms', 'github.ts')
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, text)
}

async function startEngine(over: Partial<EngineOptions> = {}) {
  const dir = await mkdtemp(join(tmpdir(), 'engine-'))
  await write(dir, 'export default ({ payload }) => ({ message: `one ${payload.ref}` })\n')
  const accepted: AcceptedRequest[] = []
  const engine = await createEngine({
    mappings,
    dir,
    token: 'the token of the host, long enough',
    onAccept: (one) => void accepted.push(one),
    ...over,
  })
  ends.push(() => engine.close())
  const messages = () =>
    accepted.flatMap(({ actions }) => actions.map(({ action }) => ('message' in action ? action.message : action.text)))
  return { dir, engine, messages }
}

async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  ends.push(() => {
    server.closeAllConnections()
    server.close()
  })
  // as: it listens on a port
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function post(url: string, payload: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(payload),
  })
}

const bearer = { authorization: 'Bearer the token of the host, long enough' }
const sign = (payload: unknown) => ({
  'x-github-event': 'push',
  'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(JSON.stringify(payload)).digest('hex')}`,
})

/** Each server also has a route of its own, which the engine leaves alone. */
const servers: Readonly<Record<string, (engine: Engine) => RequestListener>> = {
  'node:http': (engine) => (req, res) => void engine.node(req, res, () => res.end('mine')),
  'Express 5': (engine) => {
    const app = express()
    app.use((req, res, next) => void engine.node(req, res, next))
    app.get('/mine', (_req, res) => void res.send('mine'))
    return app
  },
  'Express 5, mounted at the path of the hooks': (engine) => {
    const app = express()
    app.use('/hooks', (req, res, next) => void engine.node(req, res, next))
    app.get('/mine', (_req, res) => void res.send('mine'))
    return app
  },
  Koa: (engine) => {
    const app = new Koa()
    app.use(engine.koa())
    app.use((ctx) => void (ctx.body = 'mine'))
    return app.callback()
  },
  Hono: (engine) => {
    const app = new Hono()
    app.post('/hooks/*', (c) => engine.fetch(c.req.raw))
    app.get('/mine', (c) => c.text('mine'))
    // Hono speaks the Fetch API only: Node's own bridge
    return async (req, res) => {
      const chunks: Uint8Array[] = []
      for await (const chunk of req) chunks.push(chunk)
      const headers = new Headers(Object.entries(req.headers).map(([name, value]) => [name, String(value)]))
      const body = req.method === 'POST' ? { body: Buffer.concat(chunks) } : {}
      const answer = await app.fetch(
        new Request(`http://host${req.url}`, { method: req.method ?? '', headers, ...body }),
      )
      res.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text())
    }
  },
}

describe.each(Object.entries(servers))('in a server of %s', (_, mount) => {
  test('a proved request is accepted, any other is refused, and other paths stay those of the host', async () => {
    const { engine, messages } = await startEngine({ watch: false })
    const url = await listen(mount(engine))
    const push = { ref: 'refs/heads/main' }
    const accepted = await post(`${url}/hooks/github`, push, sign(push))
    expect([accepted.status, await accepted.json()]).toEqual([200, { ok: true }])
    expect(messages()).toEqual(['one refs/heads/main'])
    const forged = await post(`${url}/hooks/github`, { ref: 'other' }, sign(push))
    expect([forged.status, await forged.json()]).toMatchObject([401, { ok: false, code: 'unauthorized' }])
    expect((await post(`${url}/hooks/github`, push, bearer)).status).toBe(401)
    expect((await post(`${url}/hooks/plain`, { id: 1 })).status).toBe(401)
    expect((await post(`${url}/hooks/plain`, { id: 12 }, bearer)).status).toBe(200)
    const answers = await post(`${url}/hooks/answers`, { name: 'Ada "L"' }, bearer)
    expect([answers.status, await answers.json()]).toEqual([202, { hello: 'Ada "L"' }])
    expect(answers.headers.get('x-content-type-options')).toBe('nosniff')
    expect((await post(`${url}/hooks/none`, {}, bearer)).status).toBe(404)
    expect((await post(`${url}/hooks/plain`, { id: 'x'.repeat(300_000) }, bearer).catch(() => undefined))?.status).toBe(
      413,
    )
    expect(messages()).toEqual(['one refs/heads/main', 'Order 12', 'Hello Ada "L"'])
    expect(await (await fetch(`${url}/mine`)).text()).toBe('mine')
  })
})

test('a saved transform goes live, a broken one leaves the last good version, and the listener learns both', async () => {
  const { dir, engine, messages } = await startEngine()
  const kinds: string[] = []
  engine.onReload((modules) => void kinds.push(...modules.map(({ kind }) => kind)))
  const push = { ref: 'main' }
  const send = async () => {
    const body = JSON.stringify(push)
    const headers = { 'content-type': 'application/json', ...sign(push) }
    const answer = await engine.fetch(new Request('http://host/hooks/github', { method: 'POST', headers, body }))
    expect(answer.status).toBe(200)
    return messages().at(-1)
  }
  expect(await send()).toBe('one main')
  await write(dir, 'export default ({ payload }) => ({ message: `two ${payload.ref}` })\n')
  await expect.poll(send, { timeout: 20_000 }).toBe('two main')
  await write(dir, 'export default ({ payload }) => ({ message: `three ${payload.ref\n')
  await expect.poll(() => kinds.at(-1), { timeout: 20_000 }).toBe('kept')
  expect(await send()).toBe('two main')
  expect(kinds).toContain('live')
})

test('decide() has no effect, returns each kind of decision, and takes the word of the host for a sender', async () => {
  const { engine, dir, messages } = await startEngine({ watch: false })
  const request = (path: string, payload: unknown, headers: Record<string, string> = {}) => ({
    method: 'POST',
    url: `/hooks/${path}`,
    headers: { 'content-type': 'application/json', ...headers },
    body: Buffer.from(JSON.stringify(payload)),
  })
  expect(await engine.decide(request('plain', { id: 1 }))).toMatchObject({
    kind: 'refuse',
    problem: { code: 'unauthorized' },
  })
  expect(await engine.decide(request('plain', { id: 1 }), { trusted: true })).toMatchObject({
    kind: 'accept',
    mappingId: 'plain',
    actions: [{ kind: 'agent', action: { message: 'Order 1' } }],
  })
  await write(dir, 'export default () => { throw new Error("broken") }\n')
  const broken = await createEngine({ mappings, dir, watch: false })
  ends.push(() => broken.close())
  const push = { ref: 'main' }
  expect(await broken.decide(request('github', push, sign(push)))).toMatchObject({
    kind: 'park',
    mappingId: 'pushes',
    problem: { code: 'transform-failed' },
  })
  await write(dir, 'export default () => null\n')
  const silent = await createEngine({ mappings, dir, watch: false })
  ends.push(() => silent.close())
  expect(await silent.decide(request('github', push, sign(push)))).toMatchObject({ kind: 'skip' })
  expect(messages()).toEqual([])
})

test('the host can change an action before it is accepted, and refuse it', async () => {
  const { engine } = await startEngine({
    watch: false,
    plan(planned, { path, payload }) {
      if (planned.kind !== 'agent') return planned
      if (planned.action.message.endsWith(' 13')) throw new Problem('payload-invalid', 'id: 13 is not taken.')
      return { ...planned, sessionKey: `${path}:${JSON.stringify(payload)}` }
    },
  })
  const decide = (id: number) => {
    const headers = { 'content-type': 'application/json', ...bearer }
    return engine.decide({ method: 'POST', url: '/hooks/plain', headers, body: Buffer.from(JSON.stringify({ id })) })
  }
  expect(await decide(12)).toMatchObject({ kind: 'accept', actions: [{ sessionKey: 'plain:{"id":12}' }] })
  expect(await decide(13)).toMatchObject({ kind: 'refuse', problem: { message: 'id: 13 is not taken.' } })
})

test('the sender gets 500 if the host could not take the request, and may send it again', async () => {
  let isDown = true
  const { engine } = await startEngine({
    watch: false,
    onAccept: () => (isDown ? Promise.reject(new Error('the queue is down')) : undefined),
  })
  const send = async () => {
    const headers = { 'content-type': 'application/json', ...bearer }
    return (await engine.fetch(new Request('http://host/hooks/plain', { method: 'POST', headers, body: '{"id":1}' })))
      .status
  }
  expect(await send()).toBe(500)
  isDown = false
  expect(await send()).toBe(200)
})

test('an invalid mapping is refused with its place', async () => {
  await expect(createEngine({ mappings: [{ messageTemplate: '{{name' }] })).rejects.toThrow(/mapping-1.*column 1/)
  // as: what a program in JavaScript may pass
  const wrong = [{ mesageTemplate: 'x' }] as unknown as EngineOptions['mappings']
  await expect(createEngine({ mappings: wrong })).rejects.toThrow(/hooks\.mappings\.0.*mesageTemplate/)
})

test('the host adds a sender, or takes the place of all senders of the package', async () => {
  const harbour = defineSender({
    name: 'harbour',
    label: 'The harbour',
    docs: 'https://harbour.example/webhooks',
    event: [{ in: 'header', name: 'x-harbour-event' }],
    scheme: { kind: 'token', header: 'x-harbour-token', confidence: 'verified' },
  })
  const own: EngineOptions['mappings'] = [
    { id: 'tide', match: { path: 'tide', event: 'ebb' }, verify: { scheme: 'harbour', secret }, messageTemplate: 'm' },
  ]
  const added = await startEngine({ mappings: [...mappings, ...own], senders: [...senderRows, harbour] })
  const headers = { 'content-type': 'application/json', 'x-harbour-event': 'ebb', 'x-harbour-token': secret }
  const request = { method: 'POST', url: '/hooks/tide', headers, body: Buffer.from('{}') }
  expect(await added.engine.decide(request)).toMatchObject({ kind: 'accept', mappingId: 'tide' })
  const wrong = { ...request, headers: { ...headers, 'x-harbour-token': 'wrong' } }
  expect(await added.engine.decide(wrong)).toMatchObject({ kind: 'refuse', problem: { code: 'unauthorized' } })
  await expect(startEngine({ senders: [harbour] })).rejects.toThrow('The scheme "github" does not exist.')
})
