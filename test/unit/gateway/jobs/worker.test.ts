import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  planAgent,
  createStage,
  ok,
  pass,
  scriptChannel,
  scriptRunner,
  type Stage,
  listSteps,
  planWake,
} from './stage.ts'

const start = 1_700_000_000_000
let stage: Stage

beforeEach(() => {
  vi.useFakeTimers({ now: start })
  stage = createStage()
})
afterEach(() => {
  vi.useRealTimers()
})

const quiet = { deliver: false }

describe('a job that goes well', () => {
  test('a job runs, is summarised in the main session and delivers its reply, in that order', async () => {
    const { runner } = scriptRunner(() => ok('All green'))
    const { channel, sent } = scriptChannel()
    stage.openWorker({ runner, channels: new Map([['console', channel]]) })
    const [id] = await stage.accept(planAgent({ action: { name: 'CI', to: 'me' } }))
    const job = await stage.readJob(id)
    expect(job.state).toBe('done')
    expect(listSteps(job)).toEqual(['run done', 'summary done', 'deliver done'])
    expect(job.steps[2]?.detail).toBe('sent to console me as p1')
    expect(await stage.readEvents()).toEqual(['Hook CI: All green'])
    expect(sent).toMatchObject([{ to: 'me', text: 'All green', run: { id, agentId: 'main', name: 'CI' } }])
  })

  test('a reply with deliver false goes to the main session only', async () => {
    const { channel, sent } = scriptChannel()
    stage.openWorker({ channels: new Map([['console', channel]]) })
    const [id] = await stage.accept(planAgent({ action: quiet }))
    expect(listSteps(await stage.readJob(id))).toEqual(['run done', 'summary done'])
    expect(sent).toHaveLength(0)
    expect(await stage.readEvents()).toEqual(['Hook github: Done.'])
  })

  test('a reply that only acknowledges is summarised in the main session and not posted, and its step says why', async () => {
    const { channel, sent } = scriptChannel()
    const { runner } = scriptRunner(() => ok('HEARTBEAT_OK'))
    stage.openWorker({ runner, channels: new Map([['console', channel]]) })
    const [id] = await stage.accept(planAgent())
    const job = await stage.readJob(id)
    expect(sent).toHaveLength(0)
    expect(listSteps(job)).toEqual(['run done', 'summary done', 'deliver skipped'])
    expect(job.steps[2]?.detail).toContain('HEARTBEAT_OK')
    expect(job.state).toBe('done')
    expect(await stage.readEvents()).toEqual(['Hook github: HEARTBEAT_OK'])
  })

  test('a simulated run is marked as simulated, and a real one is not', async () => {
    const { runner, turns } = scriptRunner()
    stage.openWorker({ runner })
    const [one, two] = await stage.accept(planAgent({ sessionKey: 'hook:1' }), planAgent({ sessionKey: 'hook:2' }))
    turns[0]?.end({ status: 'ok', text: 'x', simulated: true })
    turns[1]?.end(ok('x'))
    await pass(0)
    expect((await stage.readJob(one)).steps[0]?.detail).toContain('simulated')
    expect((await stage.readJob(two)).steps[0]?.detail).not.toContain('simulated')
  })

  test('a wake becomes an event in the main session without a worker', async () => {
    const [id] = await stage.accept(planWake())
    expect((await stage.readJob(id)).state).toBe('done')
    expect(await stage.readEvents()).toEqual(['Somebody rang'])
  })

  test('the runner gets the fields of the action, and the message inside the boundary', async () => {
    const { runner, turns } = scriptRunner()
    stage.openWorker({ runner })
    const action = { message: 'Fix it', model: 'a/b', thinking: 'low', timeoutSeconds: 9 } as const
    const [id] = await stage.accept(planAgent({ agentId: 'ops', sessionKey: 'hook:z', action }))
    expect(turns[0]?.request).toMatchObject({
      runId: id,
      attempt: 1,
      agentId: 'ops',
      sessionKey: 'hook:z',
      model: 'a/b',
      thinking: 'low',
      message: 'Fix it',
      deadline: start + 9_000,
      history: [],
    })
    expect(turns[0]?.request.prompt).toMatch(/EXTERNAL_UNTRUSTED_CONTENT id="[0-9a-f]{16}"[^]*Fix it/)
  })

  test('two prompts have different boundary ids', async () => {
    const { runner, turns } = scriptRunner()
    stage.openWorker({ runner })
    await stage.accept(planAgent({ sessionKey: 'hook:1' }), planAgent({ sessionKey: 'hook:2' }))
    const ids = turns.map(({ request }) => /CONTENT id="([0-9a-f]{16})"/.exec(request.prompt)?.[1])
    expect(new Set(ids).size).toBe(2)
  })
})

describe('transcripts', () => {
  const readTranscript = (sessionKey: string) => stage.store.messages({ agentId: 'main', sessionKey, limit: 10 })

  test('the prompt and the reply of a run are recorded under its session key', async () => {
    stage.openWorker()
    const [id] = await stage.accept(planAgent({ action: { ...quiet, message: 'Hello' } }))
    const messages = await readTranscript('hook:a')
    expect(messages).toMatchObject([
      { role: 'user', text: expect.stringContaining('Hello'), runId: id },
      { role: 'assistant', text: 'Done.', runId: id },
    ])
    expect(messages[0]?.text).toContain('EXTERNAL_UNTRUSTED_CONTENT')
  })

  test('a persistent session continues where it ended, and an isolated run of the same key begins empty', async () => {
    const { runner, turns } = scriptRunner(({ runId }) => ok(`reply of ${runId}`))
    stage.openWorker({ runner })
    const persistent = planAgent({ action: quiet, sessionMode: 'persistent' })
    const [first] = await stage.accept(persistent)
    await stage.accept(persistent)
    await stage.accept(planAgent({ action: quiet }))
    await stage.accept(planAgent({ action: quiet, sessionMode: 'persistent', sessionKey: 'hook:other' }))
    expect(turns.map(({ request }) => request.history.map(({ role }) => role))).toEqual([
      [],
      ['user', 'assistant'],
      [],
      [],
    ])
    expect(turns[1]?.request.history[1]?.text).toBe(`reply of ${first}`)
  })
})

describe('the order of runs', () => {
  test('runs of one session key never overlap and keep their order of arrival', async () => {
    const { runner, turns } = scriptRunner()
    stage.openWorker({ runner })
    const [one] = await stage.accept(planAgent())
    const [two] = await stage.accept(planAgent())
    expect(turns.map(({ request }) => request.runId)).toEqual([one])
    turns[0]?.end(ok('x'))
    await pass(0)
    expect(turns.map(({ request }) => request.runId)).toEqual([one, two])
  })

  test('a run that waits for a retry delays later runs of its key', async () => {
    const { runner, turns } = scriptRunner()
    stage.openWorker({ runner })
    const [one, two] = await stage.accept(planAgent({ action: quiet }), planAgent({ action: quiet }))
    turns[0]?.end({ status: 'error', retryable: true, detail: 'busy' })
    await pass(1_999)
    expect(turns).toHaveLength(1)
    await pass(1)
    turns[1]?.end(ok('x'))
    await pass(0)
    expect(turns.map(({ request }) => request.runId)).toEqual([one, one, two])
  })

  test('runs of different keys, and of one key of different agents, run at the same time', async () => {
    const { runner, turns } = scriptRunner()
    stage.openWorker({ runner })
    await stage.accept(
      planAgent({ sessionKey: 'hook:1' }),
      planAgent({ sessionKey: 'hook:2' }),
      planAgent({ sessionKey: 'hook:2', agentId: 'ops' }),
    )
    expect(turns).toHaveLength(3)
  })

  test('runs that only share the default key run at the same time', async () => {
    const { runner, turns } = scriptRunner()
    stage.openWorker({ runner })
    const shared = planAgent({ sharesSession: true })
    await stage.accept(shared, shared)
    expect(turns).toHaveLength(2)
  })

  test('at most maxConcurrent jobs run, and the next begins when one ends', async () => {
    const { runner, turns } = scriptRunner()
    stage.openWorker({ runner, settings: { maxConcurrent: 2 } })
    const keys = ['1', '2', '3'].map((key) => planAgent({ sessionKey: `hook:${key}` }))
    await stage.accept(...keys)
    expect(turns).toHaveLength(2)
    turns[1]?.end(ok('x'))
    await pass(0)
    expect(turns).toHaveLength(3)
  })

  test('while all slots are full, a new run costs no call of the store; what may have ended a run does', async () => {
    const calls: string[] = []
    const watched = new Proxy(stage.store, {
      get: (store, name: keyof typeof stage.store) => {
        calls.push(name)
        return store[name]
      },
    })
    const { runner } = scriptRunner()
    const worker = stage.openWorker({ runner, store: watched, settings: { maxConcurrent: 1 } })
    await stage.accept(planAgent())
    calls.length = 0
    for (let looks = 0; looks < 5; looks += 1) {
      worker.lookForJobs()
      await pass(0)
    }
    expect(calls).toEqual([])
    worker.lookForTasks()
    await pass(0)
    expect(calls).toContain('jobsToEnd')
  })

  test('fullSince is the time since which no slot has been free, even if runs have ended since, and each turn has its time limit', async () => {
    const { runner, turns } = scriptRunner()
    const worker = stage.openWorker({ runner, settings: { maxConcurrent: 2 } })
    const ids = await stage.accept(...['1', '2', '3'].map((key) => planAgent({ sessionKey: key, action: quiet })))
    const [since, until] = [start, start + 600_000]
    expect(worker.slots()).toEqual({
      used: 2,
      most: 2,
      fullSince: start,
      turns: [ids[0], ids[1]].map((jobId) => ({ jobId, since, until })),
    })
    await pass(5_000)
    turns[0]?.end(ok('x'))
    await pass(0)
    expect(worker.slots()).toMatchObject({
      fullSince: start,
      turns: [{ since }, { jobId: ids[2], since: start + 5_000 }],
    })
    turns[1]?.end(ok('x'))
    await pass(0)
    expect(worker.slots()).toMatchObject({ used: 1, fullSince: undefined, turns: [{ jobId: ids[2] }] })
    await stage.accept(planAgent({ sessionKey: '4', action: quiet }))
    expect(worker.slots()).toMatchObject({ used: 2, fullSince: start + 5_000 })
  })

  test('a worker that starts finds the jobs that were queued before, without a notification', async () => {
    const { runner, turns } = scriptRunner()
    await stage.accept(planAgent())
    stage.openWorker({ runner })
    await pass(0)
    expect(turns).toHaveLength(1)
  })
})
