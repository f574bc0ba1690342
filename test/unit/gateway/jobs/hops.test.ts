// The hop count of a post, which ends a loop of replies that start runs.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import {
  planAgent,
  buildConfig,
  createStage,
  ok,
  pass,
  scriptChannel,
  scriptRunner,
  type Stage,
  planWake,
} from './stage.ts'

const minute = 60_000
const origin = { hook: 'github', hops: 3 }

let stage: Stage
beforeEach(() => {
  vi.useFakeTimers()
  stage = createStage(buildConfig({ hooks: { alerts: { channel: 'console', to: 'ops' } } }))
})
afterEach(() => void vi.useRealTimers())

function open(runner = scriptRunner(() => ok('Done.'))) {
  const { channel, sent } = scriptChannel()
  stage.openWorker({ runner: runner.runner, channels: new Map([['console', channel]]) })
  return { listHops: () => sent.map(({ run }) => run.hops), turns: runner.turns }
}

test('a reply counts one hop more than the request that caused it, and so does the request to the runner', async () => {
  const { listHops, turns } = open()
  await stage.accept(planAgent({ sessionKey: 'hook:a' }))
  await stage.accept(planAgent({ sessionKey: 'hook:b', origin }))
  expect(listHops()).toEqual([1, 4])
  expect(turns.map(({ request }) => request.hops)).toEqual([1, 4])
})

test('the reply of a heartbeat counts one hop more than the event with the most hops among those that the heartbeat read', async () => {
  await stage.accept(planWake())
  await stage.accept({ ...planWake(), origin })
  await stage.accept(planWake())
  const { listHops, turns } = open()
  await stage.openHeartbeats()
  await pass(31 * minute)
  expect(turns.map(({ request }) => request.hops)).toEqual([4])
  expect(listHops()).toEqual([4])
})

test('a heartbeat that read the summary of a run counts one hop more than the request of that run', async () => {
  const { listHops } = open()
  await stage.accept(planAgent({ origin, action: { deliver: false } }))
  await stage.openHeartbeats()
  await pass(31 * minute)
  expect(listHops()).toEqual([4])
})

test('the alert about a failed run counts one hop more than its request', async () => {
  const { listHops } = open(scriptRunner(() => ({ status: 'error', retryable: false, detail: 'The key was refused.' })))
  await stage.accept(planAgent({ origin, action: { deliver: false } }))
  await pass(minute)
  expect(listHops()).toEqual([4])
})

test('the alert about a parked delivery counts one hop more than that delivery', async () => {
  const { listHops } = open()
  stage.alerts().reportParked({ deliveryId: 'd1', hook: 'github', waitsFor: 'a.ts', hops: 3 })
  await pass(minute)
  expect(listHops()).toEqual([4])
})
