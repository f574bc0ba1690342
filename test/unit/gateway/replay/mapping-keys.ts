// A mapping for each key that a mapping can have, and a payload that all of them take.
import type { Mapping, MappingInput } from '../../../../src/core/model/mapping.ts'

export const message = 'Look at {{pull_request.title}}'
/** A mapping for each key. */
export const samples: Record<keyof Mapping, MappingInput> = {
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

export const payload = {
  action: 'opened',
  number: 7,
  pull_request: { title: 'Fix it', head: { sha: 'a'.repeat(40) } },
  repository: { full_name: 'acme/api', html_url: 'https://github.com/acme/api' },
  labels: [{ name: 'bug' }, { name: 'ui' }],
}
