// The limit on the turns of a session in an hour: a loop ends in a pause, and no turn is lost.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Flow, toFlowSettings } from '../../../../src/core/model/flow.ts'
import {
  planAgent,
  planWake,
  buildConfig,
  createStage,
  ok,
  pass,
  scriptChannel,
  scriptRunner,
  type Stage,
} from './stage.ts'

const minute = 60_000
const hour = 60 * minute
const alerts = { channel: 'console', to: 'ops' }
const quiet = { deliver: false }

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function start(agents: object, runner = scriptRunner(() => ok('Done.'))) {
  const stage = createStage(
    buildConfig({ agents, hooks: { alerts }, runners: { scripted: { kind: 'command', command: 'x' } } }),
  )
  const { channel, sent } = scriptChannel()
  stage.openWorker({ runner: runner.runner, channels: new Map([['console', channel]]) })
  return { stage, turns: runner.turns, sent }
}

async function ask(stage: Stage, sessionKey: string, count: number): Promise<string[]> {
  const ids: string[] = []
  for (let at = 0; at < count; at += 1) {
    ids.push(...(await stage.accept(planAgent({ sessionKey, isKeyChosen: true, action: quiet }))))
    await pass(minute)
  }
  return ids
}

const three = { defaults: { maxTurnsPerHour: 3, runner: 'scripted' } }

test('with a limit of three turns an hour, the fourth turn waits until the first one is an hour old, and no turn is lost', async () => {
  const { stage, turns } = start(three)
  const ids = await ask(stage, 'hook:a', 5)
  expect(turns).toHaveLength(3)
  expect((await stage.readJob(ids[3])).state).toBe('queued')
  expect((await stage.readJob(ids[3])).attempts).toBe(0)
  await pass(hour - 6 * minute)
  expect(turns).toHaveLength(3)
  await pass(1.5 * minute)
  expect(turns).toHaveLength(4)
  await pass(hour)
  expect((await stage.readJob(ids[4])).state).toBe('done')
})

test('other sessions run while one session waits for its hourly limit', async () => {
  const { stage, turns } = start(three)
  await ask(stage, 'hook:a', 5)
  await ask(stage, 'hook:b', 2)
  expect(turns.map(({ request }) => request.sessionKey).filter((key) => key === 'hook:b')).toHaveLength(2)
})

test('one alert says which session waits, for how long, and how to resume it', async () => {
  const { stage, sent } = start(three)
  await ask(stage, 'hook:a', 6)
  expect(sent).toHaveLength(1)
  expect(sent[0]?.text).toMatch(
    /the session "hook:a" of the agent "main" had 3 turns in an hour.* wait for 5\d minutes, or until "hookloom resume [\w-]+"/,
  )
})

test.each(['hook:fix;touch${IFS}/tmp/x;#', 'hook:a b', `hook:${'a'.repeat(230)}`])(
  'the alert about the session %s names the run that waits in its command, and no part of the name of the session',
  async (key) => {
    const { stage, sent } = start(three)
    const ids = await ask(stage, key, 4)
    expect(sent[0]?.text).toContain(`or until "hookloom resume ${ids[3]}". Does`)
  },
)

test('after a resume, a session may start as many turns as in a new hour', async () => {
  const { stage, turns } = start(three)
  await ask(stage, 'hook:a', 9)
  expect(turns).toHaveLength(3)
  const label = 'session:main/hook:a'
  expect(await stage.store.unhold({ label, kind: 'turns' })).toBe(true)
  stage.lookForJobs()
  await pass(minute)
  expect(turns).toHaveLength(6)
})

test.each([
  ['0 sets no limit', { defaults: { maxTurnsPerHour: 0, runner: 'scripted' } }],
  [
    'an agent may set another limit',
    { defaults: { maxTurnsPerHour: 1, runner: 'scripted' }, list: [{ id: 'main', maxTurnsPerHour: 9 }] },
  ],
  ['the runner echo costs nothing and has no limit', { defaults: { maxTurnsPerHour: 1 } }],
])('no turn waits for an hourly limit: %s', async (_, agents) => {
  const { stage, turns } = start(agents)
  await ask(stage, 'hook:a', 6)
  expect(turns).toHaveLength(6)
})

test.each([
  ['runs that share the default key', { sessionKey: 'hook:inbox', sharesSession: true, isKeyChosen: false }],
  ['runs of a persistent session that only has the default key', { sessionKey: 'hook:inbox', isKeyChosen: false }],
])('%s never wait for an hourly limit', async (_, plan) => {
  const { stage, turns } = start({ defaults: { maxTurnsPerHour: 1, runner: 'scripted' } })
  for (let at = 0; at < 30; at += 1) await stage.accept(planAgent({ ...plan, action: quiet }))
  await pass(minute)
  expect(turns).toHaveLength(30)
  expect(await stage.store.holds()).toEqual([])
})

test('of sixty runs of a key that a mapping chose, exactly twenty start within the hour, however many slots there are', async () => {
  for (const maxConcurrent of [16, 64]) {
    const { stage, turns } = start({ defaults: { runner: 'scripted', maxConcurrent } })
    await stage.accept(
      ...Array.from({ length: 60 }, () => planAgent({ sessionKey: 'hook:a', isKeyChosen: true, action: quiet })),
    )
    await pass(30 * minute)
    expect(turns).toHaveLength(20)
    await pass(31 * minute)
    expect(turns).toHaveLength(40)
  }
})

test('a turn that fails counts, and its retries count with it', async () => {
  const failing = scriptRunner(() => ({ status: 'error', retryable: true, detail: 'It broke.' }))
  const { stage, turns } = start(three, failing)
  const ids = await ask(stage, 'hook:a', 4)
  await pass(30 * minute)
  expect(turns.length).toBeGreaterThan(3)
  expect(await Promise.all(ids.map(async (id) => (await stage.readJob(id)).state))).toEqual([
    'dead',
    'dead',
    'dead',
    'queued',
  ])
})

test('heartbeats and the turns of echo count toward no limit', async () => {
  const { stage, turns } = start(three)
  for (let at = 0; at < 6; at += 1) {
    await stage.store.addTask({
      id: `beat ${at}`,
      planned: { kind: 'heartbeat', agentId: 'main', sessionKey: 'main', reason: 'wake' },
      lane: 'main/main',
      standsFor: 'heartbeat/main',
    })
    await stage.accept(planWake())
    stage.lookForJobs()
    await pass(minute)
  }
  expect(turns).toHaveLength(6)
  await ask(stage, 'main', 3)
  expect(turns).toHaveLength(9)
})

/** A run whose flow has the limit. */
function planLimited(sessionKey: string, limit: string) {
  const settings = toFlowSettings(Flow.parse({ limits: [limit] }), { ring: 'pr', rateKey: '' })
  return planAgent({
    sessionKey,
    action: quiet,
    flow: { ring: 'pr', key: sessionKey, expiresMs: undefined, settings },
  })
}

test.each([
  ['local', 1],
  ['local/small', 1],
  ['customers', 3],
])('under the limit %s, %i of three turns call a provider that asks to wait', async (limit, asked) => {
  let refusals = 0
  const { runner, turns } = scriptRunner(() =>
    (refusals += 1) <= asked ? { status: 'unavailable', detail: 'slow down', retryAfterMs: 90_000 } : ok('Done.'),
  )
  const stage = createStage(
    buildConfig({
      limits: { [limit]: { total: 1 } },
      models: { providers: { local: { kind: 'openai-compatible', baseUrl: 'http://127.0.0.1:1/v1' } } },
      agents: { defaults: { model: 'local/small', runner: 'ai' } },
    }),
  )
  stage.openWorker({ runner })
  const ids = await stage.accept(...['a', 'b', 'c'].map((key) => planLimited(`hook:${key}`, limit)))
  await pass(minute)
  expect(turns).toHaveLength(asked)
  const isPaused = asked === 1
  expect(await stage.store.holds()).toEqual(
    isPaused
      ? [expect.objectContaining({ label: `limit:${limit}`, kind: 'provider', reason: 'the provider asked to wait' })]
      : [],
  )
  await pass(minute)
  expect(await stage.store.holds()).toEqual([])
  for (const id of ids) expect((await stage.readJob(id)).state).toBe('done')
})

test('a provider that asks to wait pauses its limit for at most 15 minutes, and pauses nothing if the agent has a fallback', async () => {
  const day = 24 * hour
  for (const [modelFallbacks, paused] of [
    [['other/large'], []],
    [[], [15 * minute]],
  ] as const) {
    const { runner } = scriptRunner(({ model }) =>
      model === 'other/large' ? ok('Done.') : { status: 'unavailable', detail: 'slow down', retryAfterMs: day },
    )
    const provider = { kind: 'openai-compatible', baseUrl: 'http://127.0.0.1:1/v1' }
    const agents = { defaults: { model: 'local/small', runner: 'ai', modelFallbacks } }
    const models = { providers: { local: provider, other: provider } }
    const stage = createStage(buildConfig({ limits: { local: { total: 1 } }, models, agents }))
    stage.openWorker({ runner })
    await stage.accept(planLimited('hook:a', 'local'))
    await pass(1)
    const holds = await stage.store.holds()
    expect(holds.map(({ forMs = 0 }) => Math.round(forMs / minute) * minute)).toEqual(paused)
  }
})

/** Runs two turns of a runner with a limit. The provider of each turn asks for the next one of these waits. */
async function askForWaits(...waits: (number | undefined)[]) {
  const { runner, turns } = scriptRunner(() => {
    const retryAfterMs = waits.shift()
    return { status: 'unavailable', detail: 'slow down', ...(retryAfterMs !== undefined && { retryAfterMs }) }
  })
  const agents = { defaults: { runner: 'scripted' } }
  const runners = { scripted: { kind: 'command', command: 'x' } }
  const stage = createStage(buildConfig({ limits: { scripted: {} }, agents, runners }))
  stage.openWorker({ runner })
  // these runs have no flow with `limits`, so the pause of the limit does not hold back the second one
  await stage.accept(planAgent({ sessionKey: 'hook:a', action: quiet }))
  await stage.accept(planAgent({ sessionKey: 'hook:b', action: quiet }))
  await pass(1_000)
  expect(turns).toHaveLength(2)
  return await stage.store.holds()
}

test('a later, shorter wait does not shorten a pause', async () => {
  expect((await askForWaits(90_000, 5_000))[0]?.forMs).toBeGreaterThan(85_000)
})

test('a provider that is unavailable and names no time causes no pause', async () => {
  expect(await askForWaits(undefined, undefined)).toEqual([])
})
