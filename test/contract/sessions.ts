import { describe, expect, test } from 'vitest'
import type { ClaimedJob, Step } from '../../src/model/job.ts'
import type { JobReport } from '../../src/store/records.ts'
import { claimOne } from './jobs.ts'
import { newDelivery, newEvent, newJob, planned } from './stage.ts'
import type { Stage } from './store.ts'

const ran: Step = { name: 'run', state: 'done', at: 1, result: 'All good' }
const main = { agentId: 'main', sessionKey: 'main' }

export function describeSessions(stage: () => Stage): void {
  /** Appends system events. Returns all events that wait in the main session. */
  async function appendEvents(...events: Parameters<typeof newEvent>[0][]) {
    const { store, clock } = stage()
    const jobs = [newJob({ state: 'done', events: events.map((event) => newEvent(event)) })]
    await store.append(newDelivery({ at: clock(), jobs }))
    return store.waitingEvents({ ...main, limit: 9 })
  }

  /** Appends system events. Returns those that wait in the main session. */
  async function appendAndRead(...events: Parameters<typeof newEvent>[0][]) {
    return (await appendEvents(...events)).events
  }

  /** Stores and claims a job of this session. */
  async function claimTurn(sessionKey: string): Promise<ClaimedJob> {
    const { store, clock } = stage()
    await store.append(newDelivery({ at: clock(), jobs: [newJob({ planned: planned(sessionKey) })] }))
    return claimOne(store)
  }

  describe('the waiting events of a session', () => {
    test('the waiting events of a session are listed oldest first, and counted beyond the limit of the list', async () => {
      const { store } = stage()
      const texts = ['one', 'two', 'three'].map((text) => ({ text }))
      const all = await appendEvents({ text: 'else', sessionKey: 'other' }, ...texts, { agentId: 'other' })
      expect(all.events.map(({ text }) => text)).toEqual(['one', 'two', 'three'])
      expect(all).toMatchObject({ count: 3, wakes: false })
      const first = await store.waitingEvents({ ...main, limit: 2 })
      expect(first.events.map(({ text }) => text)).toEqual(['one', 'two'])
      expect(first).toMatchObject({ count: 3, events: all.events.slice(0, 2) })
      expect(await store.waitingEvents({ ...main, limit: 0 })).toMatchObject({ events: [], count: 3 })
    })

    test('a session without events has no waiting events, even if another session has some', async () => {
      await appendEvents({ sessionKey: 'other' })
      const nothing = { events: [], count: 0, wakes: false }
      expect(await stage().store.waitingEvents({ ...main, limit: 9 })).toEqual(nothing)
    })

    test('a session asks for a turn at once if any waiting event does, even one beyond the limit', async () => {
      const { store } = stage()
      expect(await appendEvents({}, { sessionKey: 'other', wakes: true })).toMatchObject({ wakes: false })
      const all = await appendEvents({ wakes: true })
      expect(all).toMatchObject({ wakes: true, events: [{ wakes: false }, { wakes: true }] })
      expect(await store.waitingEvents({ ...main, limit: 1 })).toMatchObject({
        wakes: true,
        events: [{ wakes: false }],
      })
    })
  })

  describe('wokenForMs()', () => {
    test('wokenForMs() is the age of the newest unconsumed event of a session that asks for a turn', async () => {
      const { store, clock } = stage()
      expect(await store.wokenForMs(main)).toBeUndefined()
      await appendEvents({ wakes: true })
      clock.advance(100)
      const waiting = await appendAndRead({ wakes: true })
      clock.advance(10)
      await appendEvents({}, { sessionKey: 'other', wakes: true })
      expect(await store.wokenForMs(main)).toBe(10)
      await store.report(await claimTurn('main'), { consumed: waiting.slice(1, 2) })
      expect(await store.wokenForMs(main)).toBe(110)
    })
  })

  describe('a turn and its events', () => {
    test('a turn consumes the events that it was shown, and the others stay unconsumed', async () => {
      const { store } = stage()
      await appendEvents({ text: 'one' }, { text: 'else', sessionKey: 'other' }, { text: 'two' }, { text: 'three' })
      const [one] = (await store.waitingEvents({ ...main, limit: 1 })).events
      await store.report(await claimTurn('main'), {
        steps: [ran],
        consumed: one ? [one] : [],
        outcome: { kind: 'done' },
      })
      const left = await store.waitingEvents({ ...main, limit: 9 })
      expect(left.events.map(({ text }) => text)).toEqual(['two', 'three'])
      // not the first event: an earlier event may become visible only after the turn has read the others
      const consumed = left.events.slice(1)
      await store.report(await claimTurn('main'), { steps: [ran], consumed, outcome: { kind: 'done' } })
      expect((await store.waitingEvents({ ...main, limit: 9 })).events.map(({ text }) => text)).toEqual(['two'])
    })

    test('a turn consumes events by id: no event that the turn was not shown, and no event of another session', async () => {
      const { store, clock } = stage()
      const consumed = await appendAndRead({ text: 'old' }, { text: 'else', sessionKey: 'other' })
      await appendEvents({ text: 'new', wakes: true })
      const turn = await claimTurn('main')
      clock.advance(7)
      const other = await store.waitingEvents({ ...main, sessionKey: 'other', limit: 9 })
      const shown = [...consumed, ...other.events]
      await store.report(turn, { steps: [ran], consumed: shown, outcome: { kind: 'done' } })
      expect(await store.waitingEvents({ ...main, limit: 9 })).toMatchObject({ events: [{ text: 'new' }], count: 1 })
      expect(await store.waitingEvents({ ...main, sessionKey: 'other', limit: 9 })).toMatchObject({ count: 1 })
      expect((await store.events({ limit: 9 })).map(({ text, consumedAt }) => [text, consumedAt])).toEqual([
        ['old', clock()],
        ['else', undefined],
        ['new', undefined],
      ])
    })

    test('a turn does not consume an event that arrived after those that it was shown were swept', async () => {
      const { store, clock } = stage()
      const turn = await claimTurn('main')
      const consumed = await appendAndRead({ text: 'old' })
      clock.advance(1000)
      await store.sweep(500)
      await appendEvents({ text: 'new' })
      await store.report(turn, { steps: [ran], consumed })
      expect(await store.waitingEvents({ ...main, limit: 9 })).toMatchObject({ events: [{ text: 'new' }] })
    })

    test('a turn does not consume an event twice: consumedAt does not change', async () => {
      const { store, clock } = stage()
      const consumed = await appendAndRead({})
      const [first, second] = [await claimTurn('main'), await claimTurn('main')]
      const at = clock()
      await store.report(first, { steps: [ran], consumed })
      clock.advance(7)
      await store.report(second, { steps: [ran], consumed })
      expect(await store.events({ limit: 9 })).toMatchObject([{ consumedAt: at }])
    })

    test('a turn that lost its lease consumes and stores nothing', async () => {
      const { store, clock } = stage()
      const consumed = await appendAndRead({})
      const stale = await claimTurn('main')
      clock.advance(30_000)
      const held = await claimOne(store)
      const rows = { consumed, runnerState: 'kept', recipient: { channel: 'slack', to: 'C1' } } as const
      expect(await store.report(stale, { steps: [ran], ...rows })).toBe(false)
      expect(await store.waitingEvents({ ...main, limit: 9 })).toMatchObject({ count: 1 })
      expect(await store.session(main)).toMatchObject({ runnerState: undefined, recipient: undefined })
      expect(await store.report(held, { steps: [ran], ...rows })).toBe(true)
      expect(await store.waitingEvents({ ...main, limit: 9 })).toMatchObject({ count: 0 })
    })

    test('a turn whose step is already stored consumes and changes nothing', async () => {
      const { store } = stage()
      const turn = await claimTurn('main')
      await store.report(turn, { steps: [ran], runnerState: 'first', recipient: { channel: 'slack', to: 'C1' } })
      const consumed = await appendAndRead({})
      const again = { consumed, runnerState: 'second', recipient: { channel: 'signal', to: '1' } } as const
      expect(await store.report(turn, { steps: [ran], ...again })).toBe(true)
      expect(await store.waitingEvents({ ...main, limit: 9 })).toMatchObject({ count: 1 })
      expect(await store.session(main)).toMatchObject({
        runnerState: 'first',
        recipient: { channel: 'slack', to: 'C1' },
      })
    })
  })

  describe('a session', () => {
    test('a session exists once an event is stored in it, and not before', async () => {
      const { store, clock } = stage()
      expect(await store.session(main)).toBeUndefined()
      await appendEvents({})
      expect(await store.session(main)).toEqual({
        ...main,
        updatedAt: clock(),
        recipient: undefined,
        runnerState: undefined,
      })
      expect(await store.session({ ...main, agentId: 'other' })).toBeUndefined()
    })

    test('a session keeps its runner state after a report without one, until null deletes it', async () => {
      const { store, clock } = stage()
      const turn = await claimTurn('hook:pr:1')
      const name = { agentId: 'main', sessionKey: 'hook:pr:1' }
      const state = { id: 'abc', turns: [1, 2], open: true }
      await store.report(turn, { steps: [ran], runnerState: state })
      expect(await store.session(name)).toMatchObject({ updatedAt: clock(), runnerState: state })
      await store.report(turn, { steps: [{ ...ran, name: 'summary' }] })
      expect(await store.session(name)).toMatchObject({ runnerState: state })
      expect(await store.session(main)).toBeUndefined()
      await store.report(turn, { steps: [{ ...ran, name: 'deliver' }], runnerState: null })
      expect(await store.session(name)).toMatchObject({ runnerState: undefined })
    })

    test('the session "main" has the recipient of the last reply from any session of its agent', async () => {
      const { store, clock } = stage()
      const turn = await claimTurn('hook:pr:1')
      await store.report(turn, { steps: [ran], recipient: { channel: 'slack', to: 'C1' } })
      expect(await store.session(main)).toMatchObject({ recipient: { channel: 'slack', to: 'C1' }, updatedAt: clock() })
      expect(await store.session({ ...main, sessionKey: 'hook:pr:1' })).toBeUndefined()
      await store.report(turn, {
        steps: [{ ...ran, name: 'deliver' }],
        recipient: { channel: 'console', to: undefined },
      })
      expect(await store.sessions({ limit: 9 })).toEqual([
        { ...main, updatedAt: clock(), recipient: { channel: 'console', to: undefined } },
      ])
    })

    test('a session keeps recipient and runner state until it is swept, whatever else is stored in it', async () => {
      const { store, clock } = stage()
      const turn = await claimTurn('main')
      const kept = { recipient: { channel: 'slack', to: 'C1' }, runnerState: 7 } as const
      await store.report(turn, { steps: [ran], ...kept, outcome: { kind: 'done' } })
      clock.advance(5)
      await appendEvents({})
      expect(await store.session(main)).toMatchObject({ ...kept, updatedAt: clock() })
      await store.sweep(-1)
      expect(await store.session(main)).toBeUndefined()
      await appendEvents({})
      expect(await store.session(main)).toMatchObject({ recipient: undefined, runnerState: undefined })
    })

    describe('the bounds of a transcript', () => {
      const name = { agentId: 'main', sessionKey: 'hook:pr:1' }
      const toTexts = async (sessionKey = 'hook:pr:1') =>
        (await stage().store.messages({ ...name, sessionKey, limit: 99 })).map(({ text }) => text)

      /** Stores an exchange in a session; a second passes after it. */
      async function say(question: string, report: Partial<JobReport> = {}, key = 'hook:pr:1') {
        const { store, clock } = stage()
        const messages = [
          { role: 'user', text: question },
          { role: 'assistant', text: `${question}!` },
        ] as const
        await store.report(await claimTurn(key), { steps: [ran], messages, ...report, outcome: { kind: 'done' } })
        clock.advance(1_000)
      }

      test('a turn deletes the exchanges beyond the bounds that it reports, in its own session only', async () => {
        for (const each of ['a', 'b', 'c']) await say(each)
        await say('other', {}, 'hook:pr:2')
        await say('d', { keeps: { messages: 5, bytes: 1_000 } })
        expect(await toTexts()).toEqual(['c', 'c!', 'd', 'd!'])
        expect(await toTexts('hook:pr:2')).toEqual(['other', 'other!'])
      })

      test('the bounds of a transcript count bytes, and never keep half an exchange', async () => {
        for (const each of ['字', '字', 'c']) await say(each)
        await say('d', { keeps: { messages: 99, bytes: 12 } })
        expect(await toTexts()).toEqual(['c', 'c!', 'd', 'd!'])
        await say('e', { keeps: { messages: 99, bytes: 13 } })
        expect(await toTexts()).toEqual(['c', 'c!', 'd', 'd!', 'e', 'e!'])
      })

      test('trimTranscript() deletes the older exchanges and the state of the runner, returns how many messages, and keeps events', async () => {
        const { store } = stage()
        await appendEvents({ text: 'unheard', sessionKey: 'hook:pr:1' })
        for (const each of ['a', 'b', 'c']) await say(each, { runnerState: 7 })
        expect(await store.trimTranscript({ ...name, agentId: 'other' }, { messages: 0, bytes: 0 })).toBe(0)
        expect(await store.trimTranscript(name, { messages: 2, bytes: 99 })).toBe(4)
        expect(await toTexts()).toEqual(['c', 'c!'])
        expect(await store.session(name)).toMatchObject({ runnerState: undefined })
        expect(await store.trimTranscript(name, { messages: 0, bytes: 0 })).toBe(2)
        expect(await toTexts()).toEqual([])
        expect(await store.waitingEvents({ ...name, limit: 9 })).toMatchObject({ count: 1 })
        await say('d')
        expect(await toTexts()).toEqual(['d', 'd!'])
      })
    })
  })
}
