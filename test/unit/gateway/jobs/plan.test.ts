import { describe, expect, test } from 'vitest'
import { planJobs, findMissingSteps, listSteps } from '../../../../src/gateway/jobs/plan.ts'
import { findStep } from '../../../../src/gateway/jobs/steps.ts'
import type { Planned } from '../../../../src/core/model/action.ts'
import { planAgent, planWake } from './stage.ts'

const woken = { name: 'wake', state: 'done' } as const
const context = { newId: () => 'id', now: 7, wakeStep: () => woken }

describe('planJobs', () => {
  test('a wake is done as soon as it is stored: its event and its step are stored with its delivery', () => {
    const [job] = planJobs([planWake()], context)
    expect(job).toMatchObject({ state: 'done', steps: [{ name: 'event', state: 'done', at: 7 }], lane: undefined })
    expect(job?.events).toEqual([
      { agentId: 'main', sessionKey: 'main', text: 'Somebody rang', source: 'ring', trusted: false, wakes: false },
    ])
  })

  test('the event of a wake with mode "now" asks for a turn, and its step says why the turn has to wait', () => {
    const [job] = planJobs([planWake({ mode: 'now' })], context)
    expect(job?.steps.map(({ name }) => name)).toEqual(['event', 'wake'])
    expect(job?.steps[1]?.detail).toBeUndefined()
    expect(job?.events[0]?.wakes).toBe(true)
    const [deferred] = planJobs([planWake({ mode: 'now' })], {
      ...context,
      wakeStep: () => ({ ...woken, detail: 'It is night.' }),
    })
    expect(deferred?.steps[1]).toMatchObject({ name: 'wake', state: 'done', detail: 'It is night.' })
  })

  test('the event of a wake is trusted only if the configuration turns the boundary off', () => {
    const [job] = planJobs([planWake({ allowUnsafeExternalContent: true })], context)
    expect(job?.events[0]?.trusted).toBe(true)
  })

  test('an agent action becomes a queued job without recorded steps', () => {
    const [job] = planJobs([planAgent()], context)
    expect(job).toMatchObject({ id: 'id', state: 'queued', steps: [], events: [] })
  })

  test('runs of one session share a lane, and runs that only use the default key have no lane', () => {
    const own = planAgent({ agentId: 'ops', sessionKey: 'hook:x' })
    const lanes = planJobs([own, { ...own, sharesSession: true }], context).map(({ lane }) => lane)
    expect(lanes).toEqual(['ops/hook:x', undefined])
  })

  test('every action of a delivery becomes a separate job, in order', () => {
    let n = 0
    const jobs = planJobs([planWake(), planAgent()], { ...context, newId: () => `id-${(n += 1)}` })
    expect(jobs.map(({ id, planned }) => [id, planned.kind])).toEqual([
      ['id-1', 'wake'],
      ['id-2', 'agent'],
    ])
  })
})

describe('listSteps', () => {
  test('an agent run is performed, summarised in the main session, and delivered only if its action asks for it', () => {
    expect(listSteps(planAgent())).toEqual(['run', 'summary', 'deliver'])
    expect(listSteps(planAgent({ action: { deliver: false } }))).toEqual(['run', 'summary'])
    expect(listSteps(planAgent({ action: { wakeMode: 'now' } }))).toEqual(['run', 'summary', 'wake', 'deliver'])
  })

  const main = { agentId: 'main', sessionKey: 'main' }
  test.each<Planned>([
    planWake({ mode: 'now' }),
    planAgent({ action: { wakeMode: 'now' } }),
    { kind: 'heartbeat', ...main, reason: 'interval' },
    { kind: 'alert', ...main, text: 'Dead', event: true, channel: 'console' },
  ])('every step of a job of the kind $kind is defined for this kind', (planned) => {
    const plan = listSteps(planned)
    expect(plan.length).toBeGreaterThan(1)
    expect(plan.filter((name) => !findStep(name).of.includes(planned.kind))).toEqual([])
  })

  test('a recorded step is not missing, whether it was done or skipped', () => {
    const steps = [
      { name: 'run', state: 'done', at: 0 },
      { name: 'summary', state: 'skipped', at: 0 },
    ] as const
    expect(findMissingSteps(planAgent(), steps)).toEqual(['deliver'])
    expect(findMissingSteps(planAgent(), [])).toEqual(['run', 'summary', 'deliver'])
  })
})
