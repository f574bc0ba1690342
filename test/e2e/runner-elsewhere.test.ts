// Workspace agents of ChatGPT and routines of Claude Code as runners, with fakes that accept only what their pages document:
// https://developers.openai.com/workspace-agents/trigger-runs, https://platform.claude.com/docs/en/api/claude-code/routines-fire
import { describe, expect, test } from 'vitest'
import { isJsonObject } from '../../src/base/json.ts'
import { claudeRoutineRunner } from '../../src/plugins/runners/claude-routine.ts'
import { workspaceAgentRunner } from '../../src/plugins/runners/workspace-agent.ts'
import { createRunner } from '../unit/plugins/runners/stage.ts'
import { type Misbehaviour, type Received, type Reply, startLoopback } from './fakes/loopback.ts'
import { createIO, timeIsUp } from './runner-command-stage.ts'
import { toRunRequest } from './runner-request.ts'

const token = 'token-of-the-other-side'
const prompt = 'the prompt, with its boundary'
const request = toRunRequest({ prompt, system: 'ours' })
const timeoutMs = 15_000

/** ChatGPT. A repeated `Idempotency-Key` starts no second turn. */
function createChatGpt() {
  const started = new Map<string, { key: unknown; input: string }>()
  function answer({ path, headers, body }: Received): Reply {
    if (headers.authorization !== `Bearer ${token}`) return { status: 401 }
    if (path !== '/v1/workspace_agents/agtch_pier/trigger') return { status: 404 }
    if (!isJsonObject(body) || typeof body['input'] !== 'string') return { status: 400 }
    if (Object.keys(body).some((field) => field !== 'input' && field !== 'conversation_key')) return { status: 400 }
    const key = String(headers['idempotency-key'])
    if (!started.has(key)) started.set(key, { key: body['conversation_key'], input: body['input'] })
    return { status: 202 }
  }
  return { started, answer }
}

/** Claude Code on the web. Each call is a session. */
function answerAsClaude({ path, headers, body }: Received): Reply {
  const refuse = (status: number, type: string): Reply => ({
    status,
    body: { type: 'error', error: { type, message: `About ${JSON.stringify(body)}` } },
  })
  if (headers['anthropic-beta'] !== 'experimental-cc-routine-2026-04-01') return refuse(400, 'invalid_request_error')
  if (headers.authorization !== `Bearer ${token}`) return refuse(401, 'authentication_error')
  if (path !== '/v1/claude_code/routines/trig_1/fire') return refuse(404, 'not_found_error')
  if (!isJsonObject(body) || Object.keys(body).join() !== 'text') return refuse(400, 'invalid_request_error')
  const session = 'session_01HJKLMN'
  const url = `https://claude.ai/code/${session}`
  return {
    status: 200,
    body: { type: 'routine_fire', claude_code_session_id: session, claude_code_session_url: url },
  }
}

async function openAgent(misbehaviour?: Misbehaviour, config: object = {}) {
  const chatGpt = createChatGpt()
  const { url, received } = await startLoopback((call) => misbehaviour ?? chatGpt.answer(call))
  const options = { trigger: 'agtch_pier', token, baseUrl: `${url}/v1`, timeoutMs, ...config }
  return { ...chatGpt, received, runner: createRunner(workspaceAgentRunner, options, { id: 'gpt' }) }
}

async function openRoutine(misbehaviour?: Misbehaviour, config: object = {}) {
  const { url, received } = await startLoopback((call) => misbehaviour ?? answerAsClaude(call))
  const options = { url: `${url}/v1/claude_code/routines/trig_1/fire`, token, timeoutMs, ...config }
  return { received, runner: createRunner(claudeRoutineRunner, options, { id: 'routine' }) }
}

describe('a workspace agent of ChatGPT', () => {
  test('the turn has the prompt, and the session key as its conversation', async () => {
    const { runner, started } = await openAgent()
    expect(await runner.run(request, createIO().io)).toEqual({
      status: 'forwarded',
      id: 'run-1',
      detail: 'Forwarded to the workspace agent, whose reply stays in ChatGPT.',
    })
    expect([...started]).toEqual([['run-1', { key: 'hook:a', input: prompt }]])
  })

  test('a second attempt of a run starts no second turn, and another run starts one', async () => {
    const { runner, started, received } = await openAgent()
    for (const attempt of [1, 2]) await runner.run({ ...request, attempt }, createIO().io)
    await runner.run({ ...request, runId: 'run-2' }, createIO().io)
    expect([received.length, [...started.keys()]]).toEqual([3, ['run-1', 'run-2']])
  })

  test('the link of the conversation is shown, and nothing else that an answer has', async () => {
    const answer = (conversation_url: unknown) => openAgent({ status: 202, body: { conversation_url } })
    const shown = await answer('https://chatgpt.com/c/1-a')
    expect(await shown.runner.run(request, createIO().io)).toMatchObject({
      detail: expect.stringMatching(/ https:\/\/chatgpt\.com\/c\/1-a$/),
    })
    for (const url of ['javascript:alert(1)', 'https://x.example/\u001b[2J', 'https://a@b.example/', 7]) {
      const { runner } = await answer(url)
      expect(await runner.run(request, createIO().io)).toMatchObject({ detail: expect.stringMatching(/in ChatGPT\.$/) })
    }
  })

  test.each([
    [401, 'error', /access token with the scope Workspace Agents/],
    [403, 'error', /Share the agent/],
    [404, 'error', /runners\.gpt\.trigger/],
    [409, 'unavailable', /cannot run now/],
    [413, 'too-long', /413/],
    [429, 'unavailable', /429/],
    [503, 'unavailable', /503/],
    [200, 'error', /does not describe/],
    [302, 'error', /does not describe/],
  ])('the answer %i is a failure of the kind %s', async (status, kind, detail) => {
    const { runner } = await openAgent({ status, headers: { location: 'https://evil.example/' } })
    const failed = await runner.run(request, createIO().io)
    expect(failed).toMatchObject({ status: kind, detail: expect.stringMatching(detail) })
    expect('retryable' in failed && failed.retryable).toBe(false)
  })

  test('an overloaded service, a lost answer and a late one are tried again', async () => {
    for (const [misbehaviour, config] of [
      [{ status: 500 }, {}],
      ['reset', {}],
      ['silence', { timeoutMs: 50 }],
    ] as const) {
      const { runner } = await openAgent(misbehaviour, config)
      expect(await runner.run(request, createIO().io)).toMatchObject({ status: 'error', retryable: true })
    }
  })

  test('without a connection the run waits, and a stop ends it', async () => {
    const { runner } = await openAgent(undefined, { baseUrl: 'http://127.0.0.1:9/v1' })
    expect(await runner.run(request, createIO().io)).toMatchObject({ status: 'unavailable' })
    const { runner: silent } = await openAgent('silence')
    const { io, stop } = createIO()
    const ended = silent.run(request, io)
    stop(timeIsUp)
    expect(await ended).toMatchObject({ status: 'timeout' })
  })
})

describe('a routine of Claude Code', () => {
  test('the turn has the prompt, and its id and link are those of the session', async () => {
    const { runner, received } = await openRoutine()
    expect(await runner.run(request, createIO().io)).toEqual({
      status: 'forwarded',
      id: 'session_01HJKLMN',
      detail: 'Forwarded to the routine, whose reply stays in its session. https://claude.ai/code/session_01HJKLMN',
    })
    expect(received.map(({ body }) => body)).toEqual([{ text: prompt }])
  })

  test('a refusal has its kind and its remedy, and no text that was sent', async () => {
    const { runner } = await openRoutine(undefined, { token: 'another-token' })
    const failed = await runner.run(request, createIO().io)
    expect(failed).toMatchObject({ status: 'error', retryable: false })
    expect(failed).toMatchObject({
      detail: expect.stringMatching(/answered 401, authentication_error\. Set runners\.routine\.token/),
    })
    expect(JSON.stringify(failed)).not.toContain('boundary')
  })

  test('a limit and an overload wait as long as they ask', async () => {
    const limited = await openRoutine({ status: 429, headers: { 'retry-after': '7' } })
    expect(await limited.runner.run(request, createIO().io)).toMatchObject({
      status: 'unavailable',
      retryAfterMs: 7_000,
    })
    const overloaded = await openRoutine({ status: 529 })
    expect(await overloaded.runner.run(request, createIO().io)).toMatchObject({ status: 'unavailable' })
  })
})

test('the options are checked', () => {
  const agent = workspaceAgentRunner.options
  expect(agent?.safeParse({ trigger: 'agtch_a/../x', token }).success).toBe(false)
  expect(agent?.safeParse({ trigger: 'agtch_a', token })).toMatchObject({
    data: { baseUrl: 'https://api.chatgpt.com/v1' },
  })
  expect(claudeRoutineRunner.options?.safeParse({ url: 'ftp://x.example/', token }).success).toBe(false)
})
