// What a heartbeat and a persistent session carry along: it does not grow with the number of webhooks, and no event is left unheard.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { echoRunner } from '../../../../src/plugins/runners/echo.ts'
import { createRunner } from '../../plugins/runners/stage.ts'
import type { RunRequest } from '../../../../src/model/runner.ts'
import { buildConfig, createStage, ok, pass, planAgent, planWake, scriptRunner, type Stage } from './stage.ts'

beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2026, 0, 1, 12) })
})
afterEach(() => {
  vi.useRealTimers()
})

/** All that a model reads in a turn. */
function measureBytes({ system = '', history, prompt }: RunRequest): number {
  return [system, ...history.map(({ text }) => text), prompt].reduce((sum, text) => sum + Buffer.byteLength(text), 0)
}

const review = [
  'The change replaces the polling loop of the importer by a subscription. It is small, and its tests cover the new path.',
  'Two things before the merge: the subscription is never closed when the importer stops, and the retry in `connect()` has no limit.',
  'The description names a migration, but the diff has none. Ask the author whether it belongs to another change.',
].join('\n\n')

/** An agent that reviews, and says at each heartbeat what is new. */
function createReviewer() {
  return scriptRunner(({ action, message }) =>
    ok(action === undefined ? `News for you. ${review.slice(0, 300)}` : `${message}: done. ${review}`),
  )
}

const planPush = (n: number) =>
  planAgent({
    action: { message: `push-${n}.`, name: 'CI', wakeMode: 'now' },
    sessionKey: 'hook:ci',
    sharesSession: true,
  })

/** Posts webhooks, several a minute, and waits until all events are heard. */
async function postAll(stage: Stage, count: number): Promise<void> {
  for (let n = 0; n < count; n += 5) {
    await stage.accept(...Array.from({ length: 5 }, (_, at) => planPush(n + at)))
    await pass(20_000)
  }
  await pass(3_600_000)
}

describe('the story of 500 webhooks with the defaults', () => {
  test('after 500 webhooks a heartbeat carries at most 16 kB, and every summary was heard in a heartbeat', async () => {
    const stage = createStage(buildConfig({ agents: { defaults: { maxTurnsPerHour: 0 } } }))
    const { runner, turns } = createReviewer()
    stage.openWorker({ runner })
    await stage.openHeartbeats()
    await postAll(stage, 500)
    const beats = turns.map(({ request }) => request).filter(({ action }) => action === undefined)
    const heard = beats.flatMap(({ prompt }) =>
      Array.from(prompt.matchAll(/Hook CI: push-(\d+)\.: done/g), ([, n]) => Number(n)),
    )
    expect(heard.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 500 }, (_, n) => n))
    expect(Math.max(...beats.map(measureBytes))).toBeLessThanOrEqual(16_000)
    expect(beats.at(-1)?.history.length).toBeGreaterThan(0)
    expect(beats.at(-1)?.prompt).toMatch(/^Earlier messages of this session are left out\.\n/)
  })

  test('the same is true for echo, which asks no model', async () => {
    const stage = createStage(buildConfig())
    const asked: RunRequest[] = []
    const echo = createRunner(echoRunner, {})
    const runner: typeof echo = { ...echo, run: (request, io) => (asked.push(request), echo.run(request, io)) }
    stage.openWorker({ runner })
    await stage.openHeartbeats()
    await postAll(stage, 500)
    const beats = asked.filter(({ action }) => action === undefined)
    for (let n = 0; n < 500; n += 1)
      expect(beats.filter(({ prompt }) => prompt.includes(`> push-${n}.\n`))).toHaveLength(1)
    expect(Math.max(...beats.map(measureBytes))).toBeLessThanOrEqual(16_000)
  })
})

describe('a persistent session', () => {
  const planTurn = (sessionKey = 'hook:ticket') =>
    planAgent({ sessionKey, sessionMode: 'persistent', action: { message: 'And now?' } })
  const createStageWith = (defaults: object) => createStage(buildConfig({ agents: { defaults } }))

  test('a turn gets the newest exchanges within agents.defaults.history, and its prompt says that others are left out', async () => {
    const stage = createStageWith({ history: { messages: 4 }, maxTurnsPerHour: 0 })
    const { runner, turns } = scriptRunner(() => ok('So.'))
    stage.openWorker({ runner })
    for (let n = 0; n < 4; n += 1) await stage.accept(planTurn())
    expect(turns.map(({ request }) => request.history.length)).toEqual([0, 2, 4, 4])
    const notes = turns.map(({ request }) => request.prompt.includes('Earlier messages of this session are left out.'))
    expect(notes).toEqual([false, false, false, true])
  })

  test('a heartbeat gets fewer messages than a turn that the configuration sends to the main session', async () => {
    const stage = createStageWith({ heartbeat: { history: { messages: 2 } }, maxTurnsPerHour: 0 })
    const { runner, turns } = scriptRunner(() => ok('So.'))
    stage.openWorker({ runner })
    await stage.openHeartbeats()
    for (let n = 0; n < 3; n += 1) await stage.accept(planTurn('main'))
    await stage.accept(planWake({ mode: 'now' }))
    await pass(1_000)
    expect(turns.map(({ request }) => request.history.length)).toEqual([0, 2, 4, 2])
  })

  test('a command begins a new session when its own has reached the limits, and is told that messages are left out', async () => {
    const stage = createStageWith({ history: { messages: 4 }, maxTurnsPerHour: 0 })
    const { runner, turns } = scriptRunner(({ state }) => ({ ...ok('So.'), state: state ?? `session-${turns.length}` }))
    stage.openWorker({ runner })
    for (let n = 0; n < 5; n += 1) await stage.accept(planTurn())
    const told = turns.map(({ request: { state, prompt } }) => [state, prompt.startsWith('Earlier messages')])
    expect(told).toEqual([
      [undefined, false],
      ['session-1', false],
      [undefined, true],
      ['session-3', false],
      [undefined, true],
    ])
  })

  test('a session keeps its last 1,000 messages, in a busy hour too', async () => {
    const stage = createStageWith({ maxTurnsPerHour: 0 })
    const { runner } = scriptRunner(() => ok('So.'))
    stage.openWorker({ runner })
    const count = async () =>
      (await stage.store.messages({ agentId: 'main', sessionKey: 'hook:ticket', limit: 9_999 })).length
    await stage.accept(...Array.from({ length: 510 }, () => planTurn()))
    await pass(1_000)
    expect(await count()).toBe(1_000)
  })
})
