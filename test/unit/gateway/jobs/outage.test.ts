// An outage of a model or a channel: its jobs wait in their lanes and continue when it is over.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { SendResult } from '../../../../src/model/channel.ts'
import type { Meter } from '../../../../src/model/meter.ts'
import type { RunResult } from '../../../../src/model/runner.ts'
import { planAgent, buildConfig, createStage, ok, pass, scriptChannel, scriptRunner, listSteps } from './stage.ts'

const minute = 60_000
const hour = 60 * minute

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const unreached: RunResult = { status: 'unavailable', detail: 'The model cannot be reached.' }
const refused: SendResult = { kind: 'transient', detail: 'The channel answered 503.' }

describe('a model that is down', () => {
  test('after ten minutes the main session reads once since when the model has not answered, how often it was asked, and until when it will be', async () => {
    vi.setSystemTime('2026-05-04T12:04:00Z')
    const stage = createStage()
    const { runner, turns } = scriptRunner(() => unreached)
    stage.openWorker({ runner })
    const [id] = await stage.accept(planAgent())
    await pass(10 * minute - 1)
    expect(await stage.readEvents()).toEqual([])
    await pass(2 * hour)
    const [event, ...others] = await stage.readEvents()
    expect(others).toEqual([])
    const [, asked = ''] = /after (\d+) attempts/.exec(event ?? '') ?? []
    expect(Number(asked)).toBeGreaterThan(8)
    expect(Number(asked)).toBeLessThan(turns.length)
    expect(event).toMatch(
      /^Hook github \(waiting\): No answer since 2026-05-04 12:04:00Z, after \d+ attempts\. The next attempt is at 2026-05-04 12:[23]\d:\d\dZ, and the last one at 2026-05-05 12:04:00Z\. The model cannot be reached\.$/,
    )
    expect((await stage.readJob(id)).state).toBe('queued')
  })

  test('a run whose model is down for an hour waits without using up an attempt, and is done after the outage', async () => {
    const stage = createStage()
    let isDown = true
    const { runner, turns } = scriptRunner(() => (isDown ? unreached : ok('Back.')))
    stage.openWorker({ runner })
    const [id] = await stage.accept(planAgent())
    await pass(hour)
    const during = await stage.readJob(id)
    expect(during).toMatchObject({
      state: 'queued',
      attempts: 0,
      lastError: unreached.detail,
      failingSince: expect.any(Number),
    })
    expect(during.runAt - Date.now()).toBeGreaterThan(0)
    expect(turns.length).toBeGreaterThan(8)
    const asked = turns.length
    isDown = false
    await pass(15 * minute * 1.2)
    expect(turns.length).toBe(asked + 1)
    expect(await stage.readJob(id)).toMatchObject({ state: 'done', failingSince: undefined })
  })

  test('an outage of a model keeps the order within a session and delays no other session', async () => {
    const stage = createStage()
    let isDown = true
    const { runner, turns } = scriptRunner(({ sessionKey }) =>
      isDown && sessionKey === 'hook:a' ? unreached : ok('Done.'),
    )
    stage.openWorker({ runner })
    const shared = { sessionKey: 'hook:a', sharesSession: false }
    const [first] = await stage.accept(planAgent(shared))
    const [second] = await stage.accept(planAgent(shared))
    const [other] = await stage.accept(planAgent({ sessionKey: 'hook:b' }))
    await pass(minute)
    expect(await stage.readJob(other)).toMatchObject({ state: 'done' })
    expect(await stage.readJob(second)).toMatchObject({ state: 'queued' })
    expect(turns.filter(({ request }) => request.runId === second)).toEqual([])
    isDown = false
    await pass(hour)
    expect(
      turns
        .filter(({ request }) => request.sessionKey === 'hook:a')
        .slice(-2)
        .map(({ request }) => request.runId),
    ).toEqual([first, second])
  })

  test('an outage longer than agents.defaults.retry.for ends the run, and its reason is kept', async () => {
    const stage = createStage(buildConfig({ agents: { defaults: { retry: { for: '1h' } } } }))
    stage.openWorker({ runner: scriptRunner(() => unreached).runner })
    const [id] = await stage.accept(planAgent())
    await pass(59 * minute)
    expect(await stage.readJob(id)).toMatchObject({ state: 'queued' })
    await pass(20 * minute)
    expect(await stage.readJob(id)).toMatchObject({ state: 'dead', lastError: unreached.detail })
  })

  test('an outage of half a day leaves one queued heartbeat, not one for each interval', async () => {
    const stage = createStage(buildConfig({ agents: { defaults: { heartbeat: { every: '30m', prompt: 'Look.' } } } }))
    stage.openWorker({ runner: scriptRunner(() => unreached).runner })
    await stage.openHeartbeats()
    await pass(12 * hour)
    const { jobs } = await stage.store.counts()
    expect(jobs).toMatchObject({ queued: 1, running: 0, done: 0, dead: 0, dropped: 0 })
  })

  test('a retry waits as long as the provider asks, however long the outage has lasted', async () => {
    const stage = createStage()
    const { runner, turns } = scriptRunner(() => ({ ...unreached, retryAfterMs: 10_000 }) as RunResult)
    stage.openWorker({ runner })
    await stage.accept(planAgent())
    await pass(100_000)
    expect(turns).toHaveLength(11)
  })
})

describe('a channel that is down', () => {
  test('a channel that is down for an hour loses no reply, and the model is asked once', async () => {
    const stage = createStage()
    let isDown = true
    const { channel, sent } = scriptChannel(() => (isDown ? refused : { kind: 'sent', id: 'm1' }))
    const { runner, turns } = scriptRunner(() => ok('The build is green.'))
    stage.openWorker({ runner, channels: new Map([['console', channel]]) })
    const [id] = await stage.accept(planAgent())
    await pass(hour)
    expect(await stage.readJob(id)).toMatchObject({ state: 'queued', lastError: expect.stringContaining('503') })
    isDown = false
    await pass(20 * minute)
    expect(listSteps(await stage.readJob(id))).toContain('deliver done')
    expect(turns).toHaveLength(1)
    expect(new Set(sent.map(({ nonce }) => nonce)).size).toBe(1)
  })

  test('a channel that is down for longer than channels.retry.for ends the job', async () => {
    const stage = createStage(buildConfig({ channels: { retry: { for: '10m' } } }))
    stage.openWorker({ channels: new Map([['console', scriptChannel(() => refused).channel]]) })
    const [id] = await stage.accept(planAgent())
    await pass(25 * minute)
    expect(await stage.readJob(id)).toMatchObject({ state: 'dead' })
  })

  test('a reply that failed before a gateway was off for days is tried again after its next failure', async () => {
    const stage = createStage()
    let isDown = true
    const { channel } = scriptChannel(() => (isDown ? refused : { kind: 'sent', id: 'm1' }))
    const channels = new Map([['console', channel]])
    const worker = stage.openWorker({ channels })
    const [id] = await stage.accept(planAgent())
    await pass(0)
    await worker.stop({ graceMs: 0 })
    await pass(3 * 24 * hour)
    stage.openWorker({ channels })
    await pass(minute)
    expect(await stage.readJob(id)).toMatchObject({ state: 'queued', lastError: expect.stringContaining('503') })
    isDown = false
    await pass(20 * minute)
    expect(await stage.readJob(id)).toMatchObject({ state: 'done' })
  })

  test('a reply that failed before a gateway was off for days is dead when its channel stays down', async () => {
    const stage = createStage()
    const channels = new Map([['console', scriptChannel(() => refused).channel]])
    const worker = stage.openWorker({ channels })
    const [id] = await stage.accept(planAgent())
    await pass(0)
    await worker.stop({ graceMs: 0 })
    await pass(3 * 24 * hour)
    stage.openWorker({ channels })
    await pass(hour)
    expect(await stage.readJob(id)).toMatchObject({ state: 'dead' })
  })

  test('a message that may have arrived is tried again only for minutes on a channel that drops repeats only for minutes', async () => {
    const stage = createStage()
    const { channel, sent } = scriptChannel(
      () => (sent.length === 1 ? { kind: 'ambiguous', detail: 'There was no answer.' } : refused),
      { dedupes: 'briefly' },
    )
    stage.openWorker({ channels: new Map([['console', channel]]) })
    const [id] = await stage.accept(planAgent())
    await pass(5 * minute)
    expect(await stage.readJob(id)).toMatchObject({ state: 'dead', posts: [{ state: 'sending' }] })
    expect(sent).toHaveLength(5)
  })

  test('a channel that always drops repeats, and answers 500 for an hour, loses no reply', async () => {
    const stage = createStage()
    let isDown = true
    const { channel } = scriptChannel(
      () => (isDown ? { kind: 'ambiguous', detail: 'It answered 500.' } : { kind: 'sent', id: 'm1' }),
      { dedupes: true },
    )
    stage.openWorker({ channels: new Map([['console', channel]]) })
    const [id] = await stage.accept(planAgent())
    await pass(hour)
    expect(await stage.readJob(id)).toMatchObject({ state: 'queued', attempts: 0 })
    isDown = false
    await pass(hour)
    expect(await stage.readJob(id)).toMatchObject({ state: 'done', posts: [{ state: 'sent', id: 'm1' }] })
  })

  test.each([
    [true, 2],
    [false, 1],
  ])(
    'a channel that may have posted is asked again only with onUnknown "repeat" (%s)',
    async (repeatsUnknown, posts) => {
      const stage = createStage()
      let isFirst = true
      const { channel, sent } = scriptChannel(
        () => {
          if (!isFirst) return { kind: 'sent', id: 'm1' }
          isFirst = false
          return { kind: 'ambiguous', detail: 'There was no answer.' }
        },
        { repeatsUnknown },
      )
      stage.openWorker({ channels: new Map([['console', channel]]) })
      const [id] = await stage.accept(planAgent())
      await pass(minute)
      const job = await stage.readJob(id)
      expect(sent).toHaveLength(posts)
      expect(job.state).toBe(repeatsUnknown ? 'done' : 'dead')
      expect(job.posts[0]?.mayBeTwice).toBe(repeatsUnknown ? true : undefined)
    },
  )
})

describe('fallbacks of a model', () => {
  const models = {
    models: { providers: { a: { kind: 'openai', apiKey: 'k' }, b: { kind: 'anthropic', apiKey: 'k' } } },
  }
  const fallbacks = { model: 'a/one', modelFallbacks: ['b/two', 'b/three'] }
  const config = buildConfig({ ...models, agents: { defaults: fallbacks } })

  test('a turn whose model is unavailable is performed by the first available fallback', async () => {
    const stage = createStage(config)
    const { runner, turns } = scriptRunner(({ model }) => (model === 'b/three' ? ok('Here.') : unreached))
    stage.openWorker({ runner })
    const [id] = await stage.accept(planAgent())
    await pass(1)
    expect(turns.map(({ request }) => request.model)).toEqual(['a/one', 'b/two', 'b/three'])
    expect(await stage.readJob(id)).toMatchObject({
      state: 'done',
      steps: expect.arrayContaining([expect.objectContaining({ result: 'Here.' })]),
    })
  })

  test('no fallback is asked if the model answers, or if it refuses the prompt', async () => {
    for (const result of [ok('Done.'), { status: 'error', retryable: false, detail: 'Refused.' } as const]) {
      const stage = createStage(config)
      const { runner, turns } = scriptRunner(() => result)
      stage.openWorker({ runner })
      await stage.accept(planAgent())
      await pass(1)
      expect(turns.map(({ request }) => request.model)).toEqual(['a/one'])
    }
  })

  test('a permanent failure of a fallback does not end a run that can wait for its model', async () => {
    const stage = createStage(config)
    const wrongKey: RunResult = { status: 'error', retryable: false, detail: 'b refused the key.' }
    let isDown = true
    const { runner } = scriptRunner(({ model }) => (model === 'a/one' ? (isDown ? unreached : ok('Back.')) : wrongKey))
    stage.openWorker({ runner })
    const [id] = await stage.accept(planAgent())
    await pass(minute)
    expect(await stage.readJob(id)).toMatchObject({ state: 'queued', attempts: 0, lastError: unreached.detail })
    isDown = false
    await pass(hour)
    expect(await stage.readJob(id)).toMatchObject({ state: 'done' })
  })
})

test('turns are counted by agent, and those of unlisted agents are counted as *', async () => {
  const stage = createStage(buildConfig({ agents: { list: [{ id: 'main' }, { id: 'helper' }] } }))
  const turns: unknown[] = []
  const meter: Meter = (name, labels) => void (name === 'turns' && turns.push(labels))
  const { runner } = scriptRunner(({ agentId }) =>
    agentId === 'helper' ? { status: 'error', retryable: false, detail: 'No.' } : ok('Done.'),
  )
  stage.openWorker({ runner, meter })
  for (const agentId of ['main', 'helper', 'x-of-a-request']) {
    await stage.accept(planAgent({ agentId, sessionKey: agentId }))
    await pass(1)
  }
  expect(turns).toEqual([
    { agent: 'main', outcome: 'done' },
    { agent: 'helper', outcome: 'dead' },
    { agent: '*', outcome: 'done' },
  ])
})
