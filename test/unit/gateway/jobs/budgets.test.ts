// Turns under a budget: the reservation before a turn, the cost after it, and when a turn waits.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { RunRequest, RunResult } from '../../../../src/model/runner.ts'
import { findPeriod } from '../../../../src/model/budgets.ts'
import { toKnownUsage } from '../../../../src/model/job.ts'
import { toAgent } from '../../../../src/gateway/jobs/agents.ts'
import { noOwnParts } from '../../../../src/model/plugin.ts'
import { createJobs } from '../../../../src/gateway/jobs/jobs.ts'
import { silentLog } from '../../../../src/base/log.ts'
import type { Store } from '../../../../src/store/store.ts'
import { planAgent, buildConfig, createStage, ok, pass, scriptChannel, scriptRunner, listSteps } from './stage.ts'

beforeEach(() => {
  vi.useFakeTimers({ now: Date.parse('2026-11-23T23:00:00Z') })
})
afterEach(() => {
  vi.useRealTimers()
})

const minuteMs = 60_000

/** A million input tokens cost one dollar, a million output tokens ten. A turn may have 10,000 output tokens: about 10 cents at most. */
const model = { id: 'small', cost: { input: 1, output: 10 }, maxTokens: 10_000 }

function priced(budget: object, agent: object = {}, models: readonly object[] = [model]) {
  return buildConfig({
    budgets: { daily: budget },
    models: { providers: { local: { kind: 'openai-compatible', baseUrl: 'http://127.0.0.1:1/v1', models } } },
    agents: { defaults: { model: 'local/small', budgets: ['daily'], maxConcurrent: 16, ...agent } },
  })
}

const used = (outputTokens: number): RunResult => ({
  ...ok('Done.'),
  status: 'ok',
  text: 'Done.',
  usage: { inputTokens: 0, outputTokens },
})

/** A stage with a worker of sixteen slots. */
function open(config: ReturnType<typeof buildConfig>, answer?: (request: RunRequest) => RunResult | undefined) {
  const stage = createStage(config)
  const { runner, turns } = scriptRunner(answer)
  stage.openWorker({ runner, settings: { maxConcurrent: 16, defaultRoute: { channel: 'console' } } })
  const daily = config.budgets['daily']
  const account = async () => {
    if (daily === undefined) throw new Error('no budget')
    const { startsAt } = findPeriod(daily, Date.now())
    return (await stage.store.accounts([{ name: 'daily', startsAt }]))[0]
  }
  const accept = async (count: number, over: Parameters<typeof planAgent>[0] = {}) =>
    await stage.accept(
      ...Array.from({ length: count }, (_, index) => planAgent({ sessionKey: `hook:${index}`, ...over })),
    )
  return { ...stage, turns, account, acceptTurns: accept }
}

describe('turns of a budget', () => {
  test.each([
    ['negative', { inputTokens: -5, outputTokens: 3 }],
    ['not a number', { inputTokens: Number.NaN, outputTokens: 3 }],
    ['infinite', { inputTokens: 1, outputTokens: Number.POSITIVE_INFINITY }],
    ['huge', { inputTokens: 1e300, outputTokens: 3 }],
  ])(
    'a usage that is %s is unknown: the model is called once, its reply is kept, and the budget counts the maximum',
    async (_, usage) => {
      const answer = { ...used(0), usage }
      const { turns, acceptTurns, account, readJob } = open(priced({ usd: 5 }), () => answer)
      const [id] = await acceptTurns(1)
      expect(turns).toHaveLength(1)
      const { state, steps } = (await readJob(id)) ?? {}
      expect({ state, run: steps?.find(({ name }) => name === 'run') }).toMatchObject({
        state: 'done',
        run: { state: 'done' },
      })
      expect((await account())?.spent.nanos).toBeGreaterThan(100_000_000)
    },
  )

  test('only the count that cannot be true is left out', async () => {
    const usage = { inputTokens: 2, outputTokens: 3, cachedInputTokens: -1, costUsd: 1e40 }
    expect(toKnownUsage(usage)).toEqual({ inputTokens: 2, outputTokens: 3 })
  })

  test('of sixteen parallel turns, a budget for three starts three, and the others start when the first ones end', async () => {
    // three turns reserve about 31 cents
    const { turns, acceptTurns, account, readJob } = open(priced({ usd: 0.35 }))
    const ids = await acceptTurns(16)
    expect(turns).toHaveLength(3)
    expect(await account()).toMatchObject({ waiting: 13, reserved: { turns: 3 } })
    expect(await readJob(ids[15])).toMatchObject({
      state: 'queued',
      attempts: 0,
      lastError: expect.stringMatching(/waits for the budget "daily".* hookloom budget raise daily --usd <n>$/),
    })
    for (let at = 0; at < turns.length; at += 1) {
      turns[at]?.end(used(10))
      await pass(0)
      expect(turns.length - at - 1).toBeLessThanOrEqual(3)
    }
    expect(turns).toHaveLength(16)
    // there were 16 turns of ten tokens at a thousandth of a cent
    expect(await account()).toMatchObject({ waiting: 0, spent: { nanos: 16 * 10 * 10_000, tokens: 160, turns: 16 } })
    expect(await readJob(ids[15])).toMatchObject({ state: 'done', lastError: undefined })
  })

  test('a runner gets the maximum number of tokens of the reply', async () => {
    const { turns, acceptTurns } = open(priced({ usd: 1 }))
    await acceptTurns(1)
    expect(turns[0]?.request.maxOutputTokens).toBe(10_000)
  })

  test('a model without a token limit gets a limit under a budget of tokens, and no limit under a budget of turns', async () => {
    const of = async (budget: object) => {
      const { turns, acceptTurns } = open(priced(budget, {}, []))
      await acceptTurns(1)
      return turns[0]?.request.maxOutputTokens
    }
    expect([await of({ tokens: 1_000_000 }), await of({ turns: 5 })]).toEqual([16_384, undefined])
  })

  test('a spent budget makes its turns wait until the next day, in their order, without an attempt', async () => {
    const { turns, acceptTurns, readJob } = open(priced({ turns: 1 }))
    const ids = await acceptTurns(3)
    turns[0]?.end(used(1))
    await pass(59 * minuteMs)
    expect(turns).toHaveLength(1)
    await pass(minuteMs)
    expect(turns.map(({ request }) => request.runId)).toEqual(ids.slice(0, 2))
    turns[1]?.end(used(1))
    await pass(0)
    expect((await readJob(ids[1])).attempts).toBe(1)
    expect(await readJob(ids[2])).toMatchObject({ state: 'queued', attempts: 0 })
  })

  test('turns that wait for a budget are not claimed again and again', async () => {
    const { store, turns, acceptTurns } = open(priced({ turns: 1 }))
    const reserve = vi.spyOn(store, 'reserve')
    await acceptTurns(30)
    turns[0]?.end(used(1))
    await pass(50 * minuteMs)
    expect(reserve.mock.calls.length).toBeLessThan(30 + 10)
  })

  test('a budget that is raised by one turn starts one of the turns that wait for it', async () => {
    const stage = open(priced({ turns: 1 }))
    await stage.acceptTurns(3)
    stage.turns[0]?.end(used(1))
    await pass(0)
    const { startsAt = 0 } = (await stage.account()) ?? {}
    await stage.store.raiseBudget({ name: 'daily', startsAt }, { nanos: 0, tokens: 0, turns: 1 })
    await pass(60_000)
    expect(stage.turns).toHaveLength(2)
  })

  test('the usage of each call to the provider counts, also that of a retry', async () => {
    const answers: RunResult[] = [
      { status: 'error', retryable: true, detail: 'cut', usage: { inputTokens: 0, outputTokens: 30 } },
      used(12),
    ]
    const { acceptTurns, account } = open(priced({ usd: 1 }), () => answers.shift())
    await acceptTurns(1)
    await pass(60_000)
    expect(await account()).toMatchObject({ spent: { tokens: 42, turns: 2 }, reserved: { turns: 0 } })
  })

  test('a turn of a fallback is reserved and settled at the price of the fallback, and a model that reports no usage counts as much as was reserved', async () => {
    const dear = { id: 'dear', cost: { input: 0, output: 100 }, maxTokens: 1_000 }
    const config = priced({ usd: 1 }, { modelFallbacks: ['local/dear'] }, [model, dear])
    const { turns, acceptTurns, account } = open(config)
    await acceptTurns(1)
    const { reserved } = (await account()) ?? {}
    expect([reserved?.turns, (reserved?.nanos ?? 0) > 200_000_000]).toEqual([1, true])
    turns[0]?.end({ status: 'unavailable', detail: 'silent', mayCost: true })
    await pass(0)
    expect(turns[1]?.request).toMatchObject({ model: 'local/dear', maxOutputTokens: 1_000 })
    turns[1]?.end(used(7))
    await pass(0)
    const { spent } = (await account()) ?? {}
    const first = (reserved?.nanos ?? 0) - 100_000_000
    expect(spent).toMatchObject({ nanos: first + 7 * 100_000, turns: 1 })
  })

  test.each([
    ['a call that was cut off counts as it was reserved', { status: 'error', retryable: true, detail: 'cut' }, 10_000],
    ['a call that took too long counts as it was reserved', { status: 'timeout', detail: 'late' }, 10_000],
    ['a reply without usage counts as it was reserved', { status: 'ok', text: 'Done.' }, 10_000],
    ['a call that was refused costs nothing', { status: 'error', retryable: false, detail: 'wrong key' }, 0],
    ['a call that never reached the provider costs nothing', { status: 'unavailable', detail: 'away' }, 0],
  ] as const)('a budget settles the result of a call: %s', async (_, result, atLeast) => {
    const { turns, acceptTurns, account } = open(priced({ tokens: 100_000 }))
    await acceptTurns(1)
    turns[0]?.end(result)
    await pass(0)
    const { tokens = -1 } = (await account())?.spent ?? {}
    expect(atLeast === 0 ? tokens === 0 : tokens >= atLeast).toBe(true)
  })

  test('a turn that ends with an exception counts as much as was reserved', async () => {
    const { turns, acceptTurns, account } = open(priced({ tokens: 100_000 }))
    await acceptTurns(1)
    turns[0]?.fail(new Error('broken'))
    await pass(0)
    expect((await account())?.spent.tokens).toBeGreaterThan(10_000)
  })

  test('a prompt reserves at least as many tokens as it has bytes', async () => {
    const { acceptTurns, account } = open(priced({ tokens: 1_000_000 }))
    await acceptTurns(1, { action: { message: 'é'.repeat(20_000) } })
    expect((await account())?.reserved.tokens).toBeGreaterThan(10_000 + 40_000)
  })

  test('a turn of a model without a price cannot start under a budget of dollars, and its error names the key', async () => {
    const { turns, acceptTurns, readJob } = open(priced({ usd: 1 }))
    const [id] = await acceptTurns(1, { action: { model: 'local/other' } })
    expect(turns).toEqual([])
    expect(await readJob(id)).toMatchObject({
      state: 'dead',
      lastError: expect.stringMatching(/"local\/other" has no price, and the budget "daily" .* models\.providers/),
    })
  })

  test('a job whose turn costs more than the whole budget dies with an explanation instead of waiting forever', async () => {
    const { turns, acceptTurns, readJob } = open(priced({ tokens: 12_000 }))
    const [id] = await acceptTurns(1, { action: { message: 'x'.repeat(5_000) } })
    expect(turns).toEqual([])
    expect(await readJob(id)).toMatchObject({ state: 'dead', lastError: expect.stringContaining('for a whole period') })
  })

  test('a budget of a mapping limits the turns of the mapping and no others, and a removed budget limits nothing', async () => {
    const config = priced({ turns: 2 }, { budgets: [] })
    const { turns, acceptTurns } = open(config)
    await acceptTurns(4, { budgets: ['daily', 'gone'] })
    expect(turns).toHaveLength(2)
    await acceptTurns(1, { sessionKey: 'hook:free' })
    expect(turns).toHaveLength(3)
  })

  test('for a runner that reports no usage, a budget counts only turns, and turns wait when it is spent', async () => {
    const config = priced({ usd: 1, turns: 2 }, { runner: 'claude' })
    expect(toAgent(config, 'main', '/').runner).toBe('claude')
    const { turns, acceptTurns, account } = open(config, () => ok('Done.'))
    await acceptTurns(5)
    expect(turns).toHaveLength(2)
    expect(await account()).toMatchObject({ spent: { nanos: 0, tokens: 0, turns: 2 }, waiting: 3 })
  })

  test('a worker that stops settles the turns that it interrupts', async () => {
    const config = priced({ tokens: 100_000 })
    const stage = createStage(config)
    const { runner, turns } = scriptRunner()
    const worker = stage.openWorker({ runner })
    const [id] = await stage.accept(planAgent())
    expect(turns).toHaveLength(1)
    const stopping = worker.stop({ graceMs: 0 })
    await pass(10_000)
    await stopping
    const { startsAt = 0 } = config.budgets['daily'] ? findPeriod(config.budgets['daily'], Date.now()) : {}
    const [account] = await stage.store.accounts([{ name: 'daily', startsAt }])
    expect(account?.spent.tokens).toBeGreaterThan(10_000)
    expect((await stage.readJob(id)).state).toBe('queued')
  })

  test('the operator is told once when 80 % of a budget is spent, and once when its turns wait', async () => {
    const config = { ...priced({ turns: 5 }), hooks: buildConfig({ hooks: { alerts: { channel: 'console' } } }).hooks }
    const stage = createStage(config)
    const { channel, sent } = scriptChannel()
    stage.openWorker({ channels: new Map([['console', channel]]) })
    for (let count = 0; count < 8; count += 1) {
      await stage.accept(planAgent({ sessionKey: `hook:${count}`, action: { deliver: false } }))
      await pass(1_000)
    }
    const texts = sent.map(({ text }) => text)
    expect(texts).toEqual([
      expect.stringContaining('the budget "daily" has spent 4 turns of 5 turns. At 100 %, its turns wait until'),
      expect.stringContaining('the budget "daily" has spent 5 turns of 5 turns. Its turns wait until 2026-11-24T00:00'),
    ])
    expect(texts[1]).toContain('"hookloom budget raise daily --turns <n>" adds to it.')
  })

  test('a turn that was recorded before a crash is not run or paid for again', async () => {
    const config = priced({ turns: 5 })
    const stage = createStage(config)
    const never = () => new Promise<never>(() => {})
    let isKilled = false
    const { claim, report, extend } = stage.store
    const dying: Store = {
      ...stage.store,
      claim: (...given) => (isKilled ? never() : claim(...given)),
      report: (...given) => (isKilled ? never() : report(...given)),
      extend: (...given) => (isKilled ? never() : extend(...given)),
    }
    const { runner, turns } = scriptRunner(() => used(1))
    const hanging = scriptChannel(never, { dedupes: true })
    stage.openWorker({ runner, store: dying, channels: new Map([['console', hanging.channel]]) })
    const [id] = await stage.accept(planAgent())
    expect(listSteps(await stage.readJob(id))).toEqual(['run done', 'summary done'])
    isKilled = true
    stage.openWorker({ runner })
    await pass(61_000)
    expect(await stage.readJob(id)).toMatchObject({ state: 'done' })
    expect(turns).toHaveLength(1)
    const startsAt = Date.parse('2026-11-23T00:00:00Z')
    expect(await stage.store.accounts([{ name: 'daily', startsAt }])).toMatchObject([{ spent: { turns: 1 } }])
  })
})

describe('a budget that the configuration raises', () => {
  const duty = { isHeld: () => true, stop: async () => {} }

  /** The parts of a gateway that run jobs, with a configuration that can change. */
  function openJobs(store: Store, config: () => ReturnType<typeof buildConfig>) {
    const dir = mkdtempSync(join(tmpdir(), 'hookloom-budgets-'))
    onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
    return createJobs({
      dir,
      config,
      readSourceFiles: () => 'no source',
      ownParts: () => noOwnParts,
      store,
      write: () => {},
      env: {},
      duties: { heartbeats: duty, senders: duty },
      clock: () => Date.now(),
      newId: () => 'id',
      meter: () => {},
      log: silentLog,
    })
  }

  /** A turn has used up the budget, and another one waits. */
  async function openWaiting() {
    const stage = open(priced({ turns: 1 }), () => used(1))
    await stage.acceptTurns(2)
    const countWaiting = async () => {
      const { startsAt } = findPeriod({ period: '1d', timezone: 'UTC' }, Date.now())
      return (await stage.store.accounts([{ name: 'daily', startsAt }]))[0]?.waiting
    }
    expect(await countWaiting()).toBe(1)
    return { store: stage.store, countWaiting }
  }

  test('no turn waits for a budget after the start of a gateway, if its limit was raised while no gateway ran', async () => {
    const { store, countWaiting } = await openWaiting()
    const jobs = openJobs(store, () => priced({ turns: 5 }))
    jobs.start()
    await pass(0)
    expect(await countWaiting()).toBe(0)
    await jobs.stop({ graceMs: 0 })
  })

  test('no turn waits for a raised budget when the store works again, if it failed at the start of the gateway', async () => {
    const { store, countWaiting } = await openWaiting()
    const jobs = openJobs(store, () => priced({ turns: 5 }))
    const failing = vi.spyOn(store, 'wakeBudgets').mockRejectedValue(new Error('database is locked'))
    jobs.start()
    await pass(60_000)
    expect(await countWaiting()).toBe(1)
    failing.mockRestore()
    await pass(5_000)
    expect(await countWaiting()).toBe(0)
    await jobs.stop({ graceMs: 0 })
  })

  test('a gateway that stops does not try again to wake the turns that wait for a budget', async () => {
    const { store } = await openWaiting()
    const jobs = openJobs(store, () => priced({ turns: 5 }))
    const failing = vi.spyOn(store, 'wakeBudgets').mockRejectedValue(new Error('database is locked'))
    jobs.start()
    await pass(0)
    await jobs.stop({ graceMs: 0 })
    const { length: calls } = failing.mock.calls
    await pass(60_000)
    expect(failing.mock.calls).toHaveLength(calls)
  })

  test('no turn waits for a budget after the next save, if the store failed at the save that raised its limit', async () => {
    const { store, countWaiting } = await openWaiting()
    let config = priced({ turns: 1 })
    const jobs = openJobs(store, () => config)
    const failing = vi.spyOn(store, 'wakeBudgets').mockRejectedValue(new Error('disk full'))
    config = priced({ turns: 5 })
    jobs.refresh()
    await pass(0)
    expect(await countWaiting()).toBe(1)
    failing.mockRestore()
    jobs.refresh()
    await pass(0)
    expect(await countWaiting()).toBe(0)
    await jobs.stop({ graceMs: 0 })
  })
})
