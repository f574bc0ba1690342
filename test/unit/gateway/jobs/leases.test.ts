// Crashes, lost leases, stops and outages of the store.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { JobDependencies } from '../../../../src/gateway/jobs/step.ts'
import { Problem } from '../../../../src/core/model/problem.ts'
import { planAgent, createStage, ok, pass, scriptChannel, scriptRunner, type Stage, listSteps } from './stage.ts'

let stage: Stage

beforeEach(() => {
  vi.useFakeTimers({ now: 1_700_000_000_000 })
  stage = createStage()
})
afterEach(() => {
  vi.useRealTimers()
})

const rejectCall = async () => {
  throw new Problem('store-unavailable', 'The disk is full.')
}

/** The store of the stage as a dying or disconnected process sees it: some calls fail while `isCut` is true. */
function createCutStore(calls: readonly (keyof JobDependencies['store'])[]) {
  const state = { isCut: false }
  const store = Object.create(stage.store)
  for (const call of calls) {
    store[call] = (...args: unknown[]) =>
      state.isCut ? rejectCall() : Reflect.apply(stage.store[call], stage.store, args)
  }
  return { state, store: store as JobDependencies['store'] } // a view of the same store
}

test('a claim that is answered after its lease begins no turn that another gateway has', async () => {
  const { runner, turns } = scriptRunner(() => ok('Once'))
  const late = Object.create(stage.store)
  late.claim = async (query: Parameters<Stage['store']['claim']>[0]) => {
    const claimed = await stage.store.claim(query)
    if (claimed.length > 0) await new Promise((resolve) => setTimeout(resolve, 40_000))
    return claimed
  }
  stage.openWorker({ runner, store: late })
  const [id] = await stage.accept(planAgent())
  stage.openWorker({ runner })
  await pass(60_000)
  expect(turns).toHaveLength(1)
  expect((await stage.readJob(id)).state).toBe('done')
})

describe('a crash', () => {
  test('a crash between run and delivery repeats only the delivery', async () => {
    const { runner, turns } = scriptRunner(() => ok('Once'))
    const dying = scriptChannel(() => new Promise<never>(() => {}), { dedupes: true })
    const cut = createCutStore(['report', 'extend', 'claim'])
    stage.openWorker({ runner, channels: new Map([['console', dying.channel]]), store: cut.store })
    const [id] = await stage.accept(planAgent())
    expect(listSteps(await stage.readJob(id))).toEqual(['run done', 'summary done'])
    cut.state.isCut = true

    const next = scriptChannel()
    stage.openWorker({ runner, channels: new Map([['console', next.channel]]) })
    await pass(29_000)
    expect(next.sent).toHaveLength(0)
    await pass(32_000)
    expect(turns).toHaveLength(1)
    expect(next.sent).toMatchObject([{ text: 'Once', nonce: dying.sent[0]?.nonce }])
    expect(listSteps(await stage.readJob(id))).toEqual(['run done', 'summary done', 'deliver done'])
    expect(await stage.readEvents()).toHaveLength(1)
  })

  test('a crash in the middle of a run repeats the run, because nothing of it was recorded', async () => {
    const first = scriptRunner()
    const cut = createCutStore(['report', 'extend', 'claim'])
    stage.openWorker({ runner: first.runner, store: cut.store })
    const [id] = await stage.accept(planAgent())
    cut.state.isCut = true
    const second = scriptRunner(() => ok('Again'))
    stage.openWorker({ runner: second.runner })
    await pass(61_000)
    expect(second.turns).toHaveLength(1)
    expect((await stage.readJob(id)).state).toBe('done')
  })
})

describe('a lease', () => {
  test('a lease is extended for as long as the run takes', async () => {
    const { runner, turns } = scriptRunner()
    stage.openWorker({ runner })
    stage.openWorker({ runner })
    const [id] = await stage.accept(planAgent())
    await pass(300_000)
    expect(turns).toHaveLength(1)
    turns[0]?.end(ok('x'))
    await pass(0)
    expect((await stage.readJob(id)).state).toBe('done')
  })

  test('a lost lease stops the run, and its late result is not recorded', async () => {
    const cut = createCutStore(['extend', 'claim'])
    const first = scriptRunner()
    const slow = scriptChannel()
    stage.openWorker({ runner: first.runner, store: cut.store, channels: new Map([['console', slow.channel]]) })
    const [id] = await stage.accept(planAgent())
    cut.state.isCut = true
    const second = scriptRunner()
    stage.openWorker({ runner: second.runner })
    await pass(61_000)
    expect(second.turns).toHaveLength(1)

    cut.state.isCut = false
    await pass(10_000)
    expect(first.turns[0]?.io.signal.aborted).toBe(true)
    expect(second.turns[0]?.io.signal.aborted).toBe(false)
    first.turns[0]?.end(ok('from the first'))
    await pass(0)
    expect(listSteps(await stage.readJob(id))).toEqual([])
    second.turns[0]?.end(ok('from the second'))
    await pass(0)
    expect(await stage.readEvents()).toEqual(['Hook github: from the second'])
    expect(slow.sent).toHaveLength(0)
  })

  test('a worker that lost its lease notices it at the report at the latest: it records no step and sends nothing', async () => {
    const cut = createCutStore(['extend', 'claim'])
    const first = scriptRunner()
    const late = scriptChannel()
    stage.openWorker({ runner: first.runner, store: cut.store, channels: new Map([['console', late.channel]]) })
    const [id] = await stage.accept(planAgent())
    cut.state.isCut = true
    stage.openWorker({ runner: scriptRunner().runner })
    await pass(61_000)
    first.turns[0]?.end(ok('late'))
    await pass(0)
    expect(listSteps(await stage.readJob(id))).toEqual([])
    expect(late.sent).toHaveLength(0)
  })
})

describe('a clock that jumps ahead of every lease', () => {
  test('a clock that jumps past every lease repeats no running job, and the report of the job is accepted', async () => {
    const { runner, turns } = scriptRunner()
    const worker = stage.openWorker({ runner })
    const [id] = await stage.accept(planAgent())
    vi.setSystemTime(Date.now() + 45_000)
    worker.lookForJobs()
    await pass(0)
    expect(turns).toHaveLength(1)
    expect(turns[0]?.io.signal.aborted).toBe(false)
    turns[0]?.end(ok('x'))
    await pass(0)
    expect((await stage.readJob(id)).state).toBe('done')
    expect(turns).toHaveLength(1)
  })

  /** The clock jumps at the worst moment: after the check of the leases and before the claim. */
  function createJumpingStore() {
    const state = { willJump: false }
    const store: Stage['store'] = Object.create(stage.store)
    store.claim = (query) => {
      if (state.willJump) vi.setSystemTime(Date.now() + 45_000)
      state.willJump = false
      return stage.store.claim(query)
    }
    return { state, store }
  }

  test('a clock that jumps between two calls of the worker repeats no job: the job continues under the new fence', async () => {
    const { runner, turns } = scriptRunner()
    const { state, store } = createJumpingStore()
    const worker = stage.openWorker({ runner, store })
    const [id] = await stage.accept(planAgent())
    state.willJump = true
    worker.lookForJobs()
    await pass(0)
    expect(state.willJump).toBe(false)
    expect(turns).toHaveLength(1)
    await pass(120_000)
    expect(turns[0]?.io.signal.aborted).toBe(false)
    turns[0]?.end(ok('x'))
    await pass(0)
    expect((await stage.readJob(id)).state).toBe('done')
    expect(turns).toHaveLength(1)
  })

  test('a retry runs even if it is claimed while the report of its last attempt is still being written', async () => {
    const { runner, turns } = scriptRunner()
    const { store } = createJumpingStore()
    let answer = () => {}
    store.report = async (job, report) => {
      const written = await stage.store.report(job, report)
      if (report.outcome?.kind === 'retry') await new Promise<void>((resolve) => (answer = resolve))
      return written
    }
    const worker = stage.openWorker({ runner, store })
    const [id] = await stage.accept(planAgent())
    turns[0]?.end({ status: 'error', retryable: true, detail: 'busy' })
    await pass(0)
    expect(await stage.readJob(id)).toMatchObject({ state: 'queued', attempts: 1 })
    vi.setSystemTime(Date.now() + 3_600_000)
    worker.lookForJobs()
    await pass(0)
    expect((await stage.readJob(id)).state).toBe('running')
    answer()
    await pass(0)
    expect(turns).toHaveLength(2)
    turns[1]?.end(ok('x'))
    await pass(0)
    expect((await stage.readJob(id)).state).toBe('done')
  })
})

describe('a process that pauses for longer than its lease', () => {
  /** The pause begins when the store has written that the only message of a reply is about to be sent. */
  function createPausingStore(during: () => Promise<void>) {
    const store: Stage['store'] = Object.create(stage.store)
    let isOver = false
    store.report = async (job, report) => {
      const written = await stage.store.report(job, report)
      if (report.posts === undefined || isOver) return written
      isOver = true
      vi.setSystemTime(Date.now() + 60_000)
      await during()
      return written
    }
    return store
  }

  test('a process that slept longer than its lease sends nothing if another worker has the job, not even a reply of one message', async () => {
    const { runner } = scriptRunner(() => ok('Once'))
    const [first, second] = [scriptChannel(), scriptChannel()]
    const store = createPausingStore(async () => {
      stage.openWorker({ runner, channels: new Map([['console', second.channel]]) }).lookForJobs()
      await pass(0)
    })
    stage.openWorker({ runner, store, channels: new Map([['console', first.channel]]) })
    const [id] = await stage.accept(planAgent())
    await pass(1_000)
    expect([first.sent.length, second.sent.length]).toEqual([0, 1])
    expect((await stage.readJob(id)).state).toBe('done')
  })

  test('a process that slept longer than its lease sends the message if no other worker claimed the job', async () => {
    const { channel, sent } = scriptChannel()
    const { runner } = scriptRunner(() => ok('Once'))
    stage.openWorker({ runner, store: createPausingStore(async () => {}), channels: new Map([['console', channel]]) })
    const [id] = await stage.accept(planAgent())
    await pass(1_000)
    expect(sent).toHaveLength(1)
    expect((await stage.readJob(id)).state).toBe('done')
  })
})

describe('a store that is down', () => {
  test('a report that the store rejects is repeated, and the step is not performed again', async () => {
    const { runner, turns } = scriptRunner()
    const cut = createCutStore(['report', 'extend', 'claim', 'nextDueInMs'])
    stage.openWorker({ runner, store: cut.store })
    const [id] = await stage.accept(planAgent())
    cut.state.isCut = true
    turns[0]?.end(ok('kept'))
    await pass(120_000)
    expect(listSteps(await stage.readJob(id))).toEqual([])
    cut.state.isCut = false
    await pass(10_000)
    expect((await stage.readJob(id)).state).toBe('done')
    expect(turns).toHaveLength(1)
  })

  test('a claim that fails because the store is down is repeated', async () => {
    const { runner, turns } = scriptRunner()
    const cut = createCutStore(['claim'])
    cut.state.isCut = true
    stage.openWorker({ runner, store: cut.store })
    await stage.accept(planAgent())
    await pass(60_000)
    expect(turns).toHaveLength(0)
    cut.state.isCut = false
    await pass(1_000)
    expect(turns).toHaveLength(1)
  })

  test('an outage of the store is logged once when it begins and once when it ends', async () => {
    const lines: string[] = []
    const write = (_: object, message: string) => void lines.push(message)
    const cut = createCutStore(['claim'])
    cut.state.isCut = true
    stage.openWorker({ store: cut.store, log: { debug: write, info: write, warn: write, error: write } })
    await pass(60_000)
    cut.state.isCut = false
    await pass(60_000)
    expect(lines).toEqual(['the store cannot be used; jobs wait; run "hookloom doctor"', 'the store can be used again'])
  })
})

describe('a stop', () => {
  test('a stop waits for the running jobs and claims no new one', async () => {
    const { runner, turns } = scriptRunner()
    const worker = stage.openWorker({ runner, settings: { maxConcurrent: 1 } })
    const [one, two] = await stage.accept(planAgent(), planAgent({ sessionKey: 'hook:b' }))
    const stopped = worker.stop({ graceMs: 10_000 })
    await pass(5_000)
    turns[0]?.end(ok('x'))
    await stopped
    expect((await stage.readJob(one)).state).toBe('done')
    await pass(120_000)
    expect(turns).toHaveLength(1)
    expect(await stage.readJob(two)).toMatchObject({ state: 'queued', attempts: 0 })
  })

  test('a stop releases the jobs that outlast the grace period: they are due at once, and the attempt does not count', async () => {
    const { runner, turns } = scriptRunner()
    const worker = stage.openWorker({ runner })
    const [id] = await stage.accept(planAgent())
    const stopped = worker.stop({ graceMs: 10_000 })
    await pass(9_999)
    expect(turns[0]?.io.signal.aborted).toBe(false)
    await pass(1)
    await stopped
    expect(turns[0]?.io.signal.aborted).toBe(true)
    expect(await stage.readJob(id)).toMatchObject({ state: 'queued', attempts: 0, lastError: undefined, steps: [] })

    const next = scriptRunner(() => ok('Taken over'))
    stage.openWorker({ runner: next.runner })
    await pass(0)
    expect((await stage.readJob(id)).state).toBe('done')
  })

  test('a stop ends in time even if the store is down and a runner ignores its signal', async () => {
    const { runner } = scriptRunner()
    const cut = createCutStore(['report', 'extend', 'claim'])
    const worker = stage.openWorker({ runner, store: cut.store })
    await stage.accept(planAgent())
    cut.state.isCut = true
    let isStopped = false
    void worker.stop({ graceMs: 1_000 }).then(() => (isStopped = true))
    await pass(999)
    expect(isStopped).toBe(false)
    await pass(5_001)
    expect(isStopped).toBe(true)
  })

  test('a stop during a claim releases the jobs that the claim returns', async () => {
    const { runner, turns } = scriptRunner()
    let open = () => {}
    const gate = new Promise<void>((resolve) => (open = resolve))
    const store = Object.create(stage.store)
    store.claim = async (query: Parameters<typeof stage.store.claim>[0]) => {
      const jobs = await stage.store.claim(query)
      await gate
      return jobs
    }
    const [id] = await stage.accept(planAgent())
    const worker = stage.openWorker({ runner, store })
    await pass(0)
    expect((await stage.readJob(id)).state).toBe('running')
    const stopped = worker.stop({ graceMs: 1_000 })
    open()
    await stopped
    expect(turns).toHaveLength(0)
    expect(await stage.readJob(id)).toMatchObject({ state: 'queued', attempts: 0 })
  })

  test('a stop leaves no timer running', async () => {
    const worker = stage.openWorker()
    await pass(0)
    expect(vi.getTimerCount()).toBeGreaterThan(0)
    await worker.stop({ graceMs: 1_000 })
    expect(vi.getTimerCount()).toBe(0)
  })
})
