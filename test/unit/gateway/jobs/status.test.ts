// The status of a commit: pending while its run waits or works, then the result of the run. No kill and no fault leaves a status pending or
// sets it twice.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { planAgent, createStage, ok, pass, scriptChannel, scriptRunner, type Stage, listSteps } from './stage.ts'
import { createCommit, failed, type Fault, findStatusFaults, open, buildPlan, shown } from './status-stage.ts'

let stage: Stage
beforeEach(() => {
  vi.useFakeTimers()
  stage = createStage()
})
afterEach(() => {
  vi.useRealTimers()
})

describe('the status of a commit', () => {
  test('the status is pending while its run waits for a slot, and then shows the end of the run', async () => {
    const commit = createCommit()
    const { turns } = open(stage, commit)
    // this run uses the only slot
    await stage.accept(planAgent())
    const [run, status] = await stage.accept(buildPlan({ sessionKey: 'hook:b' }))
    await pass(0)
    expect(turns).toHaveLength(1)
    expect(shown(commit.statuses)).toEqual([`pending: Run ${run} has not ended.`])
    turns[0]?.end(ok('Done.'))
    await pass(0)
    turns[1]?.end(ok('Good.'))
    await pass(100)
    expect(shown(commit.statuses)).toEqual([`pending: Run ${run} has not ended.`, `success: Run ${run} is done.`])
    expect(listSteps(await stage.readJob(status))).toEqual(['pending done', 'ended done', 'status done'])
    expect(commit.statuses.map(({ context }) => context)).toEqual(['review', 'review'])
  })

  test.each([
    ['failed permanently', async () => {}, 'error: Run job-1 failed.', failed],
    ['was cancelled', () => end('cancelled'), 'error: Run job-1 was cancelled.', undefined],
    ['was superseded', () => end('superseded'), 'error: Run job-1 was superseded.', undefined],
    ['expired', () => end('expired'), 'error: Run job-1 was expired.', undefined],
  ])('the status of a commit is error if its run %s', async (_, act, expected, result) => {
    const commit = createCommit()
    open(
      stage,
      commit,
      scriptRunner(() => result),
    )
    await stage.accept(buildPlan())
    await pass(0)
    await act()
    await pass(120_000)
    expect(shown(commit.statuses).at(-1)).toBe(expected)
    expect(commit.statuses).toHaveLength(2)
  })

  async function end(state: 'cancelled' | 'superseded' | 'expired'): Promise<void> {
    await stage.store.endJob('job-1', { state, reason: 'Somebody asked for it.' })
  }

  test.each([
    ['It may be merged.\n\npass', 'success: Run job-1 ended: pass.'],
    ['It lacks a test.\n\nfail', 'failure: Run job-1 ended: fail.'],
    ['I cannot say.', 'error: Run job-1 gave no verdict.'],
  ])(
    'the status of a run with verdicts that answers %j shows its verdict, or that it gave none',
    async (text, expected) => {
      const commit = createCommit()
      open(
        stage,
        commit,
        scriptRunner(() => ok(text)),
      )
      await stage.accept(buildPlan({ verdicts: ['pass', 'fail'] }))
      await pass(60_000)
      expect(shown(commit.statuses).at(-1)).toBe(expected)
    },
  )

  test('the status of a commit becomes error when the delivery of its run is dropped', async () => {
    const commit = createCommit()
    open(stage, commit)
    await stage.accept(planAgent())
    await stage.accept(buildPlan({ sessionKey: 'hook:b' }))
    await pass(0)
    expect(await stage.store.drop('delivery-2')).toBe(true)
    await pass(120_000)
    expect(commit.statuses.map(({ state }) => state)).toEqual(['pending', 'error'])
  })

  test.each(['lost', '502', '503', 'limited', 'unwritten'] as const)(
    'despite the fault "%s", each status is set exactly once',
    async (fault) => {
      const faults: Fault[] = [fault, fault]
      const commit = createCommit(() => faults.shift())
      const { turns } = open(stage, commit)
      await stage.accept(buildPlan())
      await pass(300_000)
      turns[0]?.end(ok('Good.'))
      faults.push(fault, fault)
      await pass(300_000)
      expect(commit.statuses.map(({ state }) => state)).toEqual(['pending', 'success'])
    },
  )

  test('a status is still set after an outage of GitHub of 25 hours', async () => {
    let isDown = true
    const commit = createCommit(() => (isDown ? '503' : undefined))
    open(
      stage,
      commit,
      scriptRunner(() => ok('Good.')),
    )
    await stage.accept(buildPlan())
    await pass(25 * 3_600_000)
    expect(commit.statuses).toEqual([])
    isDown = false
    await pass(600_000)
    expect(commit.statuses.map(({ state }) => state)).toEqual(['success'])
  })

  test.each(['transient', 'permanent'] as const)(
    'the answer to a status is in the record and never in the log, if the failure is %s',
    async (kind) => {
      const lines: string[] = []
      const write = (_: object, message: string) => void lines.push(message)
      const { channel } = scriptChannel()
      const setStatus = async () => ({ kind, detail: 'It said: SECRET ANSWER' })
      stage.openWorker({
        runner: scriptRunner(() => ok('Good.')).runner,
        channels: new Map([['github', { ...channel, setStatus }]]),
        log: { debug: write, info: write, warn: write, error: write },
      })
      const [, status] = await stage.accept(buildPlan())
      await pass(100)
      expect((await stage.readJob(status)).lastError).toContain('SECRET ANSWER')
      expect(lines).toContainEqual(expect.stringContaining(`"hookloom show ${status}" shows why.`))
      expect(lines.join()).not.toContain('SECRET ANSWER')
    },
  )

  test('a waiting run does not delay the status of a later run, and when the waiting run ends, it does not change that status', async () => {
    const commit = createCommit()
    const { turns } = open(stage, commit)
    const [first, firstStatus] = await stage.accept(buildPlan())
    const [second, secondStatus] = await stage.accept(buildPlan({ sessionKey: 'hook:b' }))
    await pass(0)
    // the provider asks the caller to try again in an hour
    turns[0]?.end({ status: 'unavailable', detail: 'Come again.', retryAfterMs: 3_600_000 })
    await pass(10_000)
    turns[1]?.end(ok('Good.'))
    await pass(60_000)
    const both = [`pending: Run ${first} has not ended.`, `pending: Run ${second} has not ended.`]
    expect(shown(commit.statuses)).toEqual([...both, `success: Run ${second} is done.`])
    await stage.store.endJob(first ?? '', { state: 'cancelled', reason: 'Somebody asked for it.' })
    await pass(120_000)
    expect(commit.statuses).toHaveLength(3)
    const late = await stage.readJob(firstStatus)
    expect(listSteps(late)).toEqual(['pending done', 'ended done', 'status skipped'])
    expect(late.steps.at(-1)?.detail).toBe(`A newer run sets this status: see the task ${secondStatus}.`)
  })

  test('two runs of one commit with different status names set both', async () => {
    const commit = createCommit()
    const runner = scriptRunner(() => ok('Good.'))
    open(stage, commit, runner)
    await stage.accept(buildPlan(), buildPlan({ status: 'licence', sessionKey: 'hook:b' }))
    await pass(60_000)
    const last = new Map(commit.statuses.map(({ context, state }) => [context, state]))
    expect([...last]).toEqual([
      ['review', 'success'],
      ['licence', 'success'],
    ])
  })

  test('if the task that sets the status of the newest run was cancelled, the status gets the result of the run before it', async () => {
    const commit = createCommit()
    const { turns } = open(stage, commit)
    await stage.accept(buildPlan())
    const [, status = ''] = await stage.accept(buildPlan({ sessionKey: 'hook:b' }))
    await pass(0)
    await stage.store.endJob(status, { state: 'cancelled', reason: 'Somebody asked for it.' })
    await pass(30_000)
    turns[0]?.end(ok('Good.'))
    await pass(60_000)
    expect(shown(commit.statuses).at(-1)).toBe('success: Run job-1 is done.')
  })

  test('a late call for an older run is followed by a call with the result of the newest run', async () => {
    const commit = createCommit()
    const order: string[] = []
    let answerFirst = () => {}
    const slow: typeof fetch = async (...given) => {
      const [, init] = given
      if (init?.method === 'POST' && order.length === 0) {
        order.push('first call')
        await new Promise<void>((resolve) => (answerFirst = resolve))
      }
      return await commit.request(...given)
    }
    open(
      stage,
      { request: slow },
      scriptRunner(() => ok('Good.')),
    )
    await stage.accept(buildPlan())
    await pass(0)
    await stage.accept(buildPlan({ sessionKey: 'hook:b' }))
    await pass(5_000)
    expect(order).toEqual(['first call'])
    expect(commit.statuses).toEqual([])
    answerFirst()
    await pass(60_000)
    expect(shown(commit.statuses).at(-1)).toBe('success: Run job-3 is done.')
    expect(shown(commit.statuses).findIndex((text) => text.includes('job-3'))).toBeGreaterThan(
      shown(commit.statuses).findLastIndex((text) => text.includes('job-1')),
    )
  })

  test('a dead run that is queued again sets pending and then its new end, even if another run has set the status since', async () => {
    const commit = createCommit()
    const { turns } = open(stage, commit)
    const [first = '', status] = await stage.accept(buildPlan())
    const [second] = await stage.accept(buildPlan({ sessionKey: 'hook:b' }))
    turns[0]?.end(failed)
    await pass(60_000)
    turns[1]?.end(ok('Other.'))
    await pass(60_000)
    expect(shown(commit.statuses).at(-1)).toBe(`success: Run ${second} is done.`)
    expect(await stage.store.requeue(first)).toBe(true)
    stage.lookForJobs()
    await pass(10_000)
    expect(shown(commit.statuses).at(-1)).toBe(`pending: Run ${first} has not ended.`)
    turns[2]?.end(ok('Good.'))
    await pass(60_000)
    expect(shown(commit.statuses).at(-1)).toBe(`success: Run ${first} is done.`)
    expect(listSteps(await stage.readJob(status))).toEqual(['pending done', 'ended done', 'status done'])
  })

  test('a run of a request without a commit sets no status', async () => {
    const commit = createCommit()
    open(
      stage,
      commit,
      scriptRunner(() => ok('Good.')),
    )
    const ids = await stage.accept(
      buildPlan({ origin: { hook: 'github', place: { channel: 'github', to: 'acme/app#1' } } }),
    )
    await pass(1_000)
    expect(ids).toHaveLength(1)
    expect(commit.statuses).toEqual([])
  })
})

test.each(['github', 'gitlab'] as const)(
  'fifty seeded series of kills and faults leave no status of %s pending, and set no status twice',
  async (forge) => {
    const faults: string[] = []
    for (let seed = 1; seed <= 50; seed += 1) faults.push(...(await findStatusFaults(seed, forge)))
    expect(faults).toEqual([])
  },
)
