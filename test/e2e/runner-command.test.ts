// Commands as real processes: their input, their end, and that no process is left.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { expect, describe, test } from 'vitest'
import {
  createIO,
  findFixture,
  isAlive,
  makeFolder,
  openFixture,
  startProcessWatch,
  openRunner,
  timeIsUp,
} from './runner-command-stage.ts'
import { toRunRequest } from './runner-request.ts'

const told = { output: 'json', textField: 'told' } as const

async function tell(config: Parameters<typeof openFixture>[1], request: Parameters<typeof toRunRequest>[0] = {}) {
  const result = await openFixture('tell', { ...told, ...config }).run(toRunRequest(request), createIO().io)
  if (result.status !== 'ok') throw new Error(JSON.stringify(result))
  const given: { args: string[]; input: string; env: Record<string, string>; cwd: string } = JSON.parse(result.text)
  return given
}

describe('input of a command', () => {
  test('the prompt arrives on stdin, which is then closed', async () => {
    expect(await tell({}, { prompt: '-rf $(id) `id` "quoted" \n end' })).toMatchObject({
      args: [],
      input: '-rf $(id) `id` "quoted" \n end',
    })
  })

  test('a prompt among the arguments is one argument and never a flag', async () => {
    const { args, input } = await tell(
      { args: ['-m', '{prompt}'] },
      { prompt: '--yolo; $(id) {model} \0 x', model: 'a/b' },
    )
    expect(args).toEqual(['-m', ' --yolo; $(id) {model} \uFFFD x'])
    expect(input).toBe('')
  })

  test('a command gets the four common environment variables and the listed ones', async () => {
    const { env } = await tell({
      env: ['LISTED', 'UNSET'],
      vars: { LISTED: 'yes', OPENAI_API_KEY: 'sk-secret', TMPDIR: '/tmp', NODE_OPTIONS: '--no-warnings' },
    })
    expect(Object.keys(env).toSorted()).toEqual(['HOME', 'LANG', 'LISTED', 'PATH', 'TMPDIR'])
  })

  test('a command runs in the workspace of its agent', async () => {
    const workspace = makeFolder()
    expect((await tell({}, { workspace })).cwd).toBe(workspace)
  })

  test('a command without a workspace runs in a private folder that is removed afterwards', async () => {
    const [one, other] = await Promise.all([tell({}), tell({})])
    expect(one.cwd).not.toBe(other.cwd)
    expect(one.cwd).not.toBe(process.cwd())
    expect(existsSync(one.cwd)).toBe(false)
  })

  test('the system text precedes the prompt if the arguments have no place for it', async () => {
    expect((await tell({}, { system: 'Be kind.' })).input).toBe('Be kind.\n\nLook at this')
    const placed = await tell({ args: ['--system', '{system}'] }, { system: 'Be kind.' })
    expect(placed).toMatchObject({ args: ['--system', 'Be kind.'], input: 'Look at this' })
  })

  test('a prompt of one megabyte arrives whole', async () => {
    const prompt = 'é'.repeat(524_288)
    const runner = openFixture('tell', { output: 'json', textField: 'inputLength' })
    expect(await runner.run(toRunRequest({ prompt }), createIO().io)).toMatchObject({ status: 'ok', text: '524288' })
  })
})

describe('misbehaving commands', () => {
  test.each([[[]], [['closed']]])(
    'a command with the arguments %j that never reads a prompt of one megabyte still gives its reply',
    async (args) => {
      const result = await openFixture('deaf', { args }).run(
        toRunRequest({ prompt: 'x'.repeat(1_048_576) }),
        createIO().io,
      )
      expect(result).toEqual({ status: 'ok', text: 'I did not listen.' })
    },
  )

  test('a command that prints without end is killed', async () => {
    const watch = await startProcessWatch()
    const running = openFixture('flood', { args: [watch.port], killAfterMs: 50 }).run(toRunRequest(), createIO().io)
    const pids = await watch.waitForProcesses(1)
    expect(await running).toEqual({
      status: 'error',
      retryable: false,
      detail: expect.stringContaining('(runners.mine) printed more than 1 MB and was stopped.'),
    })
    expect(pids.filter(isAlive)).toEqual([])
  })

  test('if a command exits while a grandchild keeps its pipes open, its reply counts and the grandchild is killed', async () => {
    const watch = await startProcessWatch()
    const running = openFixture('family', { args: [watch.port], killAfterMs: 50 }).run(toRunRequest(), createIO().io)
    const pids = await watch.waitForProcesses(1)
    expect(pids.map(isAlive)).toEqual([true])
    expect(await running).toEqual({ status: 'ok', text: 'The family answers.' })
    expect(pids.filter(isAlive)).toEqual([])
  })
})

describe('stopped runs', () => {
  test('a command that heeds SIGTERM is not killed', async () => {
    const watch = await startProcessWatch()
    const { io, stop } = createIO()
    // a minute, which is longer than this test may take
    const running = openFixture('obedient', { args: [watch.port], killAfterMs: 60_000 }).run(toRunRequest(), io)
    const pids = await watch.waitForProcesses(1)
    stop(timeIsUp)
    expect(await running).toEqual({ status: 'timeout', detail: expect.stringContaining('it reached its time limit') })
    expect(pids.filter(isAlive)).toEqual([])
  })

  test('a command that ignores SIGTERM is killed', async () => {
    const watch = await startProcessWatch()
    const { io, stop } = createIO()
    const running = openFixture('stubborn', { args: [watch.port], killAfterMs: 50 }).run(toRunRequest(), io)
    const pids = await watch.waitForProcesses(1)
    stop(timeIsUp)
    expect(await running).toMatchObject({ status: 'timeout' })
    expect(pids.filter(isAlive)).toEqual([])
  })

  test('the grandchildren of a stopped command are killed with it', async () => {
    const watch = await startProcessWatch()
    const { io, stop } = createIO()
    const running = openFixture('family', { args: [watch.port, 'stays'], killAfterMs: 50 }).run(toRunRequest(), io)
    const pids = await watch.waitForProcesses(2)
    expect(pids.map(isAlive)).toEqual([true, true])
    stop()
    expect(await running).toMatchObject({ status: 'error', retryable: true })
    expect(pids.filter(isAlive)).toEqual([])
  })

  test('a run that is stopped before it begins starts no command', async () => {
    const workspace = makeFolder()
    const { io, stop } = createIO()
    stop(timeIsUp)
    const runner = openRunner({ profile: 'codex' })
    expect(await runner.run(toRunRequest({ workspace }), io)).toMatchObject({ status: 'timeout' })
    expect(existsSync(`${workspace}/calls.jsonl`)).toBe(false)
  })
})

test('a gateway that exits kills its commands', async () => {
  const watch = await startProcessWatch()
  const host = spawn(process.execPath, [findFixture('host'), findFixture('stubborn'), watch.port], {
    stdio: ['pipe', 'ignore', 'inherit'],
  })
  const pids = await watch.waitForProcesses(1)
  expect(pids.map(isAlive)).toEqual([true])
  host.stdin.end('exit\n')
  await expect(watch.waitForEnd()).resolves.toBeUndefined()
})

describe('failed runs', () => {
  async function runFailing(name: string, config: Parameters<typeof openFixture>[1] = {}) {
    return await openFixture(name, config).run(toRunRequest(), createIO().io)
  }

  test('a missing program is reported with the key that names it', async () => {
    const result = await openRunner({ command: 'no-such-agent' }).run(toRunRequest(), createIO().io)
    expect(result).toEqual({
      status: 'error',
      retryable: false,
      detail: 'The program "no-such-agent" was not found. Install it, or set runners.mine.command to its full path.',
    })
  })

  test('a missing workspace is not reported as a missing program', async () => {
    const result = await openFixture('deaf').run(toRunRequest({ workspace: '/no/such/folder' }), createIO().io)
    expect(result).toMatchObject({ retryable: false, detail: expect.stringContaining('"/no/such/folder"') })
  })

  test('a file that is not executable is reported as such', async () => {
    const result = await openRunner({ command: findFixture('deaf') }).run(toRunRequest(), createIO().io)
    expect(result).toMatchObject({ retryable: false, detail: expect.stringContaining('may not be executed') })
  })

  test('a prompt that is too long for an argument is an error that names another way to pass it', async () => {
    const runner = openFixture('tell', { args: ['{prompt}'] })
    const result = await runner.run(toRunRequest({ prompt: 'x'.repeat(1_048_576) }), createIO().io)
    expect(result).toMatchObject({ retryable: false, detail: expect.stringContaining('runners.mine.input to "stdin"') })
  })

  test('an exit code is reported with the last lines of stderr: terminal sequences are visible, secrets are hidden', async () => {
    const complaint = 'one\ntwo\nthree\n\u001b[31mkey sk-secret-1 was refused\u001b[0m\n\nfive\nsix\n'
    const result = await runFailing('fail', {
      args: ['1', complaint],
      env: ['AGENT_KEY'],
      vars: { AGENT_KEY: 'sk-secret-1' },
    })
    expect(result).toMatchObject({ status: 'error', retryable: true, quotes: true })
    const { detail } = result as { detail: string }
    expect(detail).toContain('ended with exit code 1: two · three · ␛[31mkey [hidden] was refused␛[0m · five · six')
  })

  test.each([
    ['1', true],
    ['75', true],
    ['2', false],
    ['64', false],
    ['127', false],
  ])('after exit code %s, the failure is retryable: %s', async (code, retryable) => {
    expect(await runFailing('fail', { args: [code, ''] })).toMatchObject({ status: 'error', retryable })
  })

  test('output that is not the expected JSON is an error that names the key to set', async () => {
    const result = await runFailing('fail', {
      args: ['0', '', 'Sure! Here it is.'],
      output: 'json',
      textField: 'reply',
    })
    expect(result).toMatchObject({ retryable: false, detail: expect.stringContaining('runners.mine.output to "text"') })
    expect(JSON.stringify(result)).not.toContain('Sure!')
  })

  test('JSON output without a reply is an error that names the key to set', async () => {
    const result = await runFailing('fail', { args: ['0', '', '{"answer":1}'], output: 'json', textField: 'reply' })
    expect(result).toMatchObject({ retryable: false, detail: expect.stringContaining('Set runners.mine.textField') })
  })
})

describe('probes of a command', () => {
  const { signal } = new AbortController()

  test('a probe returns the version of the command', async () => {
    expect(await openRunner({ profile: 'claude' }).probe?.(signal)).toEqual({
      ok: true,
      detail: '2.1.197 (Claude Code)',
    })
  })

  test('a probe says that the program is missing', async () => {
    const probe = await openRunner({ command: 'no-such-agent' }).probe?.(signal)
    expect(probe).toMatchObject({ ok: false, detail: expect.stringContaining('runners.mine.command') })
  })
})
