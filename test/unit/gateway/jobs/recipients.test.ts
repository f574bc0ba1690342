// A reply with several recipients: each has a separate recorded step, and no step depends on another.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Outgoing, SendResult } from '../../../../src/model/channel.ts'
import { planAgent, createStage, ok, pass, scriptChannel, scriptRunner, type Stage, listSteps } from './stage.ts'

let stage: Stage
const sent = (id: string): SendResult => ({ kind: 'sent', id })
const refused: SendResult = { kind: 'permanent', detail: 'chat not found' }
const away: SendResult = { kind: 'transient', detail: 'no connection' }

beforeEach(() => {
  vi.useFakeTimers()
  stage = createStage()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Opens a worker whose channels give these answers. */
function open(answers: Record<string, (message: Outgoing) => SendResult | Promise<SendResult>>) {
  const taken: string[] = []
  const channels = new Map(
    Object.entries(answers).map(([name, answer]) => {
      const send = (message: Outgoing) => {
        taken.push(`${name} ${message.to}: ${message.text}`)
        return answer(message)
      }
      return [name, scriptChannel(send, { pieces: (text) => text.split('|') }).channel] as const
    }),
  )
  const { runner, turns } = scriptRunner(() => ok('one|two'))
  stage.openWorker({ runner, channels })
  return { taken, turns }
}

const planThree = () =>
  planAgent({
    action: {
      channel: 'slack',
      to: 'C1',
      alsoTo: [
        { channel: 'telegram', to: '7' },
        { channel: 'slack', to: 'C1' },
      ],
    },
  })

describe('a reply with three recipients', () => {
  test('a reply with three recipients is sent to each in a separate step, after one turn', async () => {
    let n = 0
    const { taken, turns } = open({ slack: () => sent(`s${(n += 1)}`), telegram: () => sent(`t${(n += 1)}`) })
    const [id] = await stage.accept(planThree())
    await pass(0)
    expect(turns).toHaveLength(1)
    expect(taken).toEqual([
      'slack C1: one',
      'slack C1: two',
      'telegram 7: one',
      'telegram 7: two',
      'slack C1: one',
      'slack C1: two',
    ])
    const job = await stage.readJob(id)
    expect(listSteps(job)).toEqual(['run done', 'summary done', 'deliver done', 'deliver-2 done', 'deliver-3 done'])
    expect(job.steps.map(({ detail = '' }) => detail).slice(2)).toEqual([
      expect.stringContaining('slack C1 as s1, s2 in 2 messages'),
      expect.stringContaining('telegram 7 as t3, t4'),
      expect.stringContaining('slack C1 as s5, s6'),
    ])
    expect(job.posts.map(({ step = 'deliver', part, state }) => [step, part, state])).toEqual(
      ['deliver', 'deliver-2', 'deliver-3'].flatMap((step) => [
        [step, 0, 'sent'],
        [step, 1, 'sent'],
      ]),
    )
    expect(new Set(job.posts.map(({ nonce }) => nonce)).size).toBe(6)
  })

  test('a reply reaches the other recipients at once while one is not available, and is not repeated to them', async () => {
    let isAway = true
    const { taken, turns } = open({ slack: () => (isAway ? away : sent('s')), telegram: () => sent('t') })
    const [id] = await stage.accept(planThree())
    await pass(0)
    expect(listSteps(await stage.readJob(id))).toEqual(['run done', 'summary done', 'deliver-2 done'])
    expect((await stage.readJob(id)).state).toBe('queued')
    isAway = false
    await pass(60_000)
    const job = await stage.readJob(id)
    expect(job.state).toBe('done')
    expect(listSteps(job).toSorted()).toEqual([
      'deliver done',
      'deliver-2 done',
      'deliver-3 done',
      'run done',
      'summary done',
    ])
    expect(taken.filter((text) => text.startsWith('telegram'))).toEqual(['telegram 7: one', 'telegram 7: two'])
    expect(turns).toHaveLength(1)
  })

  test('a run ends as dead if one recipient is refused and the others have the reply, and a retry sends only the missing messages', async () => {
    let answer: SendResult = refused
    let isAway = true
    const { taken, turns } = open({ telegram: () => answer, slack: () => (isAway ? away : sent('s')) })
    const [id = ''] = await stage.accept(planThree())
    await pass(0)
    expect(await stage.readJob(id)).toMatchObject({ state: 'queued', steps: [{ name: 'run' }, { name: 'summary' }] })
    await pass(60_000)
    // this message was refused once, and attempts for another recipient do not repeat it
    expect(taken.filter((text) => text.startsWith('telegram'))).toEqual(['telegram 7: one'])
    isAway = false
    await pass(120_000)
    const dead = await stage.readJob(id)
    expect(dead).toMatchObject({ state: 'dead', lastError: 'telegram 7: chat not found' })
    expect(dead.posts.find(({ step }) => step === 'deliver-2')).toMatchObject({ failed: 'telegram 7: chat not found' })
    expect(await stage.readEvents()).toEqual([
      'Hook github: one|two',
      expect.stringMatching(/^Hook github \(not delivered\): /),
    ])
    answer = sent('t')
    taken.length = 0
    expect(await stage.store.requeue(id)).toBe(true)
    await pass(60_000)
    expect(await stage.readJob(id)).toMatchObject({ state: 'done' })
    expect(taken).toEqual(['telegram 7: one', 'telegram 7: two'])
    expect(turns).toHaveLength(1)
  })

  test('a message that was sent is not repeated if the channel throws at the next message of the reply', async () => {
    let isBroken = true
    const { taken } = open({
      slack: ({ text }) => {
        if (text === 'two' && isBroken) throw new Error('broken')
        return sent('s')
      },
      telegram: () => sent('t'),
    })
    const [id] = await stage.accept(
      planAgent({ action: { channel: 'slack', to: 'C1', alsoTo: [{ channel: 'telegram', to: '7' }] } }),
    )
    await pass(0)
    isBroken = false
    await pass(60_000)
    expect((await stage.readJob(id)).state).toBe('done')
    expect(taken.filter((message) => message === 'slack C1: one')).toHaveLength(1)
    expect(taken.filter((message) => message.startsWith('telegram'))).toHaveLength(2)
  })

  test('a reply reaches a recipient that was away for an hour, although the channel of another one throws each time', async () => {
    let isAway = true
    const { taken } = open({
      slack: () => {
        throw new Error('broken')
      },
      telegram: () => (isAway ? away : sent('t')),
    })
    const [id] = await stage.accept(planThree())
    await pass(3_600_000)
    isAway = false
    await pass(7_200_000)
    const job = await stage.readJob(id)
    expect(listSteps(job)).toContain('deliver-2 done')
    expect(job.state).toBe('dead')
    expect(taken.filter((message) => message === 'slack C1: one')).toHaveLength(10)
  })

  test('a recipient keeps all of its attempts when those of another recipient are used up', async () => {
    let answers: (SendResult | Error)[] = []
    const { taken } = open({
      slack: () => {
        throw new Error('broken')
      },
      telegram: () => {
        const answer = answers.shift() ?? away
        if (answer instanceof Error) throw answer
        return answer
      },
    })
    const [id] = await stage.accept(planThree())
    await pass(60_000)
    expect(taken.filter((message) => message.startsWith('slack'))).toHaveLength(10)
    answers = [new Error('broken'), sent('t'), sent('t')]
    await pass(120_000)
    const job = await stage.readJob(id)
    expect(listSteps(job)).toContain('deliver-2 done')
    expect(job).toMatchObject({ state: 'dead', lastError: expect.stringMatching(/^slack C1: threw/) })
    expect(taken.filter((message) => message.startsWith('slack'))).toHaveLength(10)
  })

  test('a recipient that is available again when the attempts of another one are used up gets five attempts, with growing pauses', async () => {
    const times: number[] = []
    let isAway = true
    open({
      slack: () => {
        throw new Error('broken')
      },
      telegram: () => {
        if (isAway) return away
        times.push(Date.now())
        throw new Error('broken')
      },
    })
    const [id] = await stage.accept(planThree())
    await pass(60_000)
    isAway = false
    await pass(600_000)
    expect(times.slice(1).map((at, index) => at - (times[index] ?? 0))).toEqual([2_000, 4_000, 8_000, 16_000])
    expect((await stage.readJob(id)).state).toBe('dead')
  })

  test('an end of the gateway does not end a reply that waits for one chat when the attempts for another chat are used up', async () => {
    const store = stage.store
    let isKilled = false
    const never = () => new Promise<never>(() => {})
    const dying: typeof store = {
      ...store,
      report: (...given) => (isKilled ? never() : store.report(...given)),
      extend: (...given) => (isKilled ? never() : store.extend(...given)),
    }
    const channel = (answer: () => SendResult | Promise<SendResult>) => scriptChannel(answer).channel
    const broken = channel(() => {
      throw new Error('broken')
    })
    const { runner } = scriptRunner(() => ok('Done.'))
    let isAway = true
    const telegram = channel(() => (isAway ? away : ((isKilled = true), never())))
    stage.openWorker({
      runner,
      store: dying,
      channels: new Map([
        ['slack', broken],
        ['telegram', telegram],
      ]),
    })
    const [id] = await stage.accept(planThree())
    await pass(60_000)
    isAway = false
    await pass(60_000)
    expect(isKilled).toBe(true)
    stage.openWorker({
      runner,
      channels: new Map([
        ['slack', broken],
        ['telegram', channel(() => sent('t'))],
      ]),
    })
    await pass(120_000)
    expect(listSteps(await stage.readJob(id))).toContain('deliver-2 done')
  })

  test('the error of a reply names each recipient that the reply could not reach', async () => {
    open({ telegram: () => refused, slack: () => ({ kind: 'permanent', detail: 'channel_not_found' }) })
    const [id] = await stage.accept(planThree())
    await pass(0)
    expect(await stage.readJob(id)).toMatchObject({
      state: 'dead',
      lastError: 'slack C1: channel_not_found telegram 7: chat not found slack C1: channel_not_found',
    })
  })

  test('a message whose arrival is unknown is not repeated while another recipient is tried again', async () => {
    let slack: SendResult = away
    const { taken } = open({ telegram: () => ({ kind: 'ambiguous', detail: 'reset' }), slack: () => slack })
    const [id] = await stage.accept(planThree())
    await pass(60_000)
    slack = sent('s')
    await pass(120_000)
    expect(taken.filter((text) => text.startsWith('telegram'))).toEqual(['telegram 7: one'])
    const job = await stage.readJob(id)
    expect(job).toMatchObject({ state: 'dead', lastError: expect.stringContaining('not known whether') })
    expect(listSteps(job)).toEqual(['run done', 'summary done', 'deliver done', 'deliver-3 done'])
  })

  test('a reply to a channel that is not configured fails with the reason, and the other recipients still get the reply', async () => {
    const { taken } = open({ slack: () => sent('s') })
    const [id] = await stage.accept(planThree())
    await pass(0)
    expect(taken).toHaveLength(4)
    const job = await stage.readJob(id)
    expect(job).toMatchObject({
      state: 'dead',
      lastError: expect.stringContaining('channels.telegram is not configured'),
    })
    expect(listSteps(job)).toEqual(['run done', 'summary done', 'deliver done', 'deliver-3 done'])
  })

  test('after a kill between two recipients, a reply is not sent again to those that have it', async () => {
    const never = () => new Promise<never>(() => {})
    let isKilled = false
    const { report, extend } = stage.store
    const dying: typeof stage.store = {
      ...stage.store,
      report: (...given) => (isKilled ? never() : report(...given)),
      extend: (...given) => (isKilled ? never() : extend(...given)),
    }
    const texts: string[] = []
    const note = (name: string, then?: () => void) =>
      scriptChannel((message) => (then?.(), texts.push(`${name} ${message.text}`), sent(name))).channel
    const { runner, turns } = scriptRunner(() => ok('Done.'))
    const slack = note('slack')
    stage.openWorker({
      runner,
      store: dying,
      channels: new Map([
        ['slack', slack],
        ['telegram', note('telegram', () => (isKilled = true))],
      ]),
    })
    const [id] = await stage.accept(
      planAgent({ action: { channel: 'slack', to: 'C1', alsoTo: [{ channel: 'telegram', to: '7' }] } }),
    )
    await pass(0)
    expect(listSteps(await stage.readJob(id))).toEqual(['run done', 'summary done', 'deliver done'])
    stage.openWorker({
      runner,
      channels: new Map([
        ['slack', slack],
        ['telegram', note('telegram')],
      ]),
    })
    await pass(120_000)
    expect(await stage.readJob(id)).toMatchObject({ state: 'done' })
    expect(texts).toEqual(['slack Done.', 'telegram Done.', 'telegram Done.'])
    expect(turns).toHaveLength(1)
  })
})
