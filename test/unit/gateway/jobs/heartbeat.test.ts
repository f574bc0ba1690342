// Heartbeats: when the main session has a turn, what its prompt contains, and where its reply goes.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  planAgent,
  buildConfig,
  createStage,
  ok,
  pass,
  scriptChannel,
  scriptRunner,
  type Stage,
  listSteps,
  planWake,
} from './stage.ts'
import { silentLog } from '../../../../src/base/log.ts'
import { newDelivery, newJob } from '../../../contract/stage.ts'

const quiet = { every: '30m', activeHours: { start: '08:00', end: '20:00', timezone: 'UTC' } }
const noon = Date.UTC(2026, 0, 1, 12)
const night = Date.UTC(2026, 0, 1, 23)
const planWakeNow = (text = 'Somebody rang') => planWake({ text, mode: 'now' })
const planWakeLater = (text: string) => planWake({ text, mode: 'next-heartbeat' })

function createStageWith(heartbeat: object = {}): Stage {
  return createStage(buildConfig({ agents: { defaults: { heartbeat } } }))
}

beforeEach(() => {
  vi.useFakeTimers({ now: noon })
})
afterEach(() => {
  vi.useRealTimers()
})

/** A chat that refuses all messages until it is up again. */
function createDownChat() {
  let isDown = true
  const taken: string[] = []
  const { channel } = scriptChannel(({ text }) => {
    if (isDown) return { kind: 'transient', detail: 'The chat is down.' }
    taken.push(text)
    return { kind: 'sent', id: 'p1' }
  })
  return { channels: new Map([['console', channel]]), taken, recover: () => void (isDown = false) }
}

async function waitingOf(stage: Stage) {
  return await stage.store.waitingEvents({ agentId: 'main', sessionKey: 'main', limit: 100 })
}

describe('a wake', () => {
  test('a wake gets its turn at once, with its event inside the boundary, and the turn consumes the event', async () => {
    const stage = createStageWith()
    const { runner, turns } = scriptRunner(() => ok('I saw it.'))
    const { channel, sent } = scriptChannel()
    stage.openWorker({ runner, channels: new Map([['console', channel]]) })
    await stage.openHeartbeats()
    await stage.accept(planWakeNow())
    expect(turns).toHaveLength(0)
    await pass(250)
    expect(turns).toHaveLength(1)
    expect(turns[0]?.request.prompt).toMatch(/EXTERNAL_UNTRUSTED_CONTENT[^]*Somebody rang/)
    expect(turns[0]?.request).toMatchObject({ agentId: 'main', sessionKey: 'main', action: undefined })
    expect(sent.map(({ text }) => text)).toEqual(['I saw it.'])
    expect(await waitingOf(stage)).toMatchObject({ count: 0 })
    const [event] = await stage.store.events({ limit: 1 })
    expect(event?.consumedAt).toBeGreaterThanOrEqual(noon)
  })

  test('a long outage of the store makes one log line, and the turn is queued when the outage ends', async () => {
    const stage = createStageWith()
    const { runner, turns } = scriptRunner()
    stage.openWorker({ runner, settings: { defaultRoute: { channel: 'console' } } })
    const warned: string[] = []
    let tries = 0
    let isDown = true
    const store = {
      ...stage.store,
      addTask: (...task: Parameters<Stage['store']['addTask']>) => {
        tries += 1
        return isDown ? Promise.reject(new Error('down')) : stage.store.addTask(...task)
      },
    }
    await stage.openHeartbeats({ store, log: { ...silentLog, warn: (_, text) => void warned.push(text) } })
    await stage.accept(planWakeNow())
    await pass(60_000)
    expect(tries).toBeGreaterThan(5)
    expect(warned).toEqual(['a heartbeat could not be queued; it is tried again'])
    isDown = false
    await pass(10_000)
    expect(turns).toHaveLength(1)
  })

  test('a heartbeat runs even if all slots are full, and other runs still wait for a slot', async () => {
    const stage = createStageWith()
    const { runner, turns } = scriptRunner()
    stage.openWorker({ runner, settings: { maxConcurrent: 2, defaultRoute: { channel: 'console' } } })
    await stage.openHeartbeats()
    await stage.accept(...['a', 'b', 'c'].map((key) => planAgent({ sessionKey: `hook:${key}` })))
    await pass(1_000)
    expect(turns.map(({ request }) => request.sessionKey)).toEqual(['hook:a', 'hook:b'])
    await stage.accept(planWakeNow())
    await pass(1_000)
    expect(turns.map(({ request }) => request.sessionKey).slice(2)).toEqual(['main'])
    turns[2]?.end(ok('I saw it.'))
    await pass(60_000)
    expect(turns).toHaveLength(3)
    turns[0]?.end(ok('Done.'))
    await pass(1_000)
    expect(turns.map(({ request }) => request.sessionKey).slice(3)).toEqual(['hook:c'])
  })

  test.each(['agent:main', 'all'])(
    'a pause of %s keeps heartbeats back, and one heartbeat reads all events after the resume',
    async (label) => {
      const stage = createStageWith({ every: '5m' })
      const { runner, turns } = scriptRunner(() => ok('I saw it.'))
      stage.openWorker({ runner })
      await stage.store.hold({ label, kind: 'pause', reason: '', author: 'ada', forMs: undefined })
      await stage.openHeartbeats()
      await stage.accept(planWakeNow('First'))
      await pass(600_000)
      await stage.accept(planWakeNow('Second'))
      await pass(600_000)
      expect(turns).toHaveLength(0)
      await stage.store.unhold({ label, kind: 'pause' })
      stage.lookForJobs()
      await pass(1_000)
      expect(turns).toHaveLength(1)
      expect(turns[0]?.request.prompt).toMatch(/First[^]*Second/)
    },
  )

  test('a pause of another agent does not keep heartbeats back', async () => {
    const stage = createStageWith()
    const { runner, turns } = scriptRunner(() => ok('I saw it.'))
    stage.openWorker({ runner })
    await stage.store.hold({ label: 'agent:other', kind: 'pause', reason: '', author: 'ada', forMs: undefined })
    await stage.openHeartbeats()
    await stage.accept(planWakeNow())
    await pass(1_000)
    expect(turns).toHaveLength(1)
  })

  test('a burst of wakes gets one turn, and a wake during a turn gets the next one', async () => {
    const stage = createStageWith()
    const { runner, turns } = scriptRunner()
    stage.openWorker({ runner })
    await stage.openHeartbeats()
    await stage.accept(...Array.from({ length: 20 }, (_, n) => planWakeNow(`ring ${n}`)))
    await stage.accept(planWakeNow('ring 20'))
    await pass(10_000)
    expect(turns).toHaveLength(1)
    await stage.accept(planWakeNow('LATE RING'))
    await pass(60_000)
    expect(turns).toHaveLength(1)
    turns[0]?.end(ok('HEARTBEAT_OK'))
    await pass(0)
    expect(turns).toHaveLength(2)
    expect(turns[0]?.request.prompt).not.toContain('LATE RING')
    expect(turns[1]?.request.prompt).toContain('LATE RING')
    expect(turns[1]?.request.prompt).not.toContain('ring 20')
  })

  test('two wakes get turns no closer together than the minimum interval', async () => {
    const stage = createStageWith({ minIntervalSeconds: 60 })
    const { runner, turns } = scriptRunner(() => ok('HEARTBEAT_OK'))
    stage.openWorker({ runner })
    await stage.openHeartbeats()
    await pass(60_000)
    await stage.accept(planWakeNow())
    await pass(250)
    expect(turns).toHaveLength(1)
    await stage.accept(planWakeNow())
    await pass(59_000)
    expect(turns).toHaveLength(1)
    await pass(1_000)
    expect(turns).toHaveLength(2)
  })

  test('a wake gets its turn even after the clock was set back by a day', async () => {
    const stage = createStageWith()
    const { runner, turns } = scriptRunner(() => ok('HEARTBEAT_OK'))
    stage.openWorker({ runner })
    await stage.openHeartbeats()
    await stage.accept(planWakeNow())
    await pass(10_000)
    vi.setSystemTime(noon - 86_400_000)
    await stage.accept(planWakeNow())
    await pass(10_000)
    expect(turns).toHaveLength(2)
    await pass(3 * 3_600_000)
    await stage.accept(planWakeNow())
    await pass(10_000)
    expect(turns).toHaveLength(3)
  })

  test('a prompt shows the events that fit and counts the others, which soon get another turn: no event is consumed unread', async () => {
    const stage = createStageWith()
    const { runner, turns } = scriptRunner(() => ok('HEARTBEAT_OK'))
    stage.openWorker({ runner })
    await stage.openHeartbeats()
    await stage.accept(...Array.from({ length: 63 }, (_, n) => planWakeNow(`ring ${n}.`)))
    await pass(10_100)
    expect(turns).toHaveLength(1)
    expect(turns[0]?.request.prompt).toContain('ring 34.')
    expect(turns[0]?.request.prompt).not.toContain('ring 35.')
    expect(turns[0]?.request.prompt).toContain('And 28 more events that wait for the next turn.')
    expect((await waitingOf(stage)).count).toBe(28)
    await pass(10_000)
    expect(turns).toHaveLength(2)
    expect(turns[1]?.request.prompt).not.toContain('ring 34.')
    expect(turns[1]?.request.prompt).toContain('ring 35.')
    expect((await waitingOf(stage)).count).toBe(0)
  })

  test('events that did not fit into a heartbeat are in the next one, which comes soon even if none of them asked for a turn', async () => {
    const stage = createStageWith()
    const { runner, turns } = scriptRunner(() => ok('HEARTBEAT_OK'))
    stage.openWorker({ runner })
    await stage.openHeartbeats()
    await stage.accept(...Array.from({ length: 63 }, (_, n) => planWakeLater(`ring ${n}.`)))
    await pass(1_800_000)
    expect(turns).toHaveLength(1)
    expect((await waitingOf(stage)).count).toBe(28)
    await pass(11_000)
    expect(turns).toHaveLength(2)
    expect((await waitingOf(stage)).count).toBe(0)
    await pass(1_000_000)
    expect(turns).toHaveLength(2)
  })

  test('an event of a million characters is alone in its prompt, cut to 32,000, and the prompt says how much is left out', async () => {
    const stage = createStageWith()
    const { runner, turns } = scriptRunner(() => ok('HEARTBEAT_OK'))
    stage.openWorker({ runner })
    await stage.openHeartbeats()
    await stage.accept(planWakeNow('ring '.repeat(200_000)), planWakeNow('and another'))
    await pass(10_000)
    expect(turns[0]?.request.prompt).toContain('[Cut here: 968000 of 1000000 characters are left out.]')
    expect(turns[0]?.request.prompt).not.toContain('and another')
    await pass(10_000)
    expect(turns[1]?.request.prompt).toContain('and another')
    expect((await waitingOf(stage)).count).toBe(0)
  })

  test('the step of a wake outside the active hours says that the wake is deferred, and its turn comes when the hours begin', async () => {
    vi.setSystemTime(night)
    const stage = createStageWith(quiet)
    const { runner, turns } = scriptRunner(() => ok('HEARTBEAT_OK'))
    stage.openWorker({ runner })
    await stage.openHeartbeats()
    const [id] = await stage.accept(planWakeNow())
    expect((await stage.readJob(id)).steps[1]?.detail).toContain('until 08:00')
    await pass(8.9 * 3_600_000)
    expect(turns).toHaveLength(0)
    await pass(0.1 * 3_600_000)
    expect(turns).toHaveLength(1)
    expect(turns[0]?.request.prompt).toContain('Somebody rang')
  })

  test('a wake after a quiet time gets its turn at once', async () => {
    const stage = createStageWith()
    const { runner, turns } = scriptRunner(() => ok('HEARTBEAT_OK'))
    stage.openWorker({ runner })
    await stage.openHeartbeats()
    for (const count of [1, 2]) {
      await stage.accept(planWakeNow())
      await pass(250)
      expect(turns).toHaveLength(count)
      await pass(20_000)
    }
  })

  test('a wake after a restart keeps the minimum interval to the turn before the restart', async () => {
    const stage = createStageWith()
    const { runner, turns } = scriptRunner(() => ok('HEARTBEAT_OK'))
    stage.openWorker({ runner })
    const before = await stage.openHeartbeats()
    await stage.accept(planWakeNow())
    await pass(1_000)
    before.stop()
    await stage.openHeartbeats()
    await stage.accept(planWakeNow())
    await pass(8_000)
    expect(turns).toHaveLength(1)
    await pass(2_000)
    expect(turns).toHaveLength(2)
  })

  test('a wake is skipped if heartbeats are off, and a log line says that its event waits', async () => {
    const stage = createStageWith({ every: 0 })
    const { runner, turns } = scriptRunner(() => ok('x'))
    const lines: string[] = []
    stage.openWorker({ runner })
    await stage.openHeartbeats({ log: { ...silentLog, info: (_, message) => void lines.push(message) } })
    const [id] = await stage.accept(planWakeNow())
    await pass(3 * 3_600_000)
    expect((await stage.readJob(id)).steps[1]).toMatchObject({
      name: 'wake',
      state: 'skipped',
      detail: expect.stringContaining('heartbeat.every is 0'),
    })
    expect(lines).toEqual([expect.stringMatching(/heartbeats are off.*event waits/i)])
    expect(turns).toHaveLength(0)
    expect(await waitingOf(stage)).toMatchObject({ count: 1, wakes: true })
  })

  test.each([
    { runner: { kind: 'command', command: 'review' }, heartbeat: {}, count: 0 },
    { runner: { kind: 'command', command: 'agent' }, heartbeat: { every: '30m' }, count: 1 },
    { runner: { kind: 'command', profile: 'claude' }, heartbeat: {}, count: 1 },
  ])(
    'a run of a command is followed by $count heartbeats: $runner, $heartbeat',
    async ({ runner: mine, heartbeat, count }) => {
      const agents = { defaults: { runner: 'mine', heartbeat } }
      const stage = createStage(buildConfig({ runners: { mine }, agents }))
      const { runner, turns } = scriptRunner(() => ok('Reviewed.'))
      stage.openWorker({ runner })
      await stage.openHeartbeats()
      const [id] = await stage.accept(planAgent({ action: { wakeMode: 'now' } }))
      await pass(7_200_000)
      expect(turns.filter(({ request: { action } }) => action === undefined)).toHaveLength(count)
      const wake = (await stage.readJob(id)).steps.find(({ name }) => name === 'wake')
      expect(wake?.state).toBe(count === 0 ? 'skipped' : 'done')
    },
  )

  test('a wake of an earlier process gets its turn soon, even if the store could not be read at the start', async () => {
    const stage = createStageWith()
    const { runner, turns } = scriptRunner(() => ok('HEARTBEAT_OK'))
    stage.openWorker({ runner })
    await stage.accept(planWakeNow())
    vi.spyOn(stage.store, 'taskAgeMs').mockRejectedValueOnce(new Error('away'))
    await stage.openHeartbeats()
    await pass(20_000)
    expect(turns).toHaveLength(1)
  })

  test('a wake of an earlier process gets its turn at the start', async () => {
    const stage = createStageWith()
    await stage.accept(planWakeNow())
    const { runner, turns } = scriptRunner(() => ok('HEARTBEAT_OK'))
    stage.openWorker({ runner })
    await stage.openHeartbeats()
    await pass(10_000)
    expect(turns).toHaveLength(1)
  })
})

describe('several gateways on one store', () => {
  test('several gateways queue one turn for each interval and one for each wake', async () => {
    const stage = createStageWith({ every: '5m', prompt: 'Look.', minIntervalSeconds: 60 })
    const { runner, turns } = scriptRunner(() => ok('HEARTBEAT_OK'))
    stage.openWorker({ runner })
    const [one] = await Promise.all([stage.openHeartbeats(), stage.openHeartbeats(), stage.openHeartbeats()])
    await pass(15 * 60_000)
    expect(turns).toHaveLength(3)
    await pass(120_000)
    await stage.accept(planWakeNow())
    one.wake('main')
    await pass(10_000)
    expect(turns).toHaveLength(4)
    await pass(4 * 60_000)
    expect(turns).toHaveLength(4)
    await pass(60_000)
    expect(turns).toHaveLength(5)
  })
})

describe('a gateway without the heartbeat duty', () => {
  const never = () => false

  test('a gateway without the duty queues no turn for an interval, but queues a turn for each of its own wakes at once', async () => {
    const stage = createStageWith({ every: '5m', prompt: 'Look.' })
    const { runner, turns } = scriptRunner(() => ok('HEARTBEAT_OK'))
    stage.openWorker({ runner })
    await stage.openHeartbeats({ hasDuty: never })
    await pass(60 * 60_000)
    expect(turns).toHaveLength(0)
    await stage.accept(planWakeNow())
    await pass(10_000)
    expect(turns).toHaveLength(1)
    await pass(60 * 60_000)
    expect(turns).toHaveLength(1)
  })

  test('a gateway that gets the duty continues the interval from the last turn, and stops when it loses the duty', async () => {
    const stage = createStageWith({ every: '5m', prompt: 'Look.' })
    const { runner, turns } = scriptRunner(() => ok('HEARTBEAT_OK'))
    stage.openWorker({ runner })
    let isHeld = false
    const first = await stage.openHeartbeats()
    await pass(5.5 * 60_000)
    first.stop()
    const second = await stage.openHeartbeats({ hasDuty: () => isHeld })
    await pass(60_000)
    isHeld = true
    second.reloadSchedules()
    await pass(3 * 60_000)
    expect(turns).toHaveLength(1)
    await pass(60_000)
    expect(turns).toHaveLength(2)
    isHeld = false
    second.reloadSchedules()
    await pass(60 * 60_000)
    expect(turns).toHaveLength(2)
  })
})

describe('the wake of a gateway that died before it queued the turn', () => {
  test('a wake of a dead gateway gets one turn from the gateway with the duty, and no turn if one was queued since', async () => {
    const stage = createStageWith({ every: '1h', minIntervalSeconds: 0 })
    const { runner, turns } = scriptRunner()
    stage.openWorker({ runner })
    const other = await stage.openHeartbeats({ hasDuty: () => false })
    const withDuty = await stage.openHeartbeats()
    const look = async () => {
      for (const heartbeats of [other, withDuty]) await heartbeats.lookForWakes()
      await pass(1_000)
    }
    const event = { agentId: 'main', sessionKey: 'main', text: 'Ring', source: 'bell', trusted: false, wakes: true }
    await stage.store.append(newDelivery({ at: Date.now(), jobs: [newJob({ state: 'done', events: [event] })] }))
    // the gateway of the event may still queue the turn
    await look()
    expect(turns).toHaveLength(0)
    await look()
    await look()
    expect(turns).toHaveLength(1)
    // the turn runs, and has the event
    await look()
    await look()
    expect(turns).toHaveLength(1)
    turns[0]?.end(ok('HEARTBEAT_OK'))
    await look()
    expect(turns).toHaveLength(1)
  })
})

describe('the next heartbeat', () => {
  test('a heartbeat is late, not omitted, if the store was slow with the turn before it', async () => {
    const stage = createStageWith({ every: '1m', prompt: 'Look' })
    const { runner, turns } = scriptRunner(() => ok('HEARTBEAT_OK'))
    stage.openWorker({ runner })
    const { addTask, taskAgeMs } = stage.store
    const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
    let isSlow = false
    const store = {
      ...stage.store,
      async addTask(task: Parameters<typeof addTask>[0]) {
        isSlow = !isSlow
        if (isSlow) await sleep(300)
        return addTask(task)
      },
      async taskAgeMs(name: string) {
        await sleep(500)
        return taskAgeMs(name)
      },
    }
    const opened = stage.openHeartbeats({ store })
    await pass(1_000)
    await opened
    await pass(10.5 * 60_000)
    expect(turns).toHaveLength(10)
  })

  test('heartbeats keep the minimum interval, even if the configured interval is shorter', async () => {
    const stage = createStageWith({ every: '0.01s', prompt: 'Look.' })
    const { runner, turns } = scriptRunner(() => ok('HEARTBEAT_OK'))
    stage.openWorker({ runner })
    await stage.openHeartbeats()
    await pass(60_000)
    expect(turns).toHaveLength(6)
  })

  test('an event that can wait gets no turn before the interval is over', async () => {
    const stage = createStageWith()
    const { runner, turns } = scriptRunner(() => ok('HEARTBEAT_OK'))
    stage.openWorker({ runner })
    await stage.openHeartbeats()
    await stage.accept(planWake({ mode: 'next-heartbeat' }))
    await pass(29 * 60_000)
    expect(turns).toHaveLength(0)
    await pass(60_000)
    expect(turns[0]?.request.prompt).toContain('Somebody rang')
  })

  test('a heartbeat does not call the model if no event waits and there is nothing to check', async () => {
    const stage = createStageWith()
    const { runner, turns } = scriptRunner(() => ok('x'))
    stage.openWorker({ runner })
    await stage.openHeartbeats()
    await pass(31 * 60_000)
    expect(turns).toHaveLength(0)
    const job = await stage.readJob('beat-1')
    expect(job.state).toBe('done')
    expect(listSteps(job)).toEqual(['run skipped', 'deliver skipped'])
  })

  test('a prompt of the operator is sent at every interval', async () => {
    const stage = createStageWith({ every: '5m', prompt: 'Is the oven off?' })
    const { runner, turns } = scriptRunner(() => ok('HEARTBEAT_OK'))
    stage.openWorker({ runner })
    await stage.openHeartbeats()
    await pass(16 * 60_000)
    expect(turns).toHaveLength(3)
    expect(turns[0]?.request.prompt).toContain('Is the oven off?')
    expect(await stage.store.messages({ agentId: 'main', sessionKey: 'main', limit: 9 })).toEqual([])
  })
})

describe('a turn of the main session', () => {
  test('a turn of the main session that fails keeps its events for the next turn', async () => {
    const stage = createStageWith()
    let tries = 0
    const { runner, turns } = scriptRunner(() =>
      (tries += 1) === 1 ? { status: 'error', retryable: true, detail: 'busy' } : ok('Done'),
    )
    stage.openWorker({ runner })
    await stage.openHeartbeats()
    await stage.accept(planWakeNow())
    await pass(300)
    expect(turns).toHaveLength(1)
    expect((await waitingOf(stage)).count).toBe(1)
    await pass(5_000)
    expect(turns).toHaveLength(2)
    expect((await waitingOf(stage)).count).toBe(0)
  })

  test('a prompt that is too long for its model is shortened until it fits', async () => {
    const stage = createStageWith()
    const takes = 4_400
    const { runner, turns } = scriptRunner(({ prompt, history }) => {
      const chars = history.reduce((sum, { text }) => sum + text.length, prompt.length)
      return chars > takes ? { status: 'too-long', detail: 'The prompt is too long.' } : ok('Noted. '.repeat(200))
    })
    stage.openWorker({ runner })
    await stage.openHeartbeats()
    const long = 'It rings. '.repeat(80)
    await stage.accept(...Array.from({ length: 12 }, (_, n) => planWakeNow(`ring ${n}. ${long}`)))
    await pass(10_000)
    const tried = turns.map(({ request: { prompt } }) => prompt.match(/ring \d+\./g)?.length)
    expect(tried).toEqual([6, 3])
    expect(turns.at(-1)?.request.prompt).toContain('And 9 more events that wait for the next turn.')
    expect((await waitingOf(stage)).count).toBe(9)

    // the next turn also has earlier messages, as many as fit
    await stage.accept(planWakeNow(`ring 12. ${long}`))
    await pass(600_000)
    expect(turns.at(-1)?.request.prompt).toContain('ring 12.')
    expect((await waitingOf(stage)).count).toBe(0)
  })

  test('a turn of the main session whose prompt cannot be shortened further fails once and keeps its events', async () => {
    const stage = createStageWith()
    const { runner, turns } = scriptRunner(() => ({ status: 'too-long', detail: 'The prompt is too long.' }))
    stage.openWorker({ runner })
    await stage.openHeartbeats()
    await stage.accept(planWakeNow())
    await pass(60_000)
    expect(turns).toHaveLength(1)
    expect((await stage.readJob('beat-2')).lastError).toBe('The prompt is too long.')
    expect((await waitingOf(stage)).count).toBe(1)
  })

  test('a turn of the main session has the earlier messages', async () => {
    const stage = createStageWith()
    const { runner, turns } = scriptRunner(() => ok('Noted.'))
    stage.openWorker({ runner })
    await stage.openHeartbeats()
    await stage.accept(planWakeNow('first'))
    await pass(20_000)
    await stage.accept(planWakeNow('second'))
    await pass(20_000)
    expect(turns[1]?.request.history.map(({ role }) => role)).toEqual(['user', 'assistant'])
    expect(turns[1]?.request.history[0]?.text).toContain('first')
  })

  test('a reply that only acknowledges is not delivered; any other reply is delivered without the acknowledgement', async () => {
    const stage = createStageWith({ ackMaxChars: 20 })
    const replies = ['HEARTBEAT_OK all is well', 'HEARTBEAT_OK, but the oven is on and smoking']
    const { runner } = scriptRunner(() => ok(replies.shift() ?? ''))
    const { channel, sent } = scriptChannel()
    stage.openWorker({ runner, channels: new Map([['console', channel]]) })
    await stage.openHeartbeats()
    await stage.accept(planWakeNow())
    await pass(20_000)
    expect(sent).toHaveLength(0)
    await stage.accept(planWakeNow())
    await pass(20_000)
    expect(sent.map(({ text }) => text)).toEqual(['but the oven is on and smoking'])
  })

  test('a reply of the main session without a route is kept, and the step says which key to set', async () => {
    const stage = createStageWith()
    const { runner } = scriptRunner(() => ok('Look here'))
    stage.openWorker({ runner, settings: { defaultRoute: undefined } })
    await stage.openHeartbeats()
    await stage.accept(planWakeNow())
    await pass(20_000)
    const job = await stage.readJob('beat-2')
    expect(job.state).toBe('done')
    expect(job.steps[1]).toMatchObject({ state: 'skipped', detail: expect.stringContaining('channels.default') })
  })
})

describe('an undelivered reply of the main session', () => {
  const passInterval = async () => await pass(11_000)

  test('an undelivered heartbeat reply delays no later heartbeat, and each reply is sent once when the chat is back', async () => {
    const stage = createStageWith()
    const { runner, turns } = scriptRunner(() => ok(`Reply ${turns.length}`))
    const chat = createDownChat()
    stage.openWorker({ runner, channels: chat.channels })
    await stage.openHeartbeats()
    for (const text of ['kettle', 'oven', 'bath']) {
      await stage.accept(planWakeNow(text))
      await passInterval()
    }
    expect(turns.map(({ request }) => /kettle|oven|bath/.exec(request.prompt)?.[0])).toEqual(['kettle', 'oven', 'bath'])
    expect((await waitingOf(stage)).count).toBe(0)
    chat.recover()
    await pass(3_600_000)
    expect(chat.taken.toSorted()).toEqual(['Reply 1', 'Reply 2', 'Reply 3'])
  })

  test('an undelivered reply of a mapping delays neither the heartbeats nor the next turn, and its run is not repeated', async () => {
    const stage = createStageWith()
    const { runner, turns } = scriptRunner(({ action }) => ok(action === undefined ? 'HEARTBEAT_OK' : 'Done'))
    const chat = createDownChat()
    const first = stage.openWorker({ runner, channels: chat.channels })
    await stage.openHeartbeats()
    const own = planAgent({ sessionKey: 'main', action: { wakeMode: 'now' } })
    await stage.accept(own)
    await passInterval()
    await stage.accept(own)
    await passInterval()
    expect(turns.map(({ request }) => request.action === undefined)).toEqual([false, true, false, true])
    await first.stop({ graceMs: 0 })
    chat.recover()
    stage.openWorker({ runner, channels: chat.channels })
    await pass(3_600_000)
    expect(chat.taken).toEqual(['Done', 'Done'])
    expect(turns).toHaveLength(4)
  })
})

describe('a hook run', () => {
  test('a hook run with wakeMode "now" is followed by a turn of the main session, which reads its summary', async () => {
    const stage = createStageWith()
    const { runner, turns } = scriptRunner(({ action }) => ok(action === undefined ? 'HEARTBEAT_OK' : 'Reviewed.'))
    stage.openWorker({ runner })
    await stage.openHeartbeats()
    const [id] = await stage.accept(planAgent({ action: { wakeMode: 'now', name: 'CI' } }))
    await pass(20_000)
    expect(listSteps(await stage.readJob(id))).toEqual(['run done', 'summary done', 'wake done', 'deliver done'])
    expect(turns).toHaveLength(2)
    expect(turns[1]?.request.prompt).toContain('Hook CI: Reviewed.')
  })

  test('a hook run with wakeMode "now" is followed by a turn of the main session even while its chat is down', async () => {
    const stage = createStageWith()
    const { runner, turns } = scriptRunner(({ action }) => ok(action === undefined ? 'HEARTBEAT_OK' : 'Reviewed.'))
    const chat = createDownChat()
    stage.openWorker({ runner, channels: chat.channels })
    await stage.openHeartbeats()
    const [id] = await stage.accept(planAgent({ action: { wakeMode: 'now', name: 'CI' } }))
    await pass(250)
    expect(turns).toHaveLength(2)
    expect(turns[1]?.request.prompt).toContain('Hook CI: Reviewed.')
    expect(listSteps(await stage.readJob(id))).toEqual(['run done', 'summary done', 'wake done'])
    chat.recover()
    await pass(3_600_000)
    expect(chat.taken).toEqual(['Reviewed.'])
    expect((await stage.readJob(id)).state).toBe('done')
  })

  test('the reply of a hook run is delivered while the turn that the run caused is still running', async () => {
    const stage = createStageWith()
    const { runner, turns } = scriptRunner(({ action }) => (action === undefined ? undefined : ok('Reviewed.')))
    const { channel, sent } = scriptChannel(async () => {
      await new Promise((resolve) => setTimeout(resolve, 5_000))
      return { kind: 'sent', id: 'p1' }
    })
    stage.openWorker({ runner, channels: new Map([['console', channel]]), settings: { maxConcurrent: 2 } })
    await stage.openHeartbeats()
    const [id] = await stage.accept(planAgent({ action: { wakeMode: 'now' } }))
    await pass(250)
    expect([turns.length, sent.length]).toEqual([2, 1])
    await pass(5_000)
    expect((await stage.readJob(id)).state).toBe('done')
  })

  test('a hook run with wakeMode "now" is followed by a turn of the main session even if it failed permanently', async () => {
    const stage = createStageWith()
    const { runner, turns } = scriptRunner(({ action }) =>
      action === undefined ? ok('HEARTBEAT_OK') : { status: 'error', retryable: false, detail: 'no key' },
    )
    stage.openWorker({ runner })
    await stage.openHeartbeats()
    await stage.accept(planAgent({ action: { wakeMode: 'now' } }))
    await pass(20_000)
    expect(turns.at(-1)?.request.prompt).toContain('(error): no key')
  })

  test('a hook run in the main session reads the waiting events and consumes them', async () => {
    const stage = createStageWith()
    const { runner, turns } = scriptRunner(() => ok('Done'))
    stage.openWorker({ runner })
    await stage.accept(planWake())
    await stage.accept(planAgent({ sessionKey: 'main' }))
    await pass(0)
    expect(turns[0]?.request.prompt).toContain('Somebody rang')
    expect((await waitingOf(stage)).count).toBe(1)
    const left = await waitingOf(stage)
    expect(left.events[0]?.text).toContain('Hook github: Done')
  })
})
