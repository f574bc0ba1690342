// OpenClaw as a runner, with a fake that accepts only what OpenClaw documents.
import { describe, expect, test } from 'vitest'
import { openclawRunner } from '../../src/plugins/runners/openclaw.ts'
import { createRunner } from '../unit/plugins/runners/stage.ts'
import { AgentAction } from '../../src/core/model/action.ts'
import { isJsonObject } from '../../src/base/json.ts'
import { type Misbehaviour, type Received, type Reply, startLoopback } from './fakes/loopback.ts'
import { createIO, timeIsUp } from './runner-command-stage.ts'
import { toRunRequest } from './runner-request.ts'

const token = 'openclaw-hook-token'

/** `misbehaviour` replaces the normal answer of OpenClaw. */
async function openFake(misbehaviour?: Misbehaviour) {
  let wake = () => {}
  const called = new Promise<void>((resolve) => (wake = resolve))
  const { url, received, close } = await startLoopback((call) => {
    wake()
    return misbehaviour ?? answerAsOpenClaw(call)
  })
  return { calls: received, called, close, baseUrl: `${url}/hooks` }
}

function answerAsOpenClaw({ path, headers, body }: Received): Reply {
  const refuse = (status: number, error: string): Reply => ({ status, body: { ok: false, error } })
  if (headers.authorization !== `Bearer ${token}`) return { status: 401, body: 'Unauthorized' }
  if (!isJsonObject(body)) return refuse(400, 'invalid JSON')
  if (path === '/hooks/wake') {
    return typeof body['text'] === 'string' && body['mode'] === 'now'
      ? { status: 200, body: { ok: true, mode: 'now', eventOutcome: 'queued' } }
      : refuse(400, 'text required')
  }
  if (path !== '/hooks/agent') return { status: 404, body: 'Not Found' }
  if (typeof body['message'] !== 'string') return refuse(400, 'message required')
  if ('sessionKey' in body) return refuse(400, 'sessionKey is disabled for externally supplied hook payload values')
  if (body['channel'] === 'last') return refuse(400, 'channel must name a concrete channel for hook delivery')
  if ('channel' in body !== 'to' in body) return refuse(400, 'channel and to must be set together for hook delivery')
  return { status: 200, body: { ok: true, runId: 'theirs-1' } }
}

function openRunner(baseUrl: string, config: object = {}, fetch = globalThis.fetch) {
  const options = { baseUrl, token, timeoutMs: 15_000, ...config }
  return createRunner(openclawRunner, options, { id: 'claw', fetch })
}

function toRun(action: Partial<AgentAction> = {}) {
  const whole = AgentAction.parse({ kind: 'agent', message: 'outside', ...action })
  return toRunRequest({ action: whole, prompt: 'the prompt, with its boundary', system: 'ours', model: 'local/llama' })
}

describe('forwarded runs', () => {
  test('a forwarded run has the prompt, the run id as its Idempotency-Key, and no field that the action leaves out', async () => {
    const { baseUrl, calls } = await openFake()
    expect(await openRunner(baseUrl).run(toRun(), createIO().io)).toMatchObject({ status: 'forwarded', id: 'theirs-1' })
    expect(calls).toMatchObject([
      { path: '/hooks/agent', headers: { 'content-type': 'application/json', 'idempotency-key': 'run-1' } },
    ])
    expect(calls[0]?.body).toEqual({ message: 'the prompt, with its boundary', wakeMode: 'now', deliver: true })
  })

  test('a forwarded run has every field that the action sets', async () => {
    const { baseUrl, calls } = await openFake()
    const action = {
      name: 'CI\nbroke',
      agentId: 'main',
      sessionKey: 'hook:ci',
      wakeMode: 'next-heartbeat',
      channel: 'slack',
      to: 'C1',
      model: 'small',
      thinking: 'low',
      timeoutSeconds: 0.5,
    } as const
    const result = await openRunner(baseUrl).run(toRun(action), createIO().io)
    expect(result).toMatchObject({
      detail: 'Forwarded to OpenClaw as run theirs-1. OpenClaw delivers the reply to slack.',
    })
    expect(calls[0]?.body).toEqual({
      message: 'the prompt, with its boundary',
      name: 'CI broke',
      agentId: 'main',
      wakeMode: 'next-heartbeat',
      deliver: true,
      channel: 'slack',
      to: 'C1',
      model: 'local/llama',
      thinking: 'low',
      timeoutSeconds: 1,
    })
  })

  test('a forwarded run of an unknown agent, which the default agent takes, names no agent', async () => {
    const { baseUrl, calls } = await openFake()
    await openRunner(baseUrl).run(toRun({ agentId: 'unknown' }), createIO().io)
    expect(calls[0]?.body).not.toHaveProperty('agentId')
  })

  test.each([
    [{ channel: 'slack' }, true, 'OpenClaw decides where the reply goes'],
    [{ channel: 'last', to: 'C1' }, true, 'OpenClaw decides where the reply goes'],
    [{ channel: 'console', to: 'me' }, false, 'OpenClaw has no channel "console"'],
    [{ channel: 'slack', to: 'C1', deliver: false }, false, 'Its reply is not delivered.'],
  ] as const)(
    'a forwarded run names channel and recipient together or not at all: %j',
    async (action, deliver, note) => {
      const { baseUrl, calls } = await openFake()
      const result = await openRunner(baseUrl).run(toRun(action), createIO().io)
      expect(result).toMatchObject({ status: 'forwarded', detail: expect.stringContaining(note) })
      expect(calls[0]?.body).toMatchObject({ deliver })
      expect(calls[0]?.body).not.toHaveProperty('channel')
      expect(calls[0]?.body).not.toHaveProperty('to')
    },
  )

  test('a heartbeat is forwarded as a wake', async () => {
    const { baseUrl, calls } = await openFake()
    const result = await openRunner(baseUrl).run(toRunRequest({ prompt: 'Anything new?' }), createIO().io)
    expect(result).toMatchObject({ status: 'forwarded', id: 'run-1' })
    expect(calls).toMatchObject([{ path: '/hooks/wake', body: { text: 'Anything new?', mode: 'now' } }])
  })
})

describe('refused runs', () => {
  test.each([
    [429, { status: 'unavailable', retryAfterMs: 7_000 }],
    [502, { status: 'error', retryable: true, retryAfterMs: 7_000 }],
    [503, { status: 'unavailable' }],
    [400, { status: 'error', retryable: false, detail: expect.stringContaining('Change what the mapping') }],
    [401, { status: 'error', retryable: false, detail: expect.stringContaining('hooks.token there') }],
    [404, { status: 'error', retryable: false, detail: expect.stringContaining('baseUrl') }],
    [409, { status: 'error', retryable: false }],
    [413, { status: 'too-long', detail: expect.stringContaining('Shorten the message') }],
    [418, { status: 'error', retryable: false }],
  ])('a refusal by OpenClaw with status %i says whether another attempt may help', async (status, expected) => {
    const body = { ok: false, error: `no \u001b[31m because of ${token}` }
    const { baseUrl } = await openFake({ status, headers: { 'retry-after': '7' }, body })
    const result = await openRunner(baseUrl).run(toRun(), createIO().io)
    expect(result).toMatchObject({ ...expected, quotes: true })
    const { detail } = result as { detail: string }
    expect(detail).toContain(`OpenClaw (runners.claw) answered ${status}: no ␛[31m because of [hidden].`)
  })

  test('a redirect is not followed, so that no other host gets the token', async () => {
    const other = await openFake()
    const { baseUrl } = await openFake({ status: 307, headers: { location: `${other.baseUrl}/agent` } })
    expect(await openRunner(baseUrl).run(toRun(), createIO().io)).toMatchObject({
      status: 'error',
      retryable: false,
      detail: expect.stringContaining('redirect'),
    })
    expect(other.calls).toEqual([])
  })

  test.each(['<html>Welcome</html>', '{}', '{"ok":true}', `{"ok":true,"runId":"${'x'.repeat(70_000)}"}`])(
    'an answer that is not from OpenClaw is a failure: %#',
    async (body) => {
      const { baseUrl } = await openFake({ status: 200, body })
      expect(await openRunner(baseUrl).run(toRun(), createIO().io)).toMatchObject({
        status: 'error',
        retryable: false,
        detail: expect.stringContaining('Set runners.claw.baseUrl'),
      })
    },
  )
})

describe('unreachable gateways', () => {
  test('each attempt of a run has the same key, because a gateway that does not answer may have accepted the run', async () => {
    const { baseUrl } = await openFake('silence')
    const keys: (string | null)[] = []
    const runner = openRunner(baseUrl, { timeoutMs: 50 }, (input, init) => {
      keys.push(new Headers(init?.headers).get('idempotency-key'))
      return fetch(input, init)
    })
    for (const attempt of [1, 2]) {
      expect(await runner.run({ ...toRun(), attempt }, createIO().io)).toMatchObject({
        status: 'error',
        retryable: true,
        detail: expect.stringContaining('did not answer in 0.05 s'),
      })
    }
    expect(keys).toEqual(['run-1', 'run-1'])
  })

  test('a request to a silent gateway ends when the run is stopped', async () => {
    const { baseUrl, called } = await openFake('silence')
    const { io, stop } = createIO()
    const running = openRunner(baseUrl).run(toRun(), io)
    await called
    stop(timeIsUp)
    expect(await running).toMatchObject({ status: 'timeout' })
  })

  test('an unreachable gateway is reported by its address', async () => {
    const { baseUrl, close } = await openFake()
    close()
    expect(await openRunner(baseUrl).run(toRun(), createIO().io)).toEqual({
      status: 'unavailable',
      detail: `OpenClaw at ${new URL(baseUrl).origin} (runners.claw) cannot be reached (ECONNREFUSED). Is it running?`,
    })
  })
})

describe('probes of OpenClaw', () => {
  const { signal } = new AbortController()

  test('a probe of OpenClaw asks whether the token is accepted, and starts no run', async () => {
    const { baseUrl, calls } = await openFake()
    expect(await openRunner(baseUrl).probe?.(signal)).toMatchObject({ ok: true })
    expect(calls.map(({ body }) => body)).toEqual([{}])
  })

  test('a failed probe of OpenClaw says what to change', async () => {
    const { baseUrl } = await openFake()
    const probe = await openRunner(baseUrl, { token: 'other' }).probe?.(signal)
    expect(probe).toMatchObject({ ok: false, detail: expect.stringContaining('Set its token') })
  })
})
