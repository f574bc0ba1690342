// The contract suite of `hookloom/testing`: the built-in runners keep all promises, and a runner that breaks one is found.
import { spawn } from 'node:child_process'
import { text as readText } from 'node:stream/consumers'
import { expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { defineRunner, type RunIO, type RunRequest, type RunResult } from '../../../../src/define.ts'
import { runners } from '../../../../src/plugins/runners/index.ts'
import { checkRunner, type RunnerTrial } from '../../../../src/testing.ts'

vi.setConfig({ testTimeout: 60_000 })

const toProgram = (code: string) => ({ command: process.execPath, args: ['-e', code], killAfterMs: 100 })
const endless = 'setInterval(() => {}, 1000)'
const listsEnvironment = 'console.log(JSON.stringify(process.env))'
const usage = { inputTokens: 7, outputTokens: 3 }

const trials: Readonly<Record<string, RunnerTrial>> = {
  command: {
    options: toProgram('console.log("Low water.")'),
    endless: toProgram(endless),
    listsEnvironment: { ...toProgram(listsEnvironment), env: ['HOOKLOOM_TRIAL'] },
  },
  openclaw: {
    options: { baseUrl: 'http://claw.test/hooks', token: 'tk_0123456789' },
    respond: () => Response.json({ ok: true, runId: 'r-1' }),
  },
  'workspace-agent': {
    options: { trigger: 'agtch_pier', token: 'tk_0123456789' },
    respond: () => new Response(null, { status: 202 }),
  },
  'claude-routine': {
    options: { url: 'https://pier.test/v1/claude_code/routines/trig_1/fire', token: 'tk_0123456789' },
    respond: () =>
      Response.json({
        type: 'routine_fire',
        claude_code_session_id: 'session_1',
        claude_code_session_url: 'https://claude.ai/code/session_1',
      }),
  },
  hermes: {
    options: { token: 'tk_0123456789' },
    usage,
    respond: ({ method }) =>
      method === 'POST'
        ? Response.json({ run_id: 'run_1', status: 'started' }, { status: 202 })
        : Response.json({
            run_id: 'run_1',
            status: 'completed',
            output: 'Low water.',
            usage: { input_tokens: 7, output_tokens: 3, total_tokens: 10 },
          }),
  },
  ai: {
    models: {
      providers: {
        pier: { kind: 'openai-compatible', baseUrl: 'http://pier.test/v1', apiKey: 'tk_0123456789', stream: false },
      },
    },
    model: 'pier/tide',
    usage: { ...usage, cachedInputTokens: 0, reasoningTokens: 0 },
    respond: () =>
      Response.json({
        id: 'c-1',
        object: 'chat.completion',
        created: 1,
        model: 'tide',
        choices: [{ index: 0, message: { role: 'assistant', content: 'Low water.' }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
      }),
  },
  'mcp-events': { options: { subscribers: { pier: { token: 'tk_0123456789abcdef0123456789' } } } },
  echo: {},
}

test.each(runners)('the runner $name keeps the promises of a runner', async (definition) => {
  expect(await checkRunner(definition, trials[definition.name])).toEqual([])
})

type Run = (request: RunRequest, io: RunIO) => Promise<RunResult>

const url = 'https://pier.test/'
const post = ({ prompt }: RunRequest, { signal }: RunIO) => fetch(url, { method: 'POST', body: prompt, signal })
const toResult = async (answer: Response, detail = `The pier answered ${answer.status}.`): Promise<RunResult> => {
  if (answer.ok) return { status: 'ok', text: await answer.text(), usage }
  if (answer.status === 429) return { status: 'unavailable', detail }
  return { status: 'error', retryable: answer.status >= 500, detail }
}
const good: Run = async (request, io) => toResult(await post(request, io))

function check(run: Run): Promise<string[]> {
  const definition = defineRunner({
    name: 'pier',
    about: 'The pier.',
    options: z.strictObject({ token: z.string() }),
    create: () => ({ run }),
  })
  return checkRunner(definition, {
    options: { token: 'tk_0123456789' },
    usage,
    respond: () => new Response('Low water.'),
  })
}

test('a runner that keeps all promises breaks none', async () => {
  expect(await check(good)).toEqual([])
})

test.each<[what: string, run: Run, broken: string]>([
  [
    'gives the model the message',
    (request, io) => good({ ...request, prompt: request.message }, io),
    'A request has the message',
  ],
  ['gives the model nothing', (request, io) => good({ ...request, prompt: '' }, io), 'No request has the prompt.'],
  [
    'forgets the usage',
    async (request, io) => {
      const result = await good(request, io)
      return result.status === 'ok' ? { status: 'ok', text: result.text } : result
    },
    'The usage is undefined',
  ],
  [
    'ignores its signal',
    (request, io) => good(request, { ...io, signal: new AbortController().signal }),
    'Turn at its time limit: the request goes on',
  ],
  [
    'does not end',
    (request, io) =>
      good(request, io).catch((thrown: unknown) => {
        if (!io.signal.aborted) throw thrown
        return new Promise(() => {})
      }),
    'Turn at a stop of the gateway: it does not end.',
  ],
  [
    'takes its end for a reply',
    (request, io) => good(request, io).catch(() => ({ status: 'ok', text: '', usage })),
    'Turn at its time limit: the turn is ok.',
  ],
  [
    'gives up at a limit',
    async (request, io) => {
      const result = await good(request, io)
      return result.status === 'unavailable' ? { status: 'error', retryable: false, detail: 'No.' } : result
    },
    'Answer 429 with Retry-After: the turn is error, and is not tried again',
  ],
  [
    'throws for an answer',
    async (request, io) => {
      const result = await good(request, io)
      if (result.status === 'error') throw new TypeError('no')
      return result
    },
    'Answer 401: the turn throws TypeError: no.',
  ],
  [
    'quotes the answer',
    async (request, io) => {
      const answer = await post(request, io)
      return answer.ok ? toResult(answer) : toResult(answer, await answer.text())
    },
    'Answer 401: the detail or the log has a secret.',
  ],
  [
    'logs the prompt',
    (request, io) => {
      io.log(request.prompt)
      return good(request, io)
    },
    'Answer 500: the detail or the log has the prompt.',
  ],
])('a runner that %s is found', async (_, run, broken) => {
  expect(await check(run)).toContainEqual(expect.stringContaining(broken))
})

/** A runner of programs. `env`: what they get. */
function checkProgram(env: (given: NodeJS.ProcessEnv) => NodeJS.ProcessEnv, stops: boolean): Promise<string[]> {
  const definition = defineRunner({
    name: 'pier',
    about: 'The pier.',
    options: z.strictObject({ code: z.string() }),
    create: ({ code }, host) => ({
      async run(_, { signal }): Promise<RunResult> {
        const child = spawn(process.execPath, ['-e', code], { env: env(host.env) })
        onTestFinished(() => void child.kill())
        if (stops) signal.addEventListener('abort', () => child.kill())
        else signal.addEventListener('abort', () => setTimeout(() => child.kill(), 6_000))
        const text = await readText(child.stdout)
        return signal.aborted ? { status: 'timeout', detail: 'Late.' } : { status: 'ok', text }
      },
    }),
  })
  const toOptions = (code: string) => ({ code })
  return checkRunner(definition, {
    options: toOptions('console.log("Low water.")'),
    endless: toOptions(endless),
    listsEnvironment: toOptions(listsEnvironment),
  })
}

test('a runner that gives a program the environment of the gateway, or goes on after its time limit, is found', async () => {
  expect(await checkProgram((env) => env, true)).toEqual([])
  expect(await checkProgram((env) => ({ ...process.env, ...env }), false)).toEqual([
    'Program at the time limit of its turn: it does not end.',
    'The program gets the environment of the gateway, with its secrets.',
  ])
})
