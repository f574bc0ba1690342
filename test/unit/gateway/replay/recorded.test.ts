// What was recorded is what a replay of the same mapping gives, whatever keys the mapping has.
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { planJobs } from '../../../../src/gateway/jobs/plan.ts'
import { Mapping } from '../../../../src/core/model/mapping.ts'
import { listChanges, toOutcome } from '../../../../src/gateway/replay/outcome.ts'
import { readRecorded } from '../../../../src/gateway/replay/replay.ts'
import { decide } from '../../../../src/core/mapping/pipeline.ts'
import { toGeneration, toTestDelivery } from '../../core/mapping/decide.ts'
import { message, payload, samples } from './mapping-keys.ts'

test.each(Object.keys(Mapping.shape))(
  'a replay of an unchanged mapping with %s differs in nothing from the record',
  async (key) => {
    // as: keys of the schema
    const sample = samples[key as keyof Mapping]
    const mapping = { match: { path: 'x' }, messageTemplate: message, ...sample }
    const transforms = { 'x.ts': () => ({ message: 'by code' }) }
    const generation = toGeneration([mapping], { transforms, hooks: { allowRequestSessionKey: true } })
    const [{ id = '' } = {}] = generation.mappings
    const plain = toTestDelivery('x', payload, { source: 'github', event: 'pull_request' })
    const delivery = { ...plain, verifiedBy: 'github', admitted: { token: true, signedFor: [id] } }
    const decideNow = () => decide(delivery, { hook: generation.findHook('x'), newId: randomUUID })
    const decision = await decideNow()
    if (decision.kind !== 'accept') throw new Error(`the mapping is not taken: ${JSON.stringify(decision)}`)
    const jobs = planJobs(decision.actions, {
      newId: randomUUID,
      now: 1,
      wakeStep: () => ({ name: 'wake', state: 'done' }),
    })
    expect(jobs.length).toBeGreaterThan(0)
    const { response } = decision
    const kept = {
      state: 'accepted',
      mappingId: decision.mappingId,
      problem: undefined,
      answer: response ?? { status: 200, body: '{}' },
      // the store keeps plans as JSON
      jobs: JSON.parse(JSON.stringify(jobs)),
    } as const
    const recorded = readRecorded(kept)
    const again = toOutcome(await decideNow(), false)
    expect(recorded).toBeDefined()
    expect(recorded && listChanges(recorded, again)).toEqual([])

    const older = readRecorded({ ...kept, jobs: kept.jobs.map(removeDefaults) })
    expect(older && listChanges(older, again)).toEqual([])
  },
)

const defaults = {
  sessionMode: 'isolated',
  wakeMode: 'now',
  deliver: true,
  channel: 'last',
  allowUnsafeExternalContent: false,
  mode: 'now',
}

/** The job as a version wrote it that had no key with a default yet. */
function removeDefaults(job: { readonly planned: Record<string, unknown> }) {
  const remove = (fields: unknown) =>
    Object.fromEntries(
      Object.entries(Object(fields)).filter(([name, value]) =>
        Object.entries(defaults).every(([key, each]) => key !== name || each !== value),
      ),
    )
  const { action } = job.planned
  return { ...job, planned: { ...remove(job.planned), ...(action !== undefined && { action: remove(action) }) } }
}
