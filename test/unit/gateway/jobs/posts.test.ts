// The messages of a reply: all are stored before the first is sent, and they are sent in order.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { AgentPlan } from '../../../../src/gateway/jobs/plan.ts'
import type { SendResult } from '../../../../src/model/channel.ts'
import { planAgent, createStage, ok, pass, scriptChannel, scriptRunner, type Stage, listSteps } from './stage.ts'

let stage: Stage
const split = (text: string) => text.split('|')
const never = () => new Promise<never>(() => {})
const sent = (id: string): SendResult => ({ kind: 'sent', id })

beforeEach(() => {
  vi.useFakeTimers()
  stage = createStage()
})
afterEach(() => {
  vi.useRealTimers()
})

function open(answer: Parameters<typeof scriptChannel>[0], parts: Parameters<typeof scriptChannel>[1] = {}) {
  const scripted = scriptChannel(answer, { pieces: split, ...parts })
  const channels = new Map([['console', scripted.channel]])
  stage.openWorker({ runner: scriptRunner(() => ok('one|two|three')).runner, channels })
  return scripted
}

describe('the messages of a reply', () => {
  test('the messages of a reply are sent in order, each under its own nonce, and the step names every id', async () => {
    let n = 0
    const { sent: taken } = open(() => sent(`m${(n += 1)}`))
    const [id] = await stage.accept(planAgent())
    await pass(0)
    expect(taken.map(({ text }) => text)).toEqual(['one', 'two', 'three'])
    expect(new Set(taken.map(({ nonce }) => nonce)).size).toBe(3)
    const job = await stage.readJob(id)
    expect(job.posts.map(({ state, id: given }) => [state, given])).toEqual([
      ['sent', 'm1'],
      ['sent', 'm2'],
      ['sent', 'm3'],
    ])
    expect(job.steps.at(-1)?.detail).toContain('m1, m2, m3 in 3 messages')
  })

  test('the turn and its summary are recorded before the first message is sent', async () => {
    const recorded: (readonly string[])[] = []
    open(async ({ text, run }) => {
      const { steps, posts } = await stage.readJob(run.id)
      recorded.push([...steps.map(({ name }) => name), ...posts.map(({ state }) => state)])
      return sent(text)
    })
    await stage.accept(planAgent())
    await pass(0)
    expect(recorded).toEqual([
      ['run', 'summary', 'sending', 'waiting', 'waiting'],
      ['run', 'summary', 'sent', 'sending', 'waiting'],
      ['run', 'summary', 'sent', 'sent', 'sending'],
    ])
  })

  test('a reply that meets a rate limit continues where it stopped, with the same nonce, and the attempt does not count', async () => {
    let calls = 0
    const { sent: taken } = open(({ text }) => {
      calls += 1
      return calls === 2 ? { kind: 'rate-limited', retryAfterMs: 30_000, detail: 'slow down' } : sent(text)
    })
    const [id] = await stage.accept(planAgent())
    await pass(0)
    expect(await stage.readJob(id)).toMatchObject({ state: 'queued', attempts: 0 })
    await pass(30_000)
    expect(taken.map(({ text }) => text)).toEqual(['one', 'two', 'two', 'three'])
    expect(taken[1]?.nonce).toBe(taken[2]?.nonce)
    expect((await stage.readJob(id)).state).toBe('done')
  })

  test('a message whose arrival is unknown is marked and reported, and sent again only when a person asks for it', async () => {
    let calls = 0
    const { sent: taken } = open(({ text }) => {
      calls += 1
      return calls === 2 ? { kind: 'ambiguous', detail: 'reset' } : sent(text)
    })
    const [id = ''] = await stage.accept(planAgent())
    await pass(60_000)
    const job = await stage.readJob(id)
    expect(job).toMatchObject({ state: 'dead', lastError: expect.stringContaining('not known whether') })
    expect(job.posts.map(({ state }) => state)).toEqual(['sent', 'unknown', 'waiting'])
    expect(taken).toHaveLength(2)
    expect(await stage.store.requeue(id)).toBe(true)
    await pass(60_000)
    expect(taken.map(({ text }) => text)).toEqual(['one', 'two', 'two', 'three'])
    expect((await stage.readJob(id)).state).toBe('done')
  })

  test('a message that a shutdown cut off is sent again only if the channel drops repeats', async () => {
    const silent = () => new Promise<never>(() => {})
    for (const dedupes of [false, true]) {
      const stage = createStage()
      const first = scriptChannel(silent, { dedupes })
      const worker = stage.openWorker({ channels: new Map([['console', first.channel]]) })
      const [id] = await stage.accept(planAgent())
      await Promise.all([worker.stop({ graceMs: 1_000 }), pass(2_000)])
      const next = scriptChannel(() => sent('x'), { dedupes })
      stage.openWorker({ channels: new Map([['console', next.channel]]) })
      await pass(60_000)
      expect(first.sent).toHaveLength(1)
      expect(next.sent).toHaveLength(dedupes ? 1 : 0)
      expect(await stage.readJob(id)).toMatchObject(
        dedupes ? { state: 'done' } : { state: 'dead', posts: [{ state: 'unknown' }] },
      )
    }
  })

  test('a message that was being sent when the gateway was killed is reported as possibly sent twice, unless the channel drops repeats', async () => {
    for (const dedupes of [false, true]) {
      const stage = createStage()
      let isKilled = false
      const { report, extend } = stage.store
      // the process ends while it sends the second message: nothing more is recorded
      const dying: typeof stage.store = {
        ...stage.store,
        report: (...given) => (isKilled ? never() : report(...given)),
        extend: (...given) => (isKilled ? never() : extend(...given)),
      }
      const first = scriptChannel(({ text }) => ((isKilled = text === 'two'), sent(text)), {
        pieces: split,
        dedupes,
      })
      const { runner } = scriptRunner(() => ok('one|two|three'))
      stage.openWorker({ runner, store: dying, channels: new Map([['console', first.channel]]) })
      const [id] = await stage.accept(planAgent())
      await pass(0)
      expect((await stage.readJob(id)).posts.map(({ state }) => state)).toEqual(['sent', 'sending', 'waiting'])
      const next = scriptChannel(({ text }) => sent(text), { pieces: split, dedupes })
      stage.openWorker({ runner, channels: new Map([['console', next.channel]]) })
      await pass(60_000)
      const job = await stage.readJob(id)
      expect(job.state).toBe('done')
      expect(next.sent.map(({ nonce }) => nonce)[0]).toBe(first.sent[1]?.nonce)
      expect(job.posts.map(({ mayBeTwice = false }) => mayBeTwice)).toEqual([false, !dedupes, false])
      const told = expect.stringContaining('Message 2 may have arrived twice')
      expect(job.steps.at(-1)?.detail).toEqual(dedupes ? expect.not.stringContaining('twice') : told)
    }
  })

  test('a message that the channel certainly did not accept is sent again without a warning', async () => {
    const answers: SendResult[] = [
      { kind: 'transient', detail: 'down' },
      { kind: 'rate-limited', detail: 'slow down' },
      { kind: 'transient', detail: 'down' },
    ]
    open(() => answers.shift() ?? sent('x'))
    const [id] = await stage.accept(planAgent())
    await pass(0)
    expect((await stage.readJob(id)).posts.map(({ state }) => state)).toEqual(['waiting', 'waiting', 'waiting'])
    await pass(600_000)
    const job = await stage.readJob(id)
    expect(job.state).toBe('done')
    expect(job.posts.filter(({ mayBeTwice }) => mayBeTwice)).toEqual([])
  })

  test('a message that was not sent because the gateway stopped first is sent later without a warning', async () => {
    const { report } = stage.store
    let worker: ReturnType<Stage['openWorker']> | undefined
    let stopped: Promise<void> | undefined
    const stopping: typeof report = async (job, what) => {
      if (what.posts !== undefined && stopped === undefined) stopped = worker?.stop({ graceMs: 0 })
      await pass(1)
      return report(job, what)
    }
    const { channel, sent: taken } = scriptChannel(() => sent('x'))
    worker = stage.openWorker({
      store: { ...stage.store, report: stopping },
      channels: new Map([['console', channel]]),
    })
    const [id] = await stage.accept(planAgent())
    await pass(10_000)
    await stopped
    expect(taken).toEqual([])
    expect(await stage.readJob(id)).toMatchObject({ state: 'queued', posts: [{ state: 'waiting' }] })
    stage.openWorker({ channels: new Map([['console', channel]]) })
    await pass(60_000)
    expect((await stage.readJob(id)).posts).toMatchObject([{ state: 'sent' }])
    expect((await stage.readJob(id)).posts[0]).not.toHaveProperty('mayBeTwice')
  })

  test('a reply continues on the channel where it began, even if the default has changed', async () => {
    let isDown = true
    const first = scriptChannel(
      ({ text }) => (text === 'two' && isDown ? { kind: 'transient', detail: 'down' } : sent(text)),
      { pieces: split },
    )
    const other = scriptChannel(() => sent('x'), { pieces: split })
    const channels = new Map([
      ['console', first.channel],
      ['slack', other.channel],
    ])
    const settings = { defaultRoute: { channel: 'console' } as { channel: 'console' | 'slack' } }
    stage.openWorker({ runner: scriptRunner(() => ok('one|two|three')).runner, channels, settings })
    const [id] = await stage.accept(planAgent())
    await pass(0)
    settings.defaultRoute = { channel: 'slack' }
    isDown = false
    await pass(10_000)
    expect((await stage.readJob(id)).state).toBe('done')
    expect(other.sent).toEqual([])
    expect(first.sent.map(({ text }) => text)).toEqual(['one', 'two', 'two', 'three'])
  })

  describe('the channel "last"', () => {
    const toSlack = { channel: 'slack', to: 'C1' } as const
    const isMain = { sessionKey: 'main' }

    /** Accepts the turns, then a turn of a hook that names no channel. Returns where the reply of the hook went. */
    async function findLast(...turns: readonly AgentPlan[]): Promise<string> {
      const slack = scriptChannel(() => sent('x'))
      const fallback = scriptChannel(() => sent('y'))
      const channels = new Map([
        ['slack', slack.channel],
        ['console', fallback.channel],
      ])
      stage.openWorker({ channels })
      for (const turn of turns) {
        await stage.accept(turn)
        await pass(0)
      }
      const before = slack.sent.length
      await stage.accept(planAgent())
      await pass(0)
      return slack.sent.length === before ? 'the default' : `slack ${slack.sent.at(-1)?.to}`
    }

    test('the channel "last" means the channel and recipient that the last turn of the main session named', async () => {
      expect(await findLast(planAgent({ ...isMain, action: toSlack }))).toBe('slack C1')
    })

    test('the channel "last" does not change after a turn that named no recipient', async () => {
      expect(await findLast(planAgent({ ...isMain, action: toSlack }), planAgent(isMain))).toBe('slack C1')
    })

    test.each([
      ['a request or a mapping with another session key', { action: toSlack }],
      ['a run that is only filed under the default key', { ...isMain, sharesSession: true, action: toSlack }],
      ['a turn of the main session that named no recipient', { ...isMain, action: { channel: 'slack' } }],
      ['a turn of the main session that named no channel', { ...isMain, action: { to: 'C1' } }],
    ] as const)('the last recipient is not changed by %s', async (_, turn) => {
      expect(await findLast(planAgent(turn))).toBe('the default')
    })

    test('the channel "last" of one agent does not depend on the main session of another', async () => {
      expect(await findLast(planAgent({ ...isMain, agentId: 'ops', action: toSlack }))).toBe('the default')
    })
  })
})

test('a forwarded run is summarised as forwarded, and the gateway posts no reply', async () => {
  const { channel, sent: taken } = scriptChannel()
  const { runner } = scriptRunner(() => ({
    status: 'forwarded',
    id: 'r7',
    detail: 'forwarded to OpenClaw as r7',
  }))
  stage.openWorker({ runner, channels: new Map([['console', channel]]) })
  const [id] = await stage.accept(planAgent())
  await pass(0)
  expect(listSteps(await stage.readJob(id))).toEqual(['run forwarded', 'summary done', 'deliver skipped'])
  expect(taken).toEqual([])
  expect(await stage.readEvents()).toEqual(['Hook github (forwarded): forwarded to OpenClaw as r7'])
})

test('the next turn of a persistent session gives the runner the state from the last turn', async () => {
  let turn = 0
  const { runner, turns } = scriptRunner(() => ({ ...ok('x'), state: { thread: (turn += 1) } }))
  stage.openWorker({ runner })
  const persistent = planAgent({ sessionMode: 'persistent', sessionKey: 'hook:chat' })
  await stage.accept(persistent)
  await pass(0)
  await stage.accept(persistent, planAgent({ sessionKey: 'hook:other' }))
  await pass(0)
  const listStates = (key: string) =>
    turns.flatMap(({ request }) => (request.sessionKey === key ? [request.state] : []))
  expect(listStates('hook:chat')).toEqual([undefined, { thread: 1 }])
  expect(listStates('hook:other')).toEqual([undefined])
})

test('a job dies if the gateway ended five times during it, and its error says so', async () => {
  const { runner, turns } = scriptRunner(() => ok('x'))
  const [id] = await stage.accept(planAgent())
  for (let n = 0; n < 5; n += 1) {
    await stage.store.claim({ limit: 1, leaseMs: 1_000 })
    await pass(2_000)
  }
  stage.openWorker({ runner })
  await pass(2_000)
  expect(turns).toEqual([])
  expect(await stage.readJob(id)).toMatchObject({
    state: 'dead',
    lastError: expect.stringContaining('The gateway ended during attempt 5'),
  })
})
