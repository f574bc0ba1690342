import { expect, test } from 'vitest'
import type { JobFields } from '../../../src/model/api/answers.ts'
import { findSpan, listTimes } from '../../../src/inspector/waterfall.ts'

const at = (ms: number) => new Date(1_000_000 + ms).toISOString()
const job = (fields: Pick<JobFields, 'state' | 'steps'>): JobFields => ({
  jobId: 'j',
  runId: 'j',
  deliveryId: 'd',
  kind: 'agent',
  agentId: 'main',
  sessionKey: 'hook:x',
  attempts: 1,
  lastError: null,
  endedBy: null,
  posts: [],
  ...fields,
})
const step = (name: string, startedAt: number, endedAt: number) => ({
  name,
  state: 'done',
  startedAt: at(startedAt),
  at: at(endedAt),
  detail: null,
})

test('a step waits from the end of the step before it, and its bar ends when it was recorded', () => {
  const done = job({
    state: 'done',
    steps: [step('run', 200, 900), { ...step('summary', 0, 910), startedAt: at(905) }],
  })
  const span = findSpan({ receivedAt: at(0), jobs: [done] }, 5_000_000)
  expect(span).toEqual({ from: 1_000_000, until: 1_000_910 })
  expect(listTimes(done, span)).toEqual({
    times: [
      { name: 'run', waitedFrom: 1_000_000, start: 1_000_200, end: 1_000_900 },
      { name: 'summary', waitedFrom: 1_000_900, start: 1_000_905, end: 1_000_910 },
    ],
    running: undefined,
  })
})

test('a run that is not over grows until now, and a step without a start ended when it began', () => {
  const { startedAt: _, ...instant } = step('event', 0, 100)
  const running = job({ state: 'running', steps: [instant] })
  const span = findSpan({ receivedAt: at(0), jobs: [running] }, 1_004_000)
  expect(span.until).toBe(1_004_000)
  expect(listTimes(running, span)).toEqual({
    times: [{ name: 'event', waitedFrom: 1_000_000, start: 1_000_100, end: 1_000_100 }],
    running: { waitedFrom: 1_000_100, start: 1_000_100, end: 1_004_000 },
  })
})
