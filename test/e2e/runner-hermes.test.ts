// A Hermes agent as a runner, with a fake that accepts only what its page documents:
// https://hermes-agent.nousresearch.com/docs/user-guide/features/api-server
import { describe, expect, test } from 'vitest'
import { isDeepStrictEqual } from 'node:util'
import { isJsonObject } from '../../src/base/json.ts'
import { createMemoryState } from '../../src/testing/memory-state.ts'
import { hermesRunner } from '../../src/plugins/runners/hermes.ts'
import { hookToken, startGateway } from './gateway.ts'
import { createRunner } from '../unit/plugins/runners/stage.ts'
import { type Received, type Reply, startLoopback } from './fakes/loopback.ts'
import { createIO, timeIsUp } from './runner-command-stage.ts'
import { readStore } from './inside.ts'
import { toRunRequest } from './runner-request.ts'

const token = 'token-of-the-other-side'
const prompt = 'the prompt, with its boundary'
const request = toRunRequest({ prompt })

type Run = { status: string; input: string; sessionId: string; output?: string; error?: string; polls: number }

/** Hermes. `transcripts`: the sessions that it knows. `settle` decides how a run ends after its first poll. */
function createHermes(
  settle: (run: Run) => Partial<Run> = ({ input }) => ({ status: 'completed', output: `Re: ${input}` }),
) {
  const runs = new Map<string, Run>()
  const keys = new Map<string, { id: string; body: unknown }>()
  const transcripts = new Map<string, string[]>()
  const refuse = (status: number, code: string): Reply => ({
    status,
    body: { error: { message: `No: ${code}`, code } },
  })

  function start(key: string, body: unknown): Reply {
    if (!isJsonObject(body) || typeof body['input'] !== 'string') return refuse(400, 'invalid_request')
    const known = 'input session_id instructions conversation_history model provider model_options'.split(' ')
    if (Object.keys(body).some((field) => !known.includes(field))) return refuse(400, 'unknown_field')
    const kept = keys.get(key)
    if (kept !== undefined && !isDeepStrictEqual(kept.body, body)) return refuse(409, 'idempotency_key_conflict')
    const accepted = (id: string, headers: Record<string, string> = {}): Reply => ({
      status: 202,
      headers,
      body: { run_id: id, status: 'started' },
    })
    if (kept !== undefined) return accepted(kept.id, { 'idempotency-replayed': 'true' })
    const id = `run_${runs.size + 1}`
    const sessionId = String(body['session_id'])
    keys.set(key, { id, body })
    runs.set(id, { status: 'running', input: body['input'], sessionId, polls: 0 })
    transcripts.set(sessionId, [...(transcripts.get(sessionId) ?? []), body['input']])
    return accepted(id)
  }

  function answer({ method, path, headers, body }: Received): Reply {
    if (headers.authorization !== `Bearer ${token}`) return refuse(401, 'invalid_api_key')
    if (path === '/v1/capabilities')
      return { status: 200, body: { features: { run_submission: true, run_status: true } } }
    if (method === 'POST' && path === '/v1/runs') return start(String(headers['idempotency-key']), body)
    const [, id = '', act] = /^\/v1\/runs\/(\w+)(\/stop)?$/.exec(path) ?? []
    const run = runs.get(id)
    if (run === undefined) return refuse(404, 'run_not_found')
    if (act !== undefined) {
      run.status = 'cancelled'
      return { status: 200, body: { run_id: id, status: 'stopping' } }
    }
    run.polls += 1
    if (run.polls > 1 && !['cancelled', 'completed', 'failed', 'interrupted'].includes(run.status))
      Object.assign(run, settle(run))
    const { status, sessionId, output, error } = run
    const usage = { input_tokens: 50, output_tokens: 200, total_tokens: 250 }
    const model = 'hermes-agent'
    return {
      status: 200,
      body: { object: 'hermes.run', run_id: id, status, session_id: sessionId, model, output, error, usage },
    }
  }
  return { runs, transcripts, keys, answer }
}

async function open(settle?: (run: Run) => Partial<Run>, config: object = {}) {
  const hermes = createHermes(settle)
  const loopback = await startLoopback(hermes.answer)
  const options = { token, baseUrl: `${loopback.url}/v1`, ...config }
  return {
    ...hermes,
    ...loopback,
    runner: createRunner(hermesRunner, options, { id: 'hermes', state: createMemoryState() }),
  }
}

const readBodies = (received: readonly Received[]) =>
  received.flatMap(({ method, path, body }) => (method === 'POST' && path === '/v1/runs' ? [body] : []))

describe('a Hermes agent', () => {
  test('performs the turn, and its reply, model and tokens are those of the turn', async () => {
    const { runner, received } = await open()
    const asked = { ...request, system: 'ours', model: 'nous/tide-7', thinking: 'off' as const }
    expect(await runner.run(asked, createIO().io)).toEqual({
      status: 'ok',
      text: `Re: ${prompt}`,
      model: 'hermes-agent',
      usage: { inputTokens: 50, outputTokens: 200 },
      state: { hermesSession: expect.stringMatching(/^hookloom-[0-9a-f-]{36}$/) },
    })
    expect(readBodies(received)).toEqual([
      {
        input: prompt,
        session_id: `hookloom-${String(received[0]?.headers['idempotency-key'])}`,
        instructions: 'ours',
        model: 'tide-7',
        provider: 'nous',
        model_options: { reasoning_effort: 'none' },
      },
    ])
    expect(received[0]?.headers['x-hermes-session-key']).toBe('hook:a')
  })

  test('a session goes on in the session of Hermes; one that began elsewhere has its messages', async () => {
    const { runner, transcripts, received } = await open()
    const first = await runner.run(request, createIO().io)
    const state = first.status === 'ok' ? first.state : undefined
    const history = [
      { role: 'user', text: 'Earlier', runId: 'run-0', at: 1 },
      { role: 'assistant', text: 'Yes', runId: 'run-0', at: 2 },
    ] as const
    await runner.run({ ...request, runId: 'run-2', prompt: 'Next', state, history }, createIO().io)
    expect([...transcripts.values()]).toEqual([[prompt, 'Next']])
    const other = { ...request, runId: 'run-3', state: { sessionId: 'of-another-runner' }, history }
    expect(await runner.run(other, createIO().io)).not.toHaveProperty('state')
    expect(readBodies(received)[2]).toMatchObject({
      session_id: expect.stringMatching(/^hookloom-/),
      conversation_history: [
        { role: 'user', content: 'Earlier' },
        { role: 'assistant', content: 'Yes' },
      ],
    })
  })

  test('a session key that no header can have names a memory of its own', async () => {
    const { runner, received } = await open()
    for (const sessionKey of ['hook:ünïcode', `hook:${'x'.repeat(300)}`])
      await runner.run({ ...request, runId: sessionKey.slice(-4), sessionKey }, createIO().io)
    const keys = received.flatMap(({ headers }) => headers['x-hermes-session-key'] ?? [])
    expect(keys).toEqual([expect.stringMatching(/^[0-9a-f]{64}$/), expect.stringMatching(/^[0-9a-f]{64}$/)])
    expect(new Set(keys).size).toBe(2)
  })

  test('a second attempt takes up the run that the first one started', async () => {
    const { runner, runs, received, planAnswers } = await open()
    const { io, stop } = createIO()
    const stopped = runner.run(request, io)
    await expect.poll(() => received.length).toBe(2)
    stop(new DOMException('Stopped.', 'AbortError'))
    expect(await stopped).toMatchObject({ status: 'timeout', detail: expect.stringContaining('takes up its run') })
    expect(received.some(({ path }) => path.endsWith('/stop'))).toBe(false)
    planAnswers('reset')
    expect(await runner.run({ ...request, attempt: 2 }, createIO().io)).toMatchObject({
      status: 'error',
      retryable: true,
    })
    // the prompt of each attempt has markers of its own
    const third = { ...request, attempt: 3, prompt: 'with other markers' }
    expect(await runner.run(third, createIO().io)).toMatchObject({
      status: 'ok',
      text: `Re: ${prompt}`,
    })
    expect(runs.size).toBe(1)
  })

  test.each([
    [
      { status: 'failed', error: `No credit: ${prompt}` },
      { retryable: true, quotes: true, detail: /failed: No credit/ },
    ],
    [{ status: 'failed' }, { retryable: true, detail: /Look at its log/ }],
    [{ status: 'interrupted' }, { retryable: true, detail: /restarted during the turn/ }],
    [{ status: 'cancelled' }, { retryable: false, detail: /was stopped in Hermes/ }],
    [
      { status: 'completed', output: ' ' },
      { retryable: true, detail: /without a reply/ },
    ],
  ])(
    'a run that ends as %o is a failure, and the next attempt starts another run',
    async (end, { detail, ...rest }) => {
      let isMended = false
      const { runner, runs } = await open(() => (isMended ? { status: 'completed', output: 'Now' } : end))
      const failed = await runner.run(request, createIO().io)
      expect(failed).toMatchObject({ status: 'error', ...rest, detail: expect.stringMatching(detail) })
      isMended = true
      expect(await runner.run({ ...request, attempt: 2 }, createIO().io)).toMatchObject({ status: 'ok', text: 'Now' })
      expect(await runner.run({ ...request, attempt: 3 }, createIO().io)).toMatchObject({ status: 'ok', text: 'Now' })
      expect(runs.size).toBe(2)
    },
  )

  test('a run that Hermes forgot is run again', async () => {
    const { runner, runs, keys } = await open()
    await runner.run(request, createIO().io)
    runs.delete('run_1')
    expect(await runner.run({ ...request, attempt: 2 }, createIO().io)).toMatchObject({ status: 'ok' })
    expect(keys.size).toBe(2)
  })

  test('a prompt that is too long to be kept is sent, and a second attempt runs it again', async () => {
    const { runner, runs } = await open()
    const long = { ...request, prompt: 'x'.repeat(1_048_576) }
    for (const attempt of [1, 2])
      expect(await runner.run({ ...long, attempt }, createIO().io)).toMatchObject({ status: 'ok' })
    expect(runs.size).toBe(2)
  })

  test.each([
    ['at the time limit', timeIsUp],
    ['by an operator', new DOMException('The job was ended.', 'EndedError')],
  ])('a run that is ended %s is stopped in Hermes', async (_, reason) => {
    const { runner, runs, received } = await open(() => ({}))
    const { io, stop } = createIO()
    const ended = runner.run(request, io)
    await expect.poll(() => received.length).toBe(2)
    stop(reason)
    expect(await ended).toMatchObject({ status: 'timeout', detail: expect.stringContaining('stops its run') })
    expect(runs.get('run_1')?.status).toBe('cancelled')
  })

  test('polls that get no answer during a restart do not end the turn; five in a row do', async () => {
    const { runner, planAnswers } = await open()
    planAnswers(
      { status: 202, body: { run_id: 'run_1' } },
      'reset',
      { status: 503 },
      { status: 502, body: 'Bad gateway' },
    )
    const ended = await runner.run({ ...request, runId: 'run-7' }, createIO().io)
    expect(ended).toMatchObject({ status: 'error', detail: expect.stringContaining('no longer knows the run') })
    planAnswers({ status: 202, body: { run_id: 'run_1' } }, 'reset', 'reset', 'reset', 'reset', 'reset')
    expect(await runner.run(request, createIO().io)).toMatchObject({ status: 'error', retryable: true })
  })

  test('an approval that the turn waits for is logged once', async () => {
    const { runner } = await open(({ polls }) =>
      polls < 5 ? { status: 'waiting_for_approval' } : { status: 'completed', output: 'Done' },
    )
    const { io, lines } = createIO()
    expect(await runner.run(request, io)).toMatchObject({ text: 'Done' })
    expect(lines).toEqual([expect.stringContaining('POST /v1/runs/run_1/approval')])
  })

  test.each([
    [{ status: 401, body: { error: { message: prompt } } }, 'error', /API_SERVER_KEY/],
    [{ status: 404 }, 'error', /runners\.hermes\.baseUrl/],
    [{ status: 409 }, 'error', /409/],
    [{ status: 413 }, 'too-long', /413/],
    [{ status: 429, headers: { 'retry-after': '1' } }, 'unavailable', /429/],
    [{ status: 503 }, 'unavailable', /503/],
    [{ status: 200 }, 'error', /does not describe/],
    [{ status: 202, body: { run_id: '../admin' } }, 'error', /does not describe/],
    [{ status: 302, headers: { location: 'https://evil.example/' } }, 'error', /does not describe/],
  ])('the answer %o is a failure of the kind %s', async (reply, status, detail) => {
    const { runner, planAnswers, received } = await open()
    planAnswers(reply)
    const failed = await runner.run(request, createIO().io)
    expect(failed).toMatchObject({ status, detail: expect.stringMatching(detail) })
    expect(JSON.stringify(failed)).not.toContain('boundary')
    expect(received.length).toBe(1)
  })

  test('without a connection the run waits', async () => {
    const { runner } = await open(undefined, { baseUrl: 'http://127.0.0.1:9/v1' })
    expect(await runner.run(request, createIO().io)).toMatchObject({
      status: 'unavailable',
      detail: expect.stringContaining('hermes gateway'),
    })
  })

  test.each<[string, object, Reply | undefined, object]>([
    ['accepts its token', {}, undefined, { ok: true }],
    [
      'refuses its token',
      { token: 'another' },
      undefined,
      { ok: false, detail: expect.stringContaining('API_SERVER_KEY') },
    ],
    [
      'is too old',
      {},
      { status: 200, body: { features: {} } },
      { ok: false, detail: expect.stringContaining('Update') },
    ],
  ])('a probe tells whether Hermes %s', async (_, config, reply, probe) => {
    const { runner, planAnswers } = await open(undefined, config)
    if (reply !== undefined) planAnswers(reply)
    expect(await runner.probe?.(new AbortController().signal)).toMatchObject(probe)
  })
})

test('a gateway that is killed during a turn takes up the run of Hermes, and delivers its reply', async () => {
  let isDone = false
  const hermes = await open(() => (isDone ? { status: 'completed', output: 'Low water.' } : {}))
  const runners = { hermes: { kind: 'hermes', token, baseUrl: `${hermes.url}/v1` } }
  const config = { runners, agents: { list: [{ id: 'main', runner: 'hermes' }] } }
  const first = await startGateway({ config })
  const asked = await fetch(`${first.url}/agent`, {
    method: 'POST',
    headers: { authorization: `Bearer ${hookToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({ message: 'How is the tide?', deliver: false }),
  })
  expect(asked.status).toBe(200)
  await expect.poll(() => hermes.received.length, { timeout: 30_000 }).toBeGreaterThan(2)
  await first.kill()
  isDone = true
  const second = await startGateway({ dir: first.dir })
  const readJob = () => readStore(first.dir, async (store) => (await store.deliveries({ limit: 1 }))[0]?.jobs[0])
  await expect.poll(async () => (await readJob())?.state, { timeout: 60_000 }).toBe('done')
  expect(JSON.stringify(await readJob())).toContain('Low water.')
  expect(hermes.runs.size).toBe(1)
  await second.stop()
})
