// The run resource on the hook port: the parts of a run that its token sees, even at another gateway and after a kill.
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createPostgresStore } from '../../src/store/postgres/postgres.ts'
import { newSchema, whyNoPostgres } from '../contract/postgres-stage.ts'
import { expectSound } from './answers.ts'
import { gatewayToken, hookToken, makeFolder, startGateway, writeConfig } from './gateway.ts'
import { type Inside, startInside } from './inside.ts'
import { bearer, exchange, type Headers, json, post, type Reply, send, toRequest } from './wire.ts'

let closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.toReversed()) await close()
  closing = []
})

const former = 'the-former-token-0123456789abcdef'
const mappings = [
  { id: 'builds', match: { path: 'builds' }, messageTemplate: 'Build {{id}}', deliver: false },
  { id: 'told', match: { path: 'told' }, messageTemplate: 'Build {{id}}', deliver: false, result: 'text' },
  { id: 'sent', match: { path: 'sent' }, messageTemplate: 'Build {{id}}' },
  { id: 'judged', match: { path: 'judged' }, verdicts: ['pass', 'fail'], deliver: false, agentId: 'judge' },
  { id: 'any', match: { source: 'any' }, messageTemplate: 'x', deliver: false },
]
const hooks = { mappings }
/** An agent that prints a reply. */
const buildJudge = (reply: string) => ({
  runners: {
    mine: { kind: 'command', command: process.execPath, args: ['-e', `console.log(${JSON.stringify(reply)})`] },
  },
  list: [{ id: 'main' }, { id: 'judge', runner: 'mine' }],
})

async function operate({ adminUrl }: Pick<Inside, 'adminUrl'>, path: string): Promise<void> {
  const headers = { authorization: `Bearer ${gatewayToken}` }
  const body = JSON.stringify({ what: 'all', reason: 'A test.' })
  expect((await fetch(`${adminUrl}${path}`, { method: 'POST', headers, body })).status).toBe(200)
}
const pause = (gateway: Pick<Inside, 'adminUrl'>) => operate(gateway, '/api/pauses')
const resume = (gateway: Pick<Inside, 'adminUrl'>) => operate(gateway, '/api/resume')

type Asked = { readonly method?: string; readonly headers?: Headers; readonly token?: string }
const ask = (
  { port }: Pick<Inside, 'port'>,
  runId: string,
  { method = 'GET', headers = [], token = hookToken }: Asked = {},
) =>
  send(port, {
    method,
    target: `/hooks/runs/${runId}`,
    headers: [['authorization', `Bearer ${token}`], ...headers],
    length: false,
  })
const read = ({ body }: Pick<Reply, 'body'>) => JSON.parse(body) as Record<string, unknown> & { runId: string }
const run = async ({ port }: Pick<Inside, 'port'>, hook = 'builds', headers: Headers = []) =>
  read(await post(port, `/hooks/${hook}`, { id: 7 }, headers)).runId
const untilDone: Headers = [['prefer', 'wait=30']]

type Event = { readonly id: string; readonly state: string }
const readEvents = (text: string): Event[] =>
  [...text.matchAll(/^id: (\S+)\nevent: run\ndata: (.*)$/gm)].map(([, id = '', data = '']) => ({
    ...(JSON.parse(data) as Event),
    id,
  }))
const openStream = (url: string, runId: string, headers: Readonly<Record<string, string>> = {}) =>
  fetch(`${url}/runs/${runId}`, {
    headers: { authorization: `Bearer ${hookToken}`, accept: 'text/event-stream', ...headers },
  })

describe('a run as a resource', () => {
  test('a run shows its steps, receipts and usage, and nothing that only the operator may see', async () => {
    const gateway = await startInside({ config: { hooks, channels: { default: { channel: 'console' } } } })
    const runId = await run(gateway, 'sent', untilDone)
    const reply = await ask(gateway, runId)
    expectSound(reply)
    const time = expect.stringMatching(/^\d{4}-.*Z$/)
    expect(read(reply)).toEqual({
      ok: true,
      runId,
      deliveryId: expect.any(String),
      state: 'done',
      waits: null,
      reason: null,
      createdAt: time,
      attempts: 1,
      steps: ['run', 'summary', 'wake', 'deliver'].map((name) => ({ name, state: 'done', startedAt: time, at: time })),
      receipts: [
        { step: 'deliver', part: 0, channel: 'console', state: 'sent', messageId: expect.any(String), at: time },
      ],
      usage: null,
    })
    const head = await ask(gateway, runId, { method: 'HEAD' })
    expect([head.status, head.body]).toEqual([200, ''])
  })

  test('a run shows its reply only if its mapping says so', async () => {
    const gateway = await startInside({ config: { hooks: { ...hooks, agent: { result: 'text' } } } })
    expect(read(await ask(gateway, await run(gateway, 'builds', untilDone)))).not.toHaveProperty('reply')
    expect(read(await ask(gateway, await run(gateway, 'told', untilDone)))['reply']).toContain('Build 7')
    const { runId } = read(await post(gateway.port, '/hooks/agent', { message: 'Hello', deliver: false }, untilDone))
    expect(read(await ask(gateway, runId))['reply']).toContain('Hello')
  })

  test.each([
    ['One test fails.\n\nVerdict: FAIL', { verdict: 'fail', verdictForm: 'last-line', verdictRepaired: false }],
    ['I cannot say.', { verdict: null, verdictForm: null, verdictRepaired: true }],
  ])('a run with verdicts shows the verdict of the reply %j', async (reply, expected) => {
    const { runners, list } = buildJudge(reply)
    const gateway = await startInside({ config: { hooks, runners, agents: { list } } })
    const shown = read(await ask(gateway, await run(gateway, 'judged', untilDone)))
    expect(shown).toMatchObject({ state: 'done', verdicts: ['pass', 'fail'], ...expected })
    expect(shown).not.toHaveProperty('reply')
    const headers = { authorization: `Bearer ${gatewayToken}` }
    const answer = await fetch(`${gateway.adminUrl}/api/deliveries/${String(shown['deliveryId'])}`, { headers })
    expect(await answer.json()).toMatchObject({ jobs: [{ verdicts: ['pass', 'fail'], ...expected }] })
  })

  test('DELETE cancels a run only once', async () => {
    const gateway = await startInside({ config: { hooks } })
    await pause(gateway)
    const runId = await run(gateway)
    const cancelled = await ask(gateway, runId, { method: 'DELETE' })
    expect(cancelled.status).toBe(200)
    expect(read(cancelled)).toMatchObject({ state: 'cancelled', reason: 'The run was cancelled.' })
    const again = await ask(gateway, runId, { method: 'DELETE' })
    expectSound(again)
    expect([again.status, read(again)['code']]).toEqual([409, 'conflict'])
    await resume(gateway)
    expect(read(await ask(gateway, runId))['state']).toBe('cancelled')
  })

  test('a run says neither who paused or cancelled it nor why', async () => {
    const gateway = await startInside({ config: { hooks } })
    const headers = { authorization: `Bearer ${gatewayToken}`, 'content-type': 'application/json' }
    const order = async (path: string, method: string, body: object) =>
      fetch(`${gateway.adminUrl}/api/${path}`, { method, headers, body: JSON.stringify(body) })
    await order('pauses', 'POST', { what: 'all', by: 'olga@desk', reason: 'Acme pays late.' })
    const runId = await run(gateway)
    const paused = read(await ask(gateway, runId))
    expect(paused['waits']).toMatch(
      /^waits until somebody resumes it, because everything was paused at \d\d:\d\d:\d\dZ$/,
    )
    await order('cancel', 'POST', { what: runId, by: 'olga@desk', reason: 'Acme pays late.' })
    const cancelled = read(await ask(gateway, runId))
    expect(cancelled).toMatchObject({ state: 'cancelled', reason: 'The run was cancelled.' })
    expect(JSON.stringify([paused, cancelled])).not.toMatch(/olga|Acme/)
  })

  test('another token gets the same answer for a run as for an id that does not exist', async () => {
    const gateway = await startInside({
      config: { hooks: { ...hooks, token: undefined, tokens: [hookToken, former] } },
    })
    const runId = await run(gateway)
    const [first = ''] = runId
    const unknown = `${first === 'f' ? 'e' : 'f'}${runId.slice(1)}`
    const noIds = [runId.toUpperCase(), `${runId}x`, '', '%00', "'; DROP TABLE jobs; --".replaceAll(' ', '+')]
    const expected = { ok: false, error: 'No run that this token started has this id.', code: 'not-found' }
    const reply = await ask(gateway, unknown)
    expect([reply.status, read(reply)]).toEqual([404, expected])
    for (const id of [...noIds, 'x'.repeat(2_000)]) expect((await ask(gateway, id)).status).toBe(405)
    for (const method of ['GET', 'DELETE']) {
      const reply = await ask(gateway, runId, { token: former, method })
      expect([reply.status, read(reply)]).toEqual([404, expected])
    }
    const wrong = await ask(gateway, runId, { token: gatewayToken })
    expect([wrong.status, read(wrong)['code']]).toEqual([401, 'unauthorized'])
    expect((await send(gateway.port, { method: 'GET', target: `/hooks/runs/${runId}` })).status).toBe(401)
    expect(
      (await send(gateway.port, { method: 'GET', target: `/hooks/runs/${runId}?token=x`, headers: bearer })).status,
    ).toBe(400)
    for (const method of ['POST', 'PUT']) {
      const reply = await ask(gateway, runId, { token: 'wrong', method })
      expect([reply.status, reply.headers['allow']]).toEqual([405, 'GET, HEAD, DELETE'])
    }
    expect((await post(gateway.port, '/hooks/other', {})).status).toBe(204)
  })

  test('the successor of a token sees its runs while both tokens are configured, and no longer once the old one is removed', async () => {
    const two = { ...hooks, token: undefined, tokens: [hookToken, former] }
    const before = await startInside({ config: { hooks: { ...hooks, token: former } } })
    const { runId } = read(
      await send(before.port, {
        target: '/hooks/builds',
        headers: [['authorization', `Bearer ${former}`]],
        body: '{}',
      }),
    )
    await before.stop()
    const restart = async (changed: object) => {
      writeConfig(before.dir, { hooks: changed })
      return startInside({ dir: before.dir })
    }
    const during = await restart(two)
    for (const token of [hookToken, former]) expect((await ask(during, runId, { token })).status).toBe(200)
    await during.stop()
    const after = await restart({ ...hooks, token: hookToken })
    expect((await ask(after, runId)).status).toBe(404)
  })

  test('a run that an operator repeats belongs to no token', async () => {
    const gateway = await startInside({ config: { hooks: { ...hooks, retain: true } } })
    const { deliveryId } = read(await post(gateway.port, '/hooks/builds', {}, untilDone))
    const headers = { authorization: `Bearer ${gatewayToken}` }
    const call = async (path: string, method: string) =>
      (await fetch(`${gateway.adminUrl}/api/deliveries/${path}`, { method, headers })).json()
    const made = (await call(`${String(deliveryId)}/again`, 'POST')) as { deliveryId: string }
    const { jobs } = (await call(made.deliveryId, 'GET')) as { jobs: [{ runId: string }] }
    expect(jobs[0].runId).toHaveLength(36)
    expect((await ask(gateway, jobs[0].runId)).status).toBe(404)
  })
})

describe('the stream of a run', () => {
  test('the stream of a run sends each state until the end, continues after a cut, and then says that nothing follows', async () => {
    const gateway = await startInside({ config: { hooks } })
    await pause(gateway)
    const runId = await run(gateway)
    const whole = openStream(gateway.url, runId).then((response) => response.text())
    const cut = await openStream(gateway.url, runId)
    let seen = ''
    const reader = cut.body?.pipeThrough(new TextDecoderStream()).getReader()
    while (readEvents(seen).length === 0) seen += (await reader?.read())?.value ?? ''
    await reader?.cancel()
    expect([cut.headers.get('content-type'), cut.headers.get('cache-control')]).toEqual([
      'text/event-stream; charset=utf-8',
      'no-store',
    ])
    const [queued] = readEvents(seen)
    await resume(gateway)
    const rest = readEvents(await (await openStream(gateway.url, runId, { 'last-event-id': queued?.id ?? '' })).text())
    const states = readEvents(await whole).map(({ state }) => state)
    expect([states[0], states.at(-1)]).toEqual(['queued', 'done'])
    expect([rest.some(({ id }) => id === queued?.id), rest.at(-1)?.state]).toEqual([false, 'done'])
    const after = await openStream(gateway.url, runId, { 'last-event-id': rest.at(-1)?.id ?? '' })
    expect(after.status).toBe(204)
  })

  test('a stream beyond hooks.maxWaiting ends after the current state, and the place is free again when the client that holds it disconnects', async () => {
    const gateway = await startInside({ config: { hooks: { ...hooks, maxWaiting: 1 } } })
    await pause(gateway)
    const runId = await run(gateway)
    const target = `/hooks/runs/${runId}`
    const socket = connect({ port: gateway.port, host: '127.0.0.1' })
    socket.pause()
    socket.write(toRequest({ method: 'GET', target, headers: [...bearer, ['accept', 'text/event-stream']] }))
    const readShort = async () => (await ask(gateway, runId, { headers: [['prefer', 'wait=1']] })).status
    await vi.waitUntil(
      async () => {
        const began = performance.now()
        await readShort()
        return performance.now() - began < 900
      },
      { timeout: 60_000 },
    )
    expect(readEvents(await (await openStream(gateway.url, runId)).text()).map(({ state }) => state)).toEqual([
      'queued',
    ])
    socket.destroy()
    const held = async () => {
      const response = await openStream(gateway.url, runId)
      const ended = await Promise.race([response.text(), new Promise<void>((resolve) => setTimeout(resolve, 500))])
      await response.body?.cancel().catch(() => undefined)
      return ended === undefined
    }
    await vi.waitUntil(held, { timeout: 60_000 })
  })

  test('HEAD on a run is answered with the headers of JSON, even if it asks for a stream', async () => {
    const gateway = await startInside({ config: { hooks } })
    await pause(gateway)
    const runId = await run(gateway)
    const target = `/hooks/runs/${runId}`
    const stream: Headers = [...bearer, ['accept', 'text/event-stream']]
    const head = await exchange(gateway.port, toRequest({ method: 'HEAD', target, headers: stream }), { head: true })
    expect(head.replies[0]?.headers['content-type']).toMatch(/^application\/json/)
  })
})

describe('a kill while a client waits', () => {
  test('a kill cuts the connection of a waiting client, and the run resource shows the outcome after the next start', async () => {
    const gateway = await startGateway({ config: { hooks } })
    await pause(gateway)
    const { runId } = (await (await fetchWith(gateway.url, 'builds', 0)).json()) as { runId: string }
    const waiting = fetchWith(gateway.url, 'builds', 55).then(
      ({ status }) => status,
      () => 'cut',
    )
    await vi.waitUntil(
      async () => ((await (await openStatus(gateway.url, runId)).json()) as { state: string }).state === 'queued',
      { timeout: 60_000 },
    )
    await gateway.kill()
    expect(await waiting).toBe('cut')
    const again = await startGateway({ dir: gateway.dir, config: null })
    closing.push(() => again.stop())
    await resume(again)
    await expect
      .poll(async () => ((await (await openStatus(again.url, runId)).json()) as { state: string }).state)
      .toBe('done')
  })
})

const fetchWith = (url: string, hook: string, seconds: number) =>
  fetch(`${url}/${hook}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${hookToken}`, 'content-type': 'application/json', prefer: `wait=${seconds}` },
    body: '{}',
  })
const openStatus = (url: string, runId: string) =>
  fetch(`${url}/runs/${runId}`, { headers: { authorization: `Bearer ${hookToken}` } })

describe.skipIf(whyNoPostgres !== undefined)(
  `two gateways on one Postgres (${whyNoPostgres ?? 'available'})`,
  { timeout: 120_000 },
  () => {
    test('one gateway takes waiting requests and streams for a job that the other one runs', async () => {
      const { url, drop } = await newSchema()
      closing.push(drop)
      const start = async (maxConcurrent: number) => {
        const store = createPostgresStore({ url })
        const { runners, list } = buildJudge('Fine.\npass')
        const agents = { defaults: { maxConcurrent }, list }
        // this gateway claims nothing if it has no slots
        const idle = maxConcurrent === 0 ? { ...store, claim: async () => [] } : store
        const gateway = await startInside({
          store: idle,
          config: { hooks, runners, agents: maxConcurrent === 0 ? { list } : agents },
        })
        closing.push(gateway.stop)
        return gateway
      }
      const first = await start(0)
      const waiting = post(first.port, '/hooks/judged', { id: 7 }, untilDone)
      const runId = await run(first)
      const stream = openStream(first.url, runId).then((response) => response.text())
      const second = await start(1)
      const { status, headers, body } = await waiting
      expect([status, headers['preference-applied']]).toEqual([200, 'wait=30'])
      expect(readEvents(await stream).at(-1)?.state).toBe('done')
      for (const gateway of [first, second])
        expect(read(await ask(gateway, read({ body }).runId))).toMatchObject({ state: 'done', verdict: 'pass' })
      const [last] = readEvents(await (await openStream(second.url, runId)).text())
      // an event has the same id at each gateway
      expect((await openStream(first.url, runId, { 'last-event-id': last?.id ?? '' })).status).toBe(204)
    })

    test('a request that waits at one gateway is answered after the other one was killed, and its run shows the end', async () => {
      const { url, drop } = await newSchema()
      closing.push(drop)
      const door = join(makeFolder(), 'door')
      const script = `while ! [ -e ${door} ]; do sleep 0.05; done; echo pass`
      const config = {
        hooks,
        runners: { mine: { kind: 'command', command: 'sh', args: ['-c', script] } },
        agents: { list: [{ id: 'main' }, { id: 'judge', runner: 'mine' }] },
      }
      const store = createPostgresStore({ url })
      let works = false
      const claim: typeof store.claim = async (wanted) => (works ? store.claim(wanted) : [])
      const first = await startInside({ store: { ...store, claim }, config })
      closing.push(first.stop)
      const runner = await startGateway({ config: { ...config, store: { url } } })
      const waiting = fetchWith(first.url, 'judged', 55)
      await expect.poll(async () => (await store.counts()).jobs.running).toBe(1)
      await runner.kill()
      works = true
      writeFileSync(door, '')
      const answer = await waiting
      // the lease of the killed gateway ends after 30 seconds
      expect([200, 202]).toContain(answer.status)
      const { runId } = (await answer.json()) as { runId: string }
      const readEnd = async () => read(await ask(first, runId))
      await expect.poll(readEnd).toMatchObject({ state: 'done', verdict: 'pass' })
    })
  },
)

test('hooks may be named "runs" and begin with "runs/", and the runs stay where they are', async () => {
  const verify = { scheme: 'url-secret', secret: '01a1fb45-0ff5-4758-aed7-b1b0c25eeb26' }
  const mappings = [
    { match: { path: 'runs' }, messageTemplate: 'a', deliver: false },
    { match: { path: 'runs/nightly' }, messageTemplate: 'b', deliver: false },
    { match: { path: 'runs' }, verify, messageTemplate: 'c', deliver: false },
  ]
  const gateway = await startInside({ config: { hooks: { mappings } } })
  for (const name of ['runs', 'runs/nightly', `runs/${verify.secret}`]) {
    const headers = name.endsWith('26') ? json : [...bearer, ...json]
    const reply = await send(gateway.port, { target: `/hooks/${name}`, headers, body: '{}' })
    const { runId } = JSON.parse(reply.body) as { runId: string }
    expect(reply.status).toBe(200)
    const shown = await send(gateway.port, { method: 'GET', target: `/hooks/runs/${runId}`, headers: bearer })
    expect(shown.status).toBe(name.endsWith('26') ? 404 : 200)
    expect((await send(gateway.port, { method: 'GET', target: '/hooks/runs', headers: bearer })).status).toBe(405)
  }
})
