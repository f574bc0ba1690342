// `kill -9` before and after the record of each step: every job ends, no recorded step is repeated, and a message that may be sent twice
// has one nonce.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { steps } from '../../src/jobs/steps.ts'
import type { StepName } from '../../src/model/job.ts'
import { drain, findDamage } from '../e2e/aftermath.ts'
import { hookToken, makeConfigDir, startGateway } from '../e2e/gateway.ts'
import { readStore } from '../e2e/inside.ts'

const mortal = resolve(import.meta.dirname, '../fixtures/gateways/mortal.mjs')
const asked = 'REVIEW-THE-KETTLE'

/** The steps that call another server, and the path of the call. The call is repeated if the gateway died before the step was recorded. */
const outside: Partial<Record<StepName, string>> = { run: '/v1/chat/completions', deliver: '/receiver' }

/** The calls that the model and the receivers got. */
let calls: { path: string; body: string; nonce: string }[] = []
let others: Server
let base: string

beforeAll(async () => {
  others = createServer(async (request, response) => {
    const { url: path = '', headers } = request
    const body = await text(request)
    response.setHeader('content-type', 'application/json')
    calls.push({ path, body, nonce: String(headers['webhook-id']) })
    if (path !== outside.run) {
      response.end('{}')
      return
    }
    const reply = body.includes(asked) ? 'It boils.' : 'HEARTBEAT_OK'
    response.end(
      JSON.stringify({
        id: 'c1',
        object: 'chat.completion',
        created: 1,
        model: 'm',
        choices: [{ index: 0, message: { role: 'assistant', content: reply }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      }),
    )
  }).listen(0, '127.0.0.1')
  await once(others, 'listening')
  // as: it listens on TCP
  base = `http://127.0.0.1:${(others.address() as AddressInfo).port}`
})
afterAll(() => {
  others.closeAllConnections()
  others.close()
})

function makeDir(): string {
  // asks for every step
  const steps = { channel: 'webhook', to: 'hub', wakeMode: 'now' }
  const kettle = { match: { path: 'kettle' }, name: 'Kettle', messageTemplate: '{{message}}', ...steps }
  return makeConfigDir({
    config: {
      hooks: { mappings: [kettle] },
      models: { providers: { local: { kind: 'openai-compatible', baseUrl: `${base}/v1`, stream: false } } },
      agents: { defaults: { model: 'local/m', heartbeat: { minIntervalSeconds: 0 } } },
      channels: {
        webhook: { endpoints: { hub: { url: `${base}/receiver`, secret: 'whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQ=' } } },
      },
    },
  })
}

/** Sends one request to a gateway that is killed by it. Returns the status of the answer, if one came. */
async function killAt(dir: string, step: StepName | 'posts', when: string, body: object): Promise<number | undefined> {
  const child = spawn(process.execPath, [mortal, dir, step, when], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  const [url] = await once(createInterface(child.stdout), 'line')
  const hook = 'text' in body ? 'wake' : 'kettle'
  const status = await fetch(`${String(url)}/${hook}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${hookToken}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  }).then(
    (response) => response.status,
    () => undefined,
  )
  const [, signal] = await ended
  expect(signal).toBe('SIGKILL')
  return status
}

/** Only wakes and alerts have the step `event`. */
// as: the keys of the table of steps are their names
const ofRuns = (Object.keys(steps) as StepName[]).filter((name) => name !== 'event')
const places = [...ofRuns, 'posts' as const].flatMap((step) => [[step, 'before'] as const, [step, 'after'] as const])

test.each(places)('a run that is killed at %s, %s its record', { timeout: 60_000 }, async (step, when) => {
  calls = []
  const dir = makeDir()
  expect(await killAt(dir, step, when, { message: asked })).toBe(200)
  expect(findDamage(dir)).toEqual([])

  const gateway = await startGateway({ dir })
  await drain(dir)
  const nonces = calls.filter(({ path }) => path === outside.deliver).map(({ nonce }) => nonce)
  const [record] = await readStore(dir, (store) => store.deliveries({ limit: 9 }))
  expect(record?.jobs).toMatchObject([{ state: 'done', posts: [{ state: 'sent', id: nonces[0] }] }])
  expect(record?.jobs[0]?.steps.map(({ name }) => name)).toEqual(ofRuns)
  expect(new Set(nonces).size).toBe(1)
  for (const [name, called] of Object.entries(outside)) {
    // the model is called for heartbeats too
    const own = calls.filter(({ path, body }) => path === called && (name !== 'run' || body.includes(asked)))
    expect([name, own.length]).toEqual([name, name === step && when === 'before' ? 2 : 1])
  }

  // the main session reads the event once, in a separate turn
  await vi.waitUntil(async () => (await waitingOf(dir)) === 0, { timeout: 20_000, interval: 100 })
  const events = await readStore(dir, (store) => store.events({ limit: 9 }))
  expect(events.map(({ text: told }) => told)).toEqual(['Hook Kettle: It boils.'])
  expect(calls.filter(({ body }) => body.includes('Hook Kettle: It boils.'))).toHaveLength(1)
  expect(await gateway.stop()).toBe(0)
})

test.each(['before', 'after'])('a wake that is killed %s its event is written', { timeout: 60_000 }, async (when) => {
  calls = []
  const dir = makeDir()
  expect(await killAt(dir, 'event', when, { text: 'The kettle boils' })).toBeUndefined()
  const gateway = await startGateway({ dir })
  const expected = when === 'after' ? 1 : 0
  await vi.waitUntil(async () => calls.length === expected && (await waitingOf(dir)) === 0, {
    timeout: 20_000,
    interval: 100,
  })
  expect(await readStore(dir, (store) => store.deliveries({ limit: 9 }))).toHaveLength(expected)
  expect(await gateway.stop()).toBe(0)
})

async function waitingOf(dir: string): Promise<number> {
  const { count } = await readStore(dir, (store) => store.waiting({ agentId: 'main', sessionKey: 'main', limit: 1 }))
  return count
}
