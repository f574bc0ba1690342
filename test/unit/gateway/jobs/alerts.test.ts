// The messages to the operator about dead jobs and parked deliveries.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { SendResult } from '../../../../src/model/channel.ts'
import { planAgent, buildConfig, createStage, ok, pass, scriptChannel, scriptRunner, type Stage } from './stage.ts'

const minute = 60_000
const hour = 60 * minute
const config = buildConfig({ hooks: { alerts: { channel: 'console', to: 'ops' } } })

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const noKey = { status: 'error', retryable: false, detail: 'The key was refused.' } as const
const quiet = { deliver: false }

function openDying(stage: Stage, answer?: () => SendResult) {
  const { channel, sent } = scriptChannel(answer)
  const counted: unknown[] = []
  const logged: string[] = []
  const warned: string[] = []
  stage.openWorker({
    runner: scriptRunner(() => noKey).runner,
    channels: new Map([['console', channel]]),
    meter: (name, labels) => void counted.push({ name, ...labels }),
    log: {
      debug() {},
      info() {},
      warn: (_, message) => void warned.push(message),
      error: (_, message) => void logged.push(message),
    },
  })
  return { sent, counted, logged, warned }
}

describe('a job that dies', () => {
  test('a job that dies sends one message an hour for its cause to hooks.alerts', async () => {
    const stage = createStage(config)
    const { sent } = openDying(stage)
    for (let count = 0; count < 3; count += 1) await stage.accept(planAgent({ action: quiet }))
    await pass(minute)
    expect(sent).toMatchObject([
      { to: 'ops', text: expect.stringMatching(/"github" failed permanently: The key was refused\./) },
    ])
    await pass(hour)
    await stage.accept(planAgent({ action: quiet }))
    await pass(minute)
    expect(sent).toHaveLength(2)
    expect(sent[1]?.text).toContain('since the last message: 3.')
  })

  test('a job that dies is counted and logged as an error', async () => {
    const stage = createStage(config)
    const { counted, logged } = openDying(stage)
    await stage.accept(planAgent({ action: quiet }))
    expect(counted).toContainEqual({ name: 'failures', what: 'job' })
    expect(logged).toMatchObject([expect.stringContaining('run failed permanently')])
  })

  test('a job that dies after a restart within the hour sends no second message', async () => {
    const stage = createStage(config)
    const { sent } = openDying(stage)
    await stage.accept(planAgent({ action: quiet }))
    await pass(minute)
    stage.restartAlerts()
    await stage.accept(planAgent({ action: quiet }))
    await pass(minute)
    expect(sent).toHaveLength(1)
  })

  test('a job that dies sends nothing without hooks.alerts', async () => {
    const stage = createStage()
    const { sent } = openDying(stage)
    await stage.accept(planAgent({ action: quiet }))
    await pass(minute)
    expect(sent).toEqual([])
  })

  test('an alert about a failure does not quote outside text of its reason', async () => {
    const stage = createStage(config)
    const { channel, sent } = scriptChannel()
    const runner = scriptRunner(() => ({ ...noKey, detail: 'It said: attack', quotes: true })).runner
    stage.openWorker({ runner, channels: new Map([['console', channel]]) })
    await stage.accept(planAgent({ action: quiet }))
    await pass(minute)
    expect(sent).toHaveLength(1)
    expect(sent[0]?.text).not.toContain('attack')
  })

  test('an alert about a failure names the hook, and not the name of the run, which a payload may have chosen', async () => {
    const stage = createStage(config)
    const { sent } = openDying(stage)
    await stage.accept(planAgent({ action: { ...quiet, name: '[Renew the key](https://attack.example)' } }))
    await pass(minute)
    expect(sent).toHaveLength(1)
    expect(sent[0]?.text).toContain('of the hook "github" failed permanently')
    expect(sent[0]?.text).not.toContain('attack')
  })

  test('a dead job of a delivery leaves an event in the main session, and a dead heartbeat leaves no event', async () => {
    const stage = createStage(buildConfig({ agents: { defaults: { heartbeat: { prompt: 'Look.' } } } }))
    const { channel } = scriptChannel(() => ({ kind: 'permanent', detail: 'The token was refused.' }))
    let isDown = false
    const runner = scriptRunner(() => (isDown ? noKey : ok('Green.'))).runner
    stage.openWorker({ runner, channels: new Map([['console', channel]]) })
    await stage.accept(planAgent())
    expect(await stage.readEvents()).toEqual([
      'Hook github: Green.',
      expect.stringMatching(/^Hook github \(not delivered\): .*The token was refused\./),
    ])
    isDown = true
    await stage.openHeartbeats()
    await pass(hour / 2)
    expect((await stage.store.counts()).jobs).toMatchObject({ dead: 2 })
    expect(await stage.readEvents()).toHaveLength(2)
  })
})

describe('an alert', () => {
  test('an alert waits for a channel that is down', async () => {
    const stage = createStage(config)
    let isDown = true
    const { sent } = openDying(stage, () =>
      isDown ? { kind: 'transient', detail: '503' } : { kind: 'sent', id: 'a1' },
    )
    await stage.accept(planAgent({ action: quiet }))
    await pass(hour)
    isDown = false
    await pass(20 * minute)
    const tries = sent.length
    await pass(5 * hour)
    expect(sent).toHaveLength(tries)
    expect((await stage.store.counts()).jobs).toMatchObject({ queued: 0, running: 0, done: 1, dead: 1, dropped: 0 })
  })

  test('an alert that dies causes no other alert', async () => {
    const stage = createStage(config)
    const { sent, counted } = openDying(stage, () => ({ kind: 'permanent', detail: 'The token was refused.' }))
    await stage.accept(planAgent({ action: quiet }))
    await pass(3 * hour)
    expect(sent).toHaveLength(1)
    expect(counted).toContainEqual({ name: 'failures', what: 'alert' })
    expect((await stage.store.counts()).jobs).toMatchObject({ queued: 0, dead: 2 })
  })
})

describe('a delivery that is parked', () => {
  const parked = { deliveryId: 'd1', hook: 'github', waitsFor: 'pull-request.ts', hops: 0 }

  test('several parked deliveries of one module send one message and leave one event within an hour', async () => {
    const stage = createStage(config)
    const { sent } = openDying(stage)
    for (const deliveryId of ['d1', 'd2', 'd3']) stage.alerts().reportParked({ ...parked, deliveryId })
    await pass(minute)
    const text =
      'Hookloom: a delivery of the hook "github" is parked, because pull-request.ts failed. "hookloom show d1" shows the reason.'
    expect(sent).toMatchObject([{ to: 'ops', text }])
    expect(await stage.readEvents()).toEqual([text])
  })

  test('a parked delivery leaves an event even without hooks.alerts', async () => {
    const stage = createStage()
    const { sent } = openDying(stage)
    stage.alerts().reportParked(parked)
    await pass(minute)
    expect(sent).toEqual([])
    expect(await stage.readEvents()).toHaveLength(1)
  })

  test('parked deliveries of a hundred modules send only twenty messages', async () => {
    const stage = createStage(config)
    const { sent } = openDying(stage)
    for (let module = 0; module < 100; module += 1)
      stage.alerts().reportParked({ ...parked, waitsFor: `m${module}.ts` })
    await pass(minute)
    expect(sent).toHaveLength(20)
  })

  test('a hundred hook names of requests send only five of the twenty messages, so that other causes are heard', async () => {
    const stage = createStage(config)
    const { sent, warned } = openDying(stage)
    for (let hook = 0; hook < 100; hook += 1)
      stage.alerts().reportParked({ ...parked, hook: `h${hook}`, waitsFor: undefined })
    stage.alerts().reportParked(parked)
    await pass(minute)
    expect(sent).toHaveLength(6)
    expect(sent[4]?.text).toContain('This is the 5th cause of one sender, module, agent or budget within an hour.')
    expect(sent[5]?.text).toContain('because pull-request.ts failed')
    expect(warned).toEqual([expect.stringContaining('alerts were sent for 5 causes of one sender')])
  })

  test('a sender with many causes sends only five messages, and another sender is heard', async () => {
    const stage = createStage(config)
    const { sent } = openDying(stage)
    const alert = (sender: string, cause: number) =>
      stage.alerts().alert({ cause: `refused ${sender} ${cause}`, subject: `sender ${sender}`, text: sender })
    const first = await Promise.all(Array.from({ length: 30 }, (_, cause) => alert('noisy', cause)))
    expect(first.filter((isQueued) => isQueued)).toHaveLength(5)
    expect(await alert('other', 0)).toBe(true)
    await pass(minute)
    expect(sent.map(({ text }) => text.slice(0, 5))).toEqual([...Array.from({ length: 5 }, () => 'noisy'), 'other'])
  })

  test('the last message of an hour, and no other one, says that further causes get none', async () => {
    const stage = createStage(config)
    const { sent } = openDying(stage)
    for (let module = 0; module < 30; module += 1) stage.alerts().reportParked({ ...parked, waitsFor: `m${module}.ts` })
    await pass(minute)
    const last = sent.filter(({ text }) => text.includes('Further ones get no message'))
    expect(last).toHaveLength(1)
    expect(last[0]?.text).toContain('because m19.ts failed')
  })

  test('one warning an hour says that further causes get no message', async () => {
    const stage = createStage(config)
    const { sent, warned } = openDying(stage)
    const report = (name: string) => stage.alerts().reportParked({ ...parked, waitsFor: `${name}.ts` })
    for (let module = 0; module < 20; module += 1) report(`m${module}`)
    expect(warned).toEqual([])
    for (let module = 20; module < 30; module += 1) report(`m${module}`)
    expect(warned).toEqual([expect.stringContaining('20 causes')])
    await pass(hour + minute)
    for (let module = 0; module < 30; module += 1) report(`m${module}`)
    expect(warned).toHaveLength(2)
    await pass(minute)
    expect(sent).toHaveLength(40)
  })

  test('a cause of an earlier hour does not take one of the twenty messages of this hour', async () => {
    const stage = createStage(config)
    const { sent } = openDying(stage)
    const report = (name: string) => stage.alerts().reportParked({ ...parked, waitsFor: `${name}.ts` })
    report('m0')
    await pass(hour / 2)
    for (let module = 1; module < 20; module += 1) report(`m${module}`)
    await pass(hour / 2 + minute)
    report('m0')
    await pass(minute)
    expect(sent).toHaveLength(21)
  })
})
