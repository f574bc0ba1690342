// The ping to an outside monitor: sent while alerts can be delivered, and only then.
import { expect, test } from 'vitest'
import { createAlertHeartbeat } from '../../../../src/gateway/jobs/alert-heartbeat.ts'
import type { Channel, Probe } from '../../../../src/model/channel.ts'
import { createMemoryStore } from '../../../../src/store/sqlite/sqlite.ts'
import { createClock } from '../../../contract/stage.ts'
import { startLoopback } from '../../../e2e/fakes/loopback.ts'
import { buildConfig, scriptChannel } from './stage.ts'

const minute = 60_000
const secretPath = '/ping/9f1c6a0e-secret-of-the-monitor'

async function createHeartbeatStage({ isPinging = () => true }: { isPinging?: () => boolean } = {}) {
  const monitor = await startLoopback(() => ({ status: 200, body: 'OK' }))
  const clock = createClock()
  const store = createMemoryStore({ clock })
  const heartbeat = { url: `${monitor.url}${secretPath}`, every: '5m' }
  const config = buildConfig({ hooks: { alerts: { channel: 'console', to: 'ops', heartbeat } } })
  const lines: string[] = []
  const add = (fields: object, text: string) => void lines.push(`${JSON.stringify(fields)} ${text}`)
  let probed: Probe = { ok: true, detail: 'fine' }
  const channel: Channel = { ...scriptChannel().channel, probe: async () => probed }
  const open = (pings = isPinging) =>
    createAlertHeartbeat({
      store,
      config: () => config,
      channels: () => new Map([['console', channel]]),
      isPinging: pings,
      clock,
      log: { debug: add, info: add, warn: add, error: add },
    })
  const own = open()
  const pass = async (ms: number, of = own) => {
    for (let left = ms; left > 0; left -= minute / 2) {
      clock.advance(minute / 2)
      await of.look()
    }
  }
  return { own, open, pass, monitor, lines, clock, store, setProbe: (next: Probe) => void (probed = next) }
}

test('the monitor is pinged at the start and then at every interval', async () => {
  const { own, pass, monitor } = await createHeartbeatStage()
  await own.look()
  expect(monitor.received.map(({ method, path }) => [method, path])).toEqual([['GET', secretPath]])
  await pass(4 * minute)
  expect(monitor.received).toHaveLength(1)
  await pass(11 * minute)
  expect(monitor.received).toHaveLength(4)
})

test('after an undelivered alert neither this gateway nor a newly started one pings, until an alert is delivered', async () => {
  const { own, open, pass, monitor, lines } = await createHeartbeatStage()
  own.noteAttempt({ isDelivered: false, why: 'telegram: chat not found.' })
  await own.look()
  await pass(20 * minute)
  const other = open()
  await pass(20 * minute, other)
  expect(monitor.received).toEqual([])
  const said = lines.filter((line) => line.includes('the last alert could not be delivered: telegram: chat not found.'))
  // each process logs this line once
  expect(said).toHaveLength(2)
  // the other gateway tried the alert again
  other.noteAttempt({ isDelivered: true })
  await pass(minute)
  expect(monitor.received).toHaveLength(1)
  expect(lines.at(-1)).toMatch(/is sent again/)
})

test('no ping is sent while the chat does not accept the credential', async () => {
  const { own, pass, monitor, setProbe, lines } = await createHeartbeatStage()
  setProbe({ ok: false, detail: 'The token was refused.' })
  await own.look()
  await pass(10 * minute)
  expect(monitor.received).toEqual([])
  expect(lines).toEqual([expect.stringContaining('the channel "console" cannot be used: The token was refused.')])
  setProbe({ ok: true, detail: 'fine' })
  await pass(minute)
  expect(monitor.received).toHaveLength(1)
})

test('a ping that fails is tried again before the next interval, follows no redirect, and its URL is in no log line', async () => {
  const { own, pass, monitor, lines } = await createHeartbeatStage()
  monitor.planAnswers({ status: 500 }, { status: 302, headers: { location: `${monitor.url}/elsewhere` } }, 'reset')
  await own.look()
  await pass(2 * minute)
  expect(monitor.received.map(({ path }) => path)).toEqual([secretPath, secretPath, secretPath, secretPath])
  expect(lines.map((line) => /the monitor [^.]*(?=\. It)|sent again/.exec(line)?.[0])).toEqual([
    'the monitor answers 500',
    'the monitor answers 302',
    expect.stringMatching(/^the monitor does not answer/),
    'sent again',
  ])
  expect(lines.join('\n')).not.toContain('secret-of-the-monitor')
})

test('a gateway without the duty to ping does not ping, and begins at once when it gets the duty', async () => {
  let isHeld = false
  const { pass, monitor } = await createHeartbeatStage({ isPinging: () => isHeld })
  await pass(20 * minute)
  expect(monitor.received).toEqual([])
  isHeld = true
  await pass(minute / 2)
  expect(monitor.received).toHaveLength(1)
})

test('a clock that was set back does not end the pings', async () => {
  const { own, pass, monitor, clock } = await createHeartbeatStage()
  await own.look()
  clock.advance(-24 * 60 * minute)
  await pass(6 * minute)
  expect(monitor.received.length).toBeGreaterThanOrEqual(2)
})
