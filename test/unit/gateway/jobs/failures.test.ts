import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { SendResult } from '../../../../src/model/channel.ts'
import type { RunResult } from '../../../../src/model/runner.ts'
import { planAgent, createStage, ok, pass, scriptChannel, scriptRunner, type Stage, listSteps } from './stage.ts'

const start = 1_700_000_000_000
let stage: Stage

beforeEach(() => {
  vi.useFakeTimers({ now: start })
  stage = createStage()
})
afterEach(() => {
  vi.useRealTimers()
})

function recordLog() {
  const lines: { fields: object; message: string }[] = []
  const write = (fields: object, message: string) => void lines.push({ fields, message })
  return { lines, log: { debug: write, info: write, warn: write, error: write } }
}

const busy: RunResult = { status: 'error', retryable: true, detail: 'upstream is busy' }

describe('a run that fails', () => {
  test('a run that fails transiently is attempted five times with growing delays, and then its job is dead', async () => {
    const { runner, turns } = scriptRunner(() => busy)
    stage.openWorker({ runner })
    const [id] = await stage.accept(planAgent())
    const startedAt: number[] = []
    for (let n = turns.length; n < 5; n = turns.length) {
      startedAt.push(Date.now() - start)
      expect(await stage.readJob(id)).toMatchObject({ state: 'queued', attempts: n, lastError: 'upstream is busy' })
      expect(await stage.readEvents()).toEqual([])
      while (turns.length === n) await pass(1_000)
    }
    expect(startedAt).toEqual([0, 2_000, 6_000, 14_000])
    expect(turns.map(({ request }) => request.attempt)).toEqual([1, 2, 3, 4, 5])
    expect(await stage.readJob(id)).toMatchObject({ state: 'dead', lastError: 'upstream is busy' })
    await pass(3_600_000)
    expect(turns).toHaveLength(5)
  })

  test('a run that succeeds on a later try is reported once, as a success', async () => {
    let tries = 0
    const { runner } = scriptRunner(() => ((tries += 1) < 3 ? busy : ok('At last')))
    stage.openWorker({ runner })
    const [id] = await stage.accept(planAgent())
    await pass(60_000)
    expect((await stage.readJob(id)).state).toBe('done')
    expect(await stage.readEvents()).toEqual(['Hook github: At last'])
  })

  test('a permanent failure reaches the main session once, and nothing is delivered', async () => {
    const { runner } = scriptRunner(() => ({
      status: 'error',
      retryable: false,
      detail: 'the key was refused',
    }))
    const { channel, sent } = scriptChannel()
    stage.openWorker({ runner, channels: new Map([['console', channel]]) })
    const [id] = await stage.accept(planAgent({ action: { name: 'CI' } }))
    expect(await stage.readJob(id)).toMatchObject({ state: 'dead', lastError: 'the key was refused' })
    expect(await stage.readEvents()).toEqual(['Hook CI (error): the key was refused'])
    await pass(600_000)
    expect(await stage.readEvents()).toHaveLength(1)
    expect(sent).toHaveLength(0)
  })

  test('a run that fails at its last attempt leaves an event in the main session', async () => {
    const { runner } = scriptRunner(() => busy)
    stage.openWorker({ runner, settings: { retry: { attempts: 2, firstMs: 100, capMs: 100, jitter: 0 } } })
    await stage.accept(planAgent())
    await pass(99)
    expect(await stage.readEvents()).toEqual([])
    await pass(1)
    expect(await stage.readEvents()).toEqual(['Hook github (error): upstream is busy'])
  })

  test('the summary of a failure is never trusted, because its reason may quote the service that failed', async () => {
    const { runner } = scriptRunner(() => ({ status: 'error', retryable: false, detail: 'no' }))
    stage.openWorker({ runner })
    await stage.accept(planAgent(), planAgent({ action: { allowUnsafeExternalContent: true } }))
    const events = await stage.store.events({ limit: 9 })
    expect(events.map(({ trusted }) => trusted)).toEqual([false, false])
  })

  test('a dead run that the operator queues again runs again and reports its new end', async () => {
    let isMended = false
    const { runner } = scriptRunner(() =>
      isMended ? ok('Mended') : { status: 'error', retryable: false, detail: 'broken' },
    )
    const worker = stage.openWorker({ runner })
    const [id = ''] = await stage.accept(planAgent())
    isMended = true
    expect(await stage.store.requeue(id)).toBe(true)
    worker.lookForJobs()
    await pass(0)
    const job = await stage.readJob(id)
    expect(job.state).toBe('done')
    expect(listSteps(job)).toEqual(['run done', 'summary done', 'deliver done'])
    expect(await stage.readEvents()).toEqual(['Hook github (error): broken', 'Hook github: Mended'])
  })

  test('a rate-limited run is tried again after the wait that its provider asks for, and uses up no attempt', async () => {
    const { runner, turns } = scriptRunner(() => ({
      status: 'unavailable',
      retryAfterMs: 30_000,
      detail: 'wait',
    }))
    stage.openWorker({ runner })
    const [id] = await stage.accept(planAgent())
    await pass(29_999)
    expect(turns).toHaveLength(1)
    await pass(1)
    expect(turns).toHaveLength(2)
    await pass(10 * 30_000)
    expect(turns.length).toBeGreaterThan(10)
    expect(await stage.readJob(id)).toMatchObject({ state: 'queued', attempts: 0 })
  })

  test('the log says why a step failed and when it is tried again, and after a permanent failure it names the command', async () => {
    const { log, lines } = recordLog()
    const { runner } = scriptRunner(({ attempt }) =>
      attempt === 1 ? busy : { status: 'error', retryable: false, detail: 'The key was refused.' },
    )
    stage.openWorker({ runner, log })
    const [id] = await stage.accept(planAgent())
    await pass(60_000)
    expect(lines.map(({ message }) => message)).toEqual([
      'run failed, and is tried again: upstream is busy',
      `run failed permanently: The key was refused. "hookloom retry ${id}" runs it again.`,
    ])
    expect(lines[0]?.fields).toMatchObject({ step: 'run', attempt: 1, runAt: new Date(start + 2_000).toISOString() })
  })

  test('a reason that quotes outside text is recorded and never logged', async () => {
    const { log, lines } = recordLog()
    const { runner } = scriptRunner(() => ({
      status: 'timeout',
      detail: 'It said: SECRET PAYLOAD',
      quotes: true,
    }))
    stage.openWorker({ runner, log })
    const [id] = await stage.accept(planAgent())
    await pass(0)
    expect((await stage.readJob(id)).lastError).toContain('SECRET PAYLOAD')
    expect(lines).toMatchObject([{ message: expect.stringContaining(`"hookloom show ${id}" shows why.`) }])
    expect(JSON.stringify(lines)).not.toContain('SECRET')
  })

  test.each<[string, SendResult, string]>([
    [
      'is tried again',
      { kind: 'transient', detail: 'It answered 503 to +4915112345678.' },
      'whatsapp: It answered 503 to',
    ],
    ['failed permanently', { kind: 'permanent', detail: 'The token was refused.' }, 'whatsapp: The token was refused.'],
    ['may have arrived', { kind: 'ambiguous', detail: 'There was no answer.' }, 'There was no answer.'],
    ['was sent', { kind: 'sent', id: 'm1' }, ''],
  ])('the recipient of a reply that %s is in the record and not in the log', async (_, result, why) => {
    const { lines, log } = recordLog()
    const to = '+4915112345678'
    const { channel } = scriptChannel(() => result)
    stage.openWorker({ channels: new Map([['whatsapp', channel]]), log })
    const [id] = await stage.accept(planAgent({ action: { channel: 'whatsapp', to } }))
    const { lastError, steps } = await stage.readJob(id)
    expect(`${lastError} ${steps.map(({ detail }) => detail).join()}`).toContain(to)
    expect(JSON.stringify(lines)).not.toContain(to)
    expect(lines.map(({ message }) => message).join()).toContain(why)
  })

  test('the log does not name a recipient to whom a channel cannot post', async () => {
    const { lines, log } = recordLog()
    const { channel } = scriptChannel(undefined, { whyNot: (to) => `to must be a number, found "${to}".` })
    stage.openWorker({ channels: new Map([['whatsapp', channel]]), log })
    const [id] = await stage.accept(planAgent({ action: { channel: 'whatsapp', to: 'Auntie May' } }))
    expect((await stage.readJob(id)).lastError).toContain('Auntie May')
    const failures = lines.filter(({ message }) => message.startsWith('deliver'))
    expect(failures.map(({ message }) => message)).toEqual([expect.stringContaining(`"hookloom show ${id}" shows why`)])
  })

  test('a run whose runner throws is retried; the message of the exception is in the record and never in the log', async () => {
    const { log, lines } = recordLog()
    const { runner, turns } = scriptRunner()
    stage.openWorker({ runner, log })
    const [id] = await stage.accept(planAgent({ action: { message: 'SECRET PAYLOAD' } }))
    turns[0]?.fail(new TypeError('cannot read SECRET PAYLOAD'))
    await pass(0)
    expect((await stage.readJob(id)).lastError).toContain('TypeError: cannot read SECRET PAYLOAD')
    expect(JSON.stringify(lines)).toContain('TypeError')
    expect(JSON.stringify(lines)).not.toContain('SECRET')
    await pass(2_000)
    expect(turns).toHaveLength(2)
  })

  test.each([
    ['nothing', undefined],
    ['a string', 'oops'],
    ['an error of a megabyte', new Error('e'.repeat(1_000_000))],
    ['an error that throws when read', Object.defineProperty(new Error('x'), 'message', { get: () => JSON.parse('') })],
  ])('a runner that throws %s ends only its own attempt', async (_, thrown) => {
    const { runner, turns } = scriptRunner(({ attempt }) => (attempt > 1 ? ok('fine') : undefined))
    stage.openWorker({ runner })
    const [id] = await stage.accept(planAgent())
    turns[0]?.fail(thrown)
    await pass(0)
    const { lastError = '' } = await stage.readJob(id)
    expect(lastError).not.toBe('')
    expect(lastError.length).toBeLessThan(700)
    await pass(2_000)
    expect((await stage.readJob(id)).state).toBe('done')
  })
})

describe('a run that does not end', () => {
  test('a run is aborted at timeoutSeconds, its job is dead, and the main session is told about the timeout', async () => {
    const { runner, turns } = scriptRunner()
    stage.openWorker({ runner })
    const [id] = await stage.accept(planAgent({ action: { timeoutSeconds: 1.5 } }))
    await pass(1_499)
    expect(turns[0]?.io.signal.aborted).toBe(false)
    await pass(1)
    expect(turns[0]?.io.signal.aborted).toBe(true)
    turns[0]?.end({ status: 'timeout', detail: 'Stopped.' })
    await pass(0)
    expect((await stage.readJob(id)).state).toBe('dead')
    expect(await stage.readEvents()).toEqual([
      'Hook github (timeout): The runner "echo" did not end in 1.5 s. Raise timeoutSeconds of the mapping or the request.',
    ])
    await pass(600_000)
    expect(turns).toHaveLength(1)
  })

  test('timeoutSeconds is the limit of all attempts of a run together; waits between them do not count', async () => {
    const { runner, turns } = scriptRunner()
    stage.openWorker({ runner })
    const [id] = await stage.accept(planAgent({ action: { timeoutSeconds: 100 } }))
    await pass(60_000)
    turns[0]?.end(busy)
    await pass(2_000 + 38_000)
    expect(turns).toHaveLength(2)
    expect(turns[1]?.io.signal.aborted).toBe(false)
    await pass(3_000)
    expect(turns[1]?.io.signal.aborted).toBe(true)
    turns[1]?.end({ status: 'timeout', detail: 'Stopped.' })
    await pass(0)
    expect((await stage.readJob(id)).state).toBe('dead')
  })

  test('a run that used up its time in an attempt that failed is not attempted again', async () => {
    const { runner, turns } = scriptRunner()
    stage.openWorker({ runner })
    const [id] = await stage.accept(planAgent({ action: { timeoutSeconds: 60 } }))
    await pass(60_000)
    turns[0]?.end(busy)
    await pass(600_000)
    expect(turns).toHaveLength(1)
    expect(await stage.readJob(id)).toMatchObject({ state: 'dead', lastError: expect.stringContaining('in 60 s') })
  })

  test('a dead run that the operator retries has its whole time again', async () => {
    const { runner, turns } = scriptRunner()
    const worker = stage.openWorker({ runner })
    const [id = ''] = await stage.accept(planAgent({ action: { timeoutSeconds: 100 } }))
    await pass(90_000)
    turns[0]?.end(busy)
    await pass(60_000)
    turns[1]?.end({ status: 'timeout', detail: 'Stopped.' })
    await pass(0)
    expect((await stage.readJob(id)).state).toBe('dead')
    await stage.store.requeue(id)
    worker.lookForJobs()
    await pass(99_000)
    expect(turns[2]?.io.signal.aborted).toBe(false)
  })

  test('the next turn of a session waits until the stopped run has ended or is abandoned', async () => {
    const { runner, turns } = scriptRunner()
    stage.openWorker({ runner })
    const plan = planAgent({ sessionKey: 'hook:one', action: { timeoutSeconds: 10 } })
    await stage.accept(plan, plan, plan)
    await pass(12_000)
    expect(turns).toHaveLength(1)
    turns[0]?.end({ status: 'timeout', detail: 'Stopped.' })
    await pass(0)
    expect(turns).toHaveLength(2)
    await pass(10_000 + 65_000)
    expect(turns).toHaveLength(2)
    await pass(1_000)
    expect(turns).toHaveLength(3)
  })

  test('a run that ends in time is not stopped', async () => {
    const { runner, turns } = scriptRunner()
    stage.openWorker({ runner })
    const [id] = await stage.accept(planAgent({ action: { timeoutSeconds: 100 } }))
    await pass(99_000)
    turns[0]?.end(ok('x'))
    await pass(10_000)
    expect(turns[0]?.io.signal.aborted).toBe(false)
    expect((await stage.readJob(id)).state).toBe('done')
  })

  test('a run that sets no time limit is stopped after ten minutes', async () => {
    const { runner, turns } = scriptRunner()
    stage.openWorker({ runner })
    await stage.accept(planAgent())
    await pass(599_999)
    expect(turns[0]?.io.signal.aborted).toBe(false)
    await pass(1)
    expect(turns[0]?.io.signal.aborted).toBe(true)
  })
})

describe('a reply that cannot be delivered', () => {
  test('a reply without a route makes the job dead, lastError names the key to set, and the run and its summary are kept', async () => {
    const channels = new Map([['slack', scriptChannel().channel]])
    stage.openWorker({ channels, settings: { defaultRoute: undefined } })
    const [id] = await stage.accept(planAgent())
    const job = await stage.readJob(id)
    expect(job).toMatchObject({ state: 'dead', lastError: expect.stringContaining('Set channels.default') })
    expect(listSteps(job)).toEqual(['run done', 'summary done'])
    expect(await stage.readEvents()).toEqual(['Hook github: Done.', expect.stringContaining('(not delivered)')])
  })

  test('a reply is kept if no channel is configured: the job is done, and the step says why', async () => {
    stage.openWorker({ settings: { defaultRoute: undefined } })
    const [id] = await stage.accept(planAgent())
    const job = await stage.readJob(id)
    expect(job).toMatchObject({ state: 'done', lastError: undefined, steps: [{ result: 'Done.' }, {}, {}] })
    expect(job.steps.find(({ name }) => name === 'deliver')).toMatchObject({
      state: 'skipped',
      detail: expect.stringContaining('no channel is configured'),
    })
    expect(await stage.readEvents()).toEqual(['Hook github: Done.'])
  })

  test('a reply that gets a route is delivered by a retry without another run', async () => {
    const { runner, turns } = scriptRunner(() => ok('Once'))
    const { channel, sent } = scriptChannel()
    const settings = { defaultRoute: undefined }
    const channels = new Map([['slack', channel]])
    const worker = stage.openWorker({ runner, channels, settings })
    const [id = ''] = await stage.accept(planAgent())
    await worker.stop({ graceMs: 0 })
    await stage.store.requeue(id)
    stage.openWorker({ runner, channels, settings: { defaultRoute: { channel: 'slack' } } })
    await pass(0)
    expect(turns).toHaveLength(1)
    expect(sent).toMatchObject([{ text: 'Once' }])
    expect(await stage.readEvents()).toHaveLength(2)
  })

  test('a send that certainly failed is repeated under the same nonce, and another run has another nonce', async () => {
    let tries = 0
    const { channel, sent } = scriptChannel(() =>
      (tries += 1) === 1 ? { kind: 'transient', detail: '503' } : { kind: 'sent', id: 'p' },
    )
    stage.openWorker({ channels: new Map([['console', channel]]) })
    await stage.accept(planAgent())
    await pass(2_000)
    await stage.accept(planAgent())
    const nonces = sent.map(({ nonce }) => nonce)
    expect(nonces).toHaveLength(3)
    expect(nonces[0]).toBe(nonces[1])
    expect(nonces[0]).not.toBe(nonces[2])
    expect(nonces[0]).toMatch(/^\w{25}$/)
  })

  test('a refused reply is not sent again', async () => {
    const { channel, sent } = scriptChannel(() => ({ kind: 'permanent', detail: 'chat not found' }))
    stage.openWorker({ channels: new Map([['console', channel]]) })
    const [id] = await stage.accept(planAgent())
    await pass(600_000)
    expect(sent).toHaveLength(1)
    expect(await stage.readJob(id)).toMatchObject({ state: 'dead', lastError: 'console: chat not found' })
  })

  test.each([
    [true, 2, 'done'],
    [false, 1, 'dead'],
  ])('a send without an answer is repeated only if the channel drops repeats (%s)', async (dedupes, sends, state) => {
    let tries = 0
    const hang = () => new Promise<never>(() => {})
    const { channel, sent } = scriptChannel(() => ((tries += 1) === 1 ? hang() : { kind: 'sent', id: 'p' }), {
      dedupes,
    })
    stage.openWorker({ channels: new Map([['console', channel]]) })
    const [id] = await stage.accept(planAgent())
    await pass(70_000)
    expect(sent).toHaveLength(sends)
    expect((await stage.readJob(id)).state).toBe(state)
  })
})
