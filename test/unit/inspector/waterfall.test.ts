import { expect, test } from 'vitest'
import type { JobFields } from '../../../src/model/api/answers.ts'
import { findSpan, listTimes } from '../../../src/inspector/waterfall.ts'

const toTime = (ms: number) => new Date(1_000_000 + ms).toISOString()
const buildJob = (fields: Partial<JobFields> & Pick<JobFields, 'state' | 'steps'>): JobFields => ({
  jobId: 'j',
  runId: 'j',
  deliveryId: 'd',
  kind: 'agent',
  agentId: 'main',
  sessionKey: 'hook:x',
  attempts: 1,
  lastError: null,
  failingSince: null,
  endedBy: null,
  failures: [],
  posts: [],
  ...fields,
})
const buildStep = (name: string, startedAt: number, endedAt: number) => ({
  name,
  state: 'done',
  startedAt: toTime(startedAt),
  at: toTime(endedAt),
  detail: null,
})

test('the wait of a step begins when the previous step ends, and the bar of a step ends when the step was recorded', () => {
  const done = buildJob({
    state: 'done',
    steps: [buildStep('run', 200, 900), { ...buildStep('summary', 0, 910), startedAt: toTime(905) }],
  })
  const span = findSpan({ receivedAt: toTime(0), jobs: [done] }, 5_000_000)
  expect(span).toEqual({ from: 1_000_000, until: 1_000_910 })
  expect(listTimes(done, span)).toEqual({
    times: [
      { waitedFrom: 1_000_000, start: 1_000_200, end: 1_000_900, failed: [] },
      { waitedFrom: 1_000_900, start: 1_000_905, end: 1_000_910, failed: [] },
    ],
    rest: undefined,
  })
})

test('the bar of an unfinished run extends to the current time, and a step without a start time has a bar without length', () => {
  const { startedAt: _, ...instant } = buildStep('event', 0, 100)
  const running = buildJob({ state: 'running', steps: [instant] })
  const span = findSpan({ receivedAt: toTime(0), jobs: [running] }, 1_004_000)
  expect(span.until).toBe(1_004_000)
  expect(listTimes(running, span)).toEqual({
    times: [{ waitedFrom: 1_000_000, start: 1_000_100, end: 1_000_100, failed: [] }],
    rest: { waitedFrom: 1_000_100, start: 1_000_100, end: 1_004_000, failed: [] },
  })
})

test('an attempt that failed belongs to the step that was tried, even if that step is not recorded yet', () => {
  const steps = [buildStep('run', 50, 100)]
  const failures = [20, 300, 700].map((ms) => ({ at: toTime(ms), error: 'busy' }))
  const first = { waitedFrom: 1_000_000, start: 1_000_050, end: 1_000_100, failed: [1_000_020] }
  const failed = [1_000_300, 1_000_700]
  const waiting = buildJob({ state: 'queued', steps, failures })
  const span = findSpan({ receivedAt: toTime(0), jobs: [waiting] }, 1_000_900)
  const rest = { waitedFrom: 1_000_100, failed }
  expect(listTimes(waiting, span)).toEqual({ times: [first], rest: { ...rest, start: 1_000_900, end: 1_000_900 } })
  const again = buildJob({ state: 'running', steps, failures })
  expect(listTimes(again, span)).toEqual({ times: [first], rest: { ...rest, start: 1_000_700, end: 1_000_900 } })
  const dead = buildJob({ state: 'dead', steps, failures })
  const all = findSpan({ receivedAt: toTime(0), jobs: [dead] }, 5_000_000)
  expect(all.until).toBe(1_000_700)
  expect(listTimes(dead, all)).toEqual({ times: [first], rest: { ...rest, start: 1_000_700, end: 1_000_700 } })
})
