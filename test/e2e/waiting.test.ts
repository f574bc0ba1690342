// Callers that wait for the run that they started: by Prefer: wait, by the run resource and by its stream. A pause keeps the runs waiting.
import { createHmac } from 'node:crypto'
import { connect } from 'node:net'
import { describe, expect, test, vi } from 'vitest'
import { expectSound, readVerdict } from './answers.ts'
import { gatewayToken, hookToken } from './gateway.ts'
import { type Inside, startInside } from './inside.ts'
import { bearer, type Headers, json, post, send, toRequest } from './wire.ts'

const secret = 'the-secret-of-the-sender-0123456789'
const mappings = [
  { id: 'builds', match: { path: 'builds' }, messageTemplate: 'Build {{id}}', deliver: false },
  { id: 'told', match: { path: 'told' }, messageTemplate: 'Build {{id}}', deliver: false, result: 'text' },
  { id: 'each', match: { path: 'each' }, forEach: 'items', messageTemplate: '{{items[0].n}}', deliver: false },
  {
    id: 'answered',
    match: { path: 'answered' },
    messageTemplate: 'x',
    deliver: false,
    response: { status: 201, body: 'made' },
  },
  {
    id: 'signed',
    match: { path: 'signed' },
    verify: { scheme: 'github', secret },
    messageTemplate: 'x',
    deliver: false,
  },
  { id: 'throws', match: { path: 'throws' }, transform: { module: 'throws.ts' } },
  { id: 'slow', match: { path: 'slow' }, transform: { module: 'slow.ts' } },
  { id: 'any', match: { source: 'any' }, messageTemplate: 'x', deliver: false },
]
const files = {
  'hooks/transforms/throws.ts': 'export default () => { throw new Error("out of yarn") }',
  'hooks/transforms/slow.ts': `
    export default async () => {
      await new Promise((resolve) => setTimeout(resolve, 300))
      return { message: 'slow', deliver: false }
    }`,
}

async function start(hooks: object = {}, more: Parameters<typeof startInside>[0] = {}) {
  return startInside({ config: { hooks: { mappings, ...hooks } }, files, ...more })
}

async function operate(gateway: Pick<Inside, 'adminUrl'>, path: string, body: object): Promise<void> {
  const headers = { authorization: `Bearer ${gatewayToken}` }
  const { status } = await fetch(`${gateway.adminUrl}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  expect(status).toBe(200)
}
const pause = (gateway: Inside) => operate(gateway, '/api/pauses', { what: 'all' })
const resume = (gateway: Inside) => operate(gateway, '/api/resume', { what: 'all' })
const waiting = (seconds: number | string): Headers => [['prefer', `wait=${seconds}`]]
const read = (text: string) =>
  JSON.parse(text) as Record<string, unknown> & { runId: string; runIds: string[]; state?: string }
const toBearer = (token: string): Headers => [['authorization', `Bearer ${token}`]]
const get = ({ port }: Pick<Inside, 'port'>, runId: string, headers: Headers = [], method = 'GET', token = hookToken) =>
  send(port, {
    method,
    target: `/hooks/runs/${runId}`,
    headers: [...toBearer(token), ...headers],
    length: false,
  })

/** The bodies of the events of a stream that has ended. */
const readEvents = (text: string) =>
  [...text.matchAll(/^id: (\S+)\nevent: run\ndata: (.*)$/gm)].map(([, id = '', data = '']) => ({ id, ...read(data) }))

describe('a request that waits', () => {
  test('a request with the header Prefer gets 200 with its receipt when its run has ended, and a request without it does not wait', async () => {
    const gateway = await start()
    const waited = await post(gateway.port, '/hooks/builds', { id: 1 }, waiting(30))
    expectSound(waited)
    expect([waited.status, waited.headers['preference-applied']]).toEqual([200, 'wait=30'])
    const { runId, deliveryId } = read(waited.body)
    const run = await get(gateway, runId)
    expectSound(run)
    expect(run.headers['retry-after']).toBeUndefined()
    expect(read(run.body)).toMatchObject({ ok: true, runId, deliveryId, state: 'done', waits: null })
    const plain = await post(gateway.port, '/hooks/builds', { id: 2 })
    expect(Object.keys(read(plain.body))).toEqual(Object.keys(read(waited.body)))
    expect(plain.headers).not.toHaveProperty('preference-applied')
    const agent = await post(gateway.port, '/hooks/agent', { message: 'x', deliver: false }, waiting(30))
    expect([agent.status, agent.headers['preference-applied']]).toEqual([200, 'wait=30'])
    const wake = await post(gateway.port, '/hooks/wake', { text: 'x' }, waiting(30))
    expect([wake.status, wake.headers['preference-applied']]).toEqual([200, 'wait=30'])
  })

  test('a request that prefers a representation gets its runs with their replies and verdicts, and the receipt as it is without', async () => {
    const gateway = await start()
    const prefer: Headers = [['prefer', 'return=representation, wait=30']]
    const told = await post(gateway.port, '/hooks/told', { id: 1 }, prefer)
    expectSound(told)
    expect(told.headers['preference-applied']).toBe('wait=30, return=representation')
    const { runId } = read(told.body)
    expect(read(told.body)).toMatchObject({ ok: true, runs: [{ runId, state: 'done', reply: expect.any(String) }] })
    const each = await post(gateway.port, '/hooks/each', { items: [{ n: 1 }, { n: 2 }] }, prefer)
    expect(read(each.body)).toMatchObject({ runIds: [expect.any(String), expect.any(String)], runs: [{}, {}] })
    const hidden = await post(gateway.port, '/hooks/builds', { id: 1 }, prefer)
    expect(hidden.body).not.toContain('"reply"')
    const answered = await post(gateway.port, '/hooks/answered', {}, prefer)
    expect([answered.body, answered.headers['preference-applied']]).toEqual(['made', 'wait=30'])
    const wake = await post(gateway.port, '/hooks/wake', { text: 'x' }, prefer)
    expect(read(wake.body)).toMatchObject({ mode: 'now', runs: [] })
  })

  test('a request whose run does not end in time gets 202 with the URL of the run, and a wait at that URL returns the end of the run', async () => {
    const gateway = await start()
    await pause(gateway)
    const early = await post(gateway.port, '/hooks/builds', { id: 1 }, waiting(1))
    expectSound(early)
    const { runId } = read(early.body)
    expect(early.status).toBe(202)
    expect(early.headers).toMatchObject({ location: `/hooks/runs/${runId}`, 'retry-after': '5' })
    const queued = await get(gateway, runId, waiting(0))
    expect([queued.status, queued.headers['retry-after']]).toEqual([200, '5'])
    expect(read(queued.body)).toMatchObject({ state: 'queued', waits: expect.stringContaining('paused') })
    const later = get(gateway, runId, waiting(30))
    await resume(gateway)
    const { status, headers, body } = await later
    expect([status, headers['preference-applied'], read(body)['state']]).toEqual([200, 'wait=30', 'done'])
  })

  test('a request waits for all runs of its delivery', async () => {
    const gateway = await start()
    await pause(gateway)
    const reply = post(gateway.port, '/hooks/each', { items: [{ n: 1 }, { n: 2 }, { n: 3 }] }, waiting(30))
    const twin = await post(gateway.port, '/hooks/each', { items: [{ n: 1 }, { n: 2 }] }, waiting(0))
    const { runIds } = read(twin.body)
    expect([twin.status, runIds.map((id) => `/hooks/runs/${id}`)]).toEqual([
      202,
      expect.arrayContaining([twin.headers['location']]),
    ])
    await resume(gateway)
    const { status, body } = await reply
    expect([status, read(body).runIds.length]).toEqual([200, 3])
    for (const id of read(body).runIds) expect(read((await get(gateway, id)).body)['state']).toBe('done')
  })

  test('a request that waits gets the answer that its mapping sets; with a slow transform it waits too, and gets the id of its run', async () => {
    const gateway = await start({ answerWithinMs: 50 })
    const answered = await post(gateway.port, '/hooks/answered', {}, waiting(30))
    expect([answered.status, answered.body, answered.headers['preference-applied']]).toEqual([201, 'made', 'wait=30'])
    const slow = await post(gateway.port, '/hooks/slow', {}, waiting(30))
    expect([slow.status, slow.headers['preference-applied']]).toEqual([200, 'wait=30'])
    expect(read((await get(gateway, read(slow.body).runId)).body)['state']).toBe('done')
  })

  test('a parked, skipped or refused request is answered at once, and so is one that only a signature proves', async () => {
    const gateway = await start()
    await pause(gateway)
    const parked = await post(gateway.port, '/hooks/throws', {}, waiting(30))
    expect([parked.status, read(parked.body)['status']]).toEqual([200, 'parked'])
    expect((await post(gateway.port, '/hooks/each', {}, waiting(30))).status).toBe(204)
    expect(readVerdict(await post(gateway.port, '/hooks/agent', {}, waiting(30)))).toBe('payload-invalid')
    const signature = `sha256=${createHmac('sha256', secret).update('{}').digest('hex')}`
    const signed = await send(gateway.port, {
      target: '/hooks/signed',
      headers: [...json, ...waiting(30), ['x-hub-signature-256', signature], ['x-github-event', 'push']],
      body: '{}',
    })
    expect([signed.status, signed.headers['preference-applied']]).toEqual([200, undefined])
    expect((await get(gateway, read(signed.body).runId)).status).toBe(404)
  })

  test('a repeated request waits for the run of the first one', async () => {
    const gateway = await start()
    await pause(gateway)
    const headers: Headers = [...waiting(30), ['idempotency-key', 'once']]
    const first = post(gateway.port, '/hooks/builds', { id: 1 }, headers)
    await vi.waitUntil(
      async () => (await post(gateway.port, '/hooks/builds', { id: 1 }, headers.slice(1))).status === 200,
      { timeout: 60_000 },
    )
    const again = post(gateway.port, '/hooks/builds', { id: 1 }, headers)
    await resume(gateway)
    const [one, two] = await Promise.all([first, again])
    expect([one.status, two.status, two.body, two.headers['idempotent-replay']]).toEqual([200, 200, one.body, 'true'])
    expect(two.headers['preference-applied']).toBe('wait=30')
  })

  test('at most hooks.maxWaiting requests wait: of 200 at once, 150 wait and 50 are answered 202 at once', async () => {
    const gateway = await start({ maxWaiting: 150 })
    await pause(gateway)
    const statuses: number[] = []
    const asked = Array.from({ length: 200 }, async (_, id) => {
      const { status } = await post(gateway.port, '/hooks/builds', { id }, waiting(55))
      statuses.push(status)
    })
    await expect.poll(() => statuses.length).toBe(50)
    expect(new Set(statuses)).toEqual(new Set([202]))
    // requests that do not wait are not delayed
    expect((await post(gateway.port, '/hooks/builds', { id: 'other' })).status).toBe(200)
    await resume(gateway)
    await Promise.all(asked)
    expect(statuses.filter((status) => status === 200)).toHaveLength(150)
  })

  test('a wait ends when its client disconnects', async () => {
    const gateway = await start({ maxWaiting: 1 })
    await pause(gateway)
    const request = { target: '/hooks/builds', headers: [...bearer, ...json, ...waiting(55)], body: '{}' }
    const socket = connect({ port: gateway.port, host: '127.0.0.1' })
    socket.write(toRequest(request))
    const isFull = async () => {
      const began = performance.now()
      const { status } = await post(gateway.port, '/hooks/builds', {}, waiting(1))
      return status === 202 && performance.now() - began < 900
    }
    await vi.waitUntil(isFull, { timeout: 60_000 })
    socket.destroy()
    await expect.poll(isFull).toBe(false)
  })

  test('a stop answers waiting requests with 202, and does not wait for their runs', async () => {
    const gateway = await start()
    await pause(gateway)
    const asked = Array.from({ length: 20 }, (_, id) => post(gateway.port, '/hooks/builds', { id }, waiting(55)))
    const { runId } = read((await post(gateway.port, '/hooks/builds', {})).body)
    const stream = fetch(`${gateway.url}/runs/${runId}`, {
      headers: { authorization: `Bearer ${hookToken}`, accept: 'text/event-stream' },
    }).then((response) => response.text())
    await vi.waitUntil(async () => (await post(gateway.port, '/hooks/wake', { text: 'x' })).status === 200, {
      timeout: 60_000,
    })
    const held = await Promise.race([Promise.any(asked), new Promise((resolve) => setImmediate(resolve, 'held'))])
    expect(held).toBe('held')
    const order: string[] = []
    const answered = Promise.all([...asked, stream]).then(() => order.push('answered'))
    await Promise.all([answered, gateway.stop().then(() => order.push('stopped'))])
    expect(order).toEqual(['answered', 'stopped'])
    const replies = await Promise.all(asked)
    expect(replies.map(({ status, headers }) => [status, headers['location'] !== undefined])).toEqual(
      replies.map(() => [202, true]),
    )
    expect(readEvents(await stream).map(({ state }) => state)).toEqual(['queued'])
  })
})
