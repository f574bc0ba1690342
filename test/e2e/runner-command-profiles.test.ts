// The profiles of claude and codex, with programs that imitate their output: rights, sessions, counts and refusals.
import { expect, describe, test } from 'vitest'
import type { RunResult } from '../../src/model/runner.ts'
import { readCalls, createIO, makeFolder, openRunner } from './runner-command-stage.ts'
import { toRunRequest } from './runner-request.ts'

function readState(result: RunResult) {
  if (result.status !== 'ok' || result.state === undefined) throw new Error(JSON.stringify(result))
  return result.state
}

describe('the profile claude', () => {
  const runner = openRunner({ profile: 'claude' })

  test('claude may only read, and gets the settings of the run', async () => {
    const workspace = makeFolder()
    const request = toRunRequest({ workspace, model: 'anthropic/sonnet', thinking: 'minimal', system: '-Be kind.' })
    const result = await runner.run({ ...request, prompt: '-help me' }, createIO().io)
    expect(result).toMatchObject({ status: 'ok', text: 'Heard 8 characters.' })
    const [call] = readCalls(workspace)
    expect(call?.prompt).toBe('-help me')
    expect(call?.values).toEqual({
      print: true,
      'output-format': 'json',
      'permission-mode': 'plan',
      tools: 'Read,Glob,Grep',
      'strict-mcp-config': true,
      'setting-sources': 'user',
      'disable-slash-commands': true,
      model: 'sonnet',
      effort: 'low',
      'append-system-prompt': ' -Be kind.',
      'session-id': expect.stringMatching(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/),
    })
  })

  test('claude gets no flag without a value', async () => {
    const workspace = makeFolder()
    await runner.run(toRunRequest({ workspace, thinking: 'off' }), createIO().io)
    const values = readCalls(workspace)[0]?.values ?? {}
    expect(Object.keys(values)).not.toContain('model')
    expect(Object.keys(values)).not.toContain('effort')
    expect(Object.keys(values)).not.toContain('append-system-prompt')
  })

  test('claude counts cached tokens as input', async () => {
    expect(await runner.run(toRunRequest({ workspace: makeFolder() }), createIO().io)).toMatchObject({
      usage: { inputTokens: 325, cachedInputTokens: 300, outputTokens: 7, costUsd: 0.25 },
    })
  })

  test('claude continues the session that it began', async () => {
    const workspace = makeFolder()
    const first = await runner.run(toRunRequest({ workspace }), createIO().io)
    const second = await runner.run(toRunRequest({ workspace, state: readState(first) }), createIO().io)
    expect(readState(second)).toEqual(readState(first))
    const [begun, continued] = readCalls(workspace).map(({ values }) => values)
    expect(continued).toMatchObject({ resume: begun?.['session-id'] })
    expect(continued).not.toHaveProperty('session-id')
  })

  test('claude is run once more, with a new session, if it does not know the old one', async () => {
    const workspace = makeFolder()
    const { io, lines } = createIO()
    const state = { sessionId: '00000000-0000-4000-8000-000000000000' }
    const result = await runner.run(toRunRequest({ workspace, state }), io)
    expect(readState(result)).not.toEqual(state)
    expect(readCalls(workspace)).toHaveLength(2)
    expect(lines).toEqual(['runners.mine: the command no longer knows this session; a new one starts'])
  })

  test('claude without a workspace continues no session, because it keeps sessions by folder', async () => {
    const result = await runner.run(toRunRequest({ state: { sessionId: 'from-elsewhere' } }), createIO().io)
    expect(result).toMatchObject({ status: 'ok' })
    expect(result).not.toHaveProperty('state')
  })

  test('claude does not read files that outside text names with an @', async () => {
    const workspace = makeFolder()
    const prompt = '@/etc/passwd (@~/.ssh/id_rsa) 。@"a b" >@x me@example.com, cc @octocat at 5 @ 7'
    await runner.run(toRunRequest({ workspace, prompt }), createIO().io)
    expect(readCalls(workspace)[0]?.prompt).toBe(
      '@ /etc/passwd (@ ~/.ssh/id_rsa) 。@ "a b" >@ x me@example.com, cc @ octocat at 5 @ 7',
    )
  })

  test.each([
    ['Claude AI usage limit reached', { status: 'unavailable', retryAfterMs: 300_000 }],
    ['Not logged in · Please run /login', { status: 'error', retryable: false }],
    ['API Error: 500 Internal server error', { status: 'error', retryable: true }],
  ])('a run of claude that prints "%s" failed, and the error quotes the output', async (words, expected) => {
    const result = await runner.run(toRunRequest({ workspace: makeFolder(), prompt: `say ${words}` }), createIO().io)
    expect(result).toMatchObject({ ...expected, detail: expect.stringContaining(words) })
  })
})

describe('the profile codex', () => {
  const runner = openRunner({ profile: 'codex' })

  test('codex may only read, and gets the settings of the run', async () => {
    const workspace = makeFolder()
    const request = toRunRequest({ workspace, model: 'openai/gpt-5', thinking: 'off', system: 'Be kind.' })
    expect(await runner.run(request, createIO().io)).toMatchObject({ status: 'ok', text: 'Turn 1 is done.' })
    expect(readCalls(workspace)).toEqual([
      {
        args: [
          ['exec', '--json', '--color', 'never', '--skip-git-repo-check'],
          ['--sandbox', 'read-only', '--ignore-rules', '-c', 'web_search=disabled'],
          ['--model', 'gpt-5', '-c', 'model_reasoning_effort=none', '-'],
        ].flat(),
        prompt: 'Be kind.\n\nLook at this',
      },
    ])
  })

  test('codex continues its thread with the same rights, and the tokens of each turn are counted separately', async () => {
    const workspace = makeFolder()
    let state = readState(await runner.run(toRunRequest({ workspace, system: 'Be kind.' }), createIO().io))
    for (const turn of [2, 3]) {
      const result = await runner.run(toRunRequest({ workspace, system: 'Be kind.', state }), createIO().io)
      expect(result).toMatchObject({
        text: `Turn ${turn} is done.`,
        usage: { inputTokens: 5, cachedInputTokens: 1, outputTokens: 3, reasoningTokens: 0 },
      })
      state = readState(result)
    }
    const last = readCalls(workspace).at(-1)
    expect(last?.args.slice(0, 10)).toEqual(readCalls(workspace)[0]?.args.slice(0, 10))
    expect(last?.args.slice(-3)).toEqual(['resume', expect.stringMatching(/^[\da-f-]{36}$/), '-'])
    expect(last?.prompt).toBe('Look at this')
  })

  test('codex begins a new thread if it does not know the old one, and its tokens are counted from zero', async () => {
    const state = { sessionId: 'gone', usage: { inputTokens: 2, outputTokens: 1 } }
    const result = await runner.run(toRunRequest({ workspace: makeFolder(), state }), createIO().io)
    expect(result).toMatchObject({ text: 'Turn 1 is done.', usage: { inputTokens: 5, outputTokens: 3 } })
    expect(readState(result)).not.toMatchObject({ sessionId: 'gone' })
  })

  test('codex begins a new thread if the stored state has an unknown form', async () => {
    const workspace = makeFolder()
    await runner.run(toRunRequest({ workspace, state: ['--dangerous'] }), createIO().io)
    expect(readCalls(workspace)[0]?.args).not.toContain('resume')
  })

  test('a failed turn is reported in the words of codex', async () => {
    const words = 'unexpected status 401 Unauthorized: bad key'
    const result = await runner.run(toRunRequest({ workspace: makeFolder(), prompt: `say ${words}` }), createIO().io)
    expect(result).toMatchObject({ status: 'error', retryable: false, detail: expect.stringContaining(words) })
  })
})

test('configured arguments replace those of the profile, and only configured resumeArgs continue a session', async () => {
  const workspace = makeFolder()
  const runner = openRunner({ profile: 'codex', args: ['exec', '--json', '-'] })
  const result = await runner.run(toRunRequest({ workspace, state: { sessionId: 'x' } }), createIO().io)
  expect(result).toMatchObject({ status: 'ok' })
  expect(result).not.toHaveProperty('state')
  expect(readCalls(workspace)[0]?.args).toEqual(['exec', '--json', '-'])
})
