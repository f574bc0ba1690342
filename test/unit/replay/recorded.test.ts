// What was recorded is what a replay of the same mapping gives, whatever keys the mapping has.
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { planJobs } from '../../../src/jobs/plan.ts'
import { Mapping, type MappingInput } from '../../../src/model/config/mapping.ts'
import { listChanges, toOutcome } from '../../../src/replay/outcome.ts'
import { readRecorded } from '../../../src/replay/replay.ts'
import { decide } from '../../../src/pipeline/pipeline.ts'
import { toGeneration, toTestDelivery } from '../pipeline/decide.ts'

const message = 'Look at {{pull_request.title}}'
/** A mapping for each key. */
const samples: Record<keyof Mapping, MappingInput> = {
  id: { id: 'one' },
  match: { match: { path: 'x', event: 'pull_request' } },
  action: { action: 'deliver', channel: 'slack', to: 'C1' },
  wakeMode: { wakeMode: 'next-heartbeat' },
  name: { name: 'PR {{number}}' },
  verify: { verify: { scheme: 'github', secret: 'a secret that is long enough for it' } },
  messageTemplate: {},
  textTemplate: { action: 'wake', textTemplate: message },
  accept: { accept: ['text'] },
  jsonFields: { jsonFields: ['data'] },
  forEach: { forEach: 'labels', messageTemplate: '{{labels[0].name}}' },
  agentId: { agentId: 'other' },
  sessionKey: { sessionKey: 'pr:{{number}}' },
  sessionMode: { sessionMode: 'persistent', sessionKey: 'pr:one' },
  instructions: { instructions: 'Be brief.' },
  result: { result: 'text' },
  verdicts: { verdicts: ['pass', 'fail'] },
  status: { status: 'review' },
  callback: { callback: 'ci' },
  budgets: { budgets: ['team'] },
  deliver: { deliver: false },
  channel: { channel: 'github' },
  to: {
    to: [
      { channel: 'slack', to: 'C1' },
      { channel: 'telegram', to: '42' },
    ],
  },
  model: { model: 'a/b' },
  thinking: { thinking: 'high' },
  timeoutSeconds: { timeoutSeconds: 1.5 },
  flow: { flow: { key: 'pr:{{number}}', onNew: 'replace' } },
  allowUnsafeExternalContent: { allowUnsafeExternalContent: true },
  transform: { transform: { module: 'x.ts' } },
  response: { response: { status: 200, contentType: 'text/plain', body: 'ok {{runId}}' } },
  recover: {},
  expectEvery: { expectEvery: '1h' },
  retain: { retain: true },
}

const payload = {
  action: 'opened',
  number: 7,
  pull_request: { title: 'Fix it', head: { sha: 'a'.repeat(40) } },
  repository: { full_name: 'acme/api', html_url: 'https://github.com/acme/api' },
  labels: [{ name: 'bug' }, { name: 'ui' }],
}

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
    const decideNow = () =>
      decide(delivery, { hook: generation.findHook('x'), config: generation.config, newId: randomUUID })
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
  },
)
