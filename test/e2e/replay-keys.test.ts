// A replay of what the gateway stored, without any edit: no key of a mapping may look like a change.
import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { Mapping } from '../../src/core/model/mapping.ts'
import type { ReplayReport } from '../../src/model/api/replay.ts'
import { message, payload, samples } from '../unit/gateway/replay/mapping-keys.ts'
import { runCommand } from './command.ts'
import { describeEngines } from './engines.ts'
import { gatewayToken, hookToken } from './gateway.ts'

const secret = 'a secret that is long enough for it'
const github = { scheme: 'github', secret }
const keys = Object.keys(Mapping.shape)
const isSigned = (key: string) => ['verify', 'status', 'recover'].includes(key)

const mappings = keys.map((key) => ({
  id: key,
  messageTemplate: message,
  deliver: false,
  // as: keys of the schema
  ...samples[key as keyof Mapping],
  match: { path: key },
  ...(isSigned(key) && { verify: github }),
  ...(key === 'recover' && { recover: { sender: 'github', repository: 'acme/api', hookId: 1, token: 'x'.repeat(20) } }),
}))

const config = {
  hooks: { retain: true, allowRequestSessionKey: true, mappings },
  agents: { list: [{ id: 'main', default: true }, { id: 'other' }] },
  budgets: { team: { turns: 1_000, period: '1d' } },
  channels: {
    github: { token: 'x'.repeat(20), baseUrl: 'http://127.0.0.1:9' },
    slack: { botToken: 'xoxb-0123456789' },
    telegram: { botToken: '110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw' },
    webhook: { endpoints: { ci: { url: 'http://127.0.0.1:9/', secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' } } },
  },
}

describeEngines('a replay without an edit', (start) => {
  test('differs in nothing from the record, whatever key a mapping has', { timeout: 120_000 }, async () => {
    const files = { 'hooks/transforms/x.ts': "export default () => ({ message: 'by code' })\n" }
    const { dir, url, adminUrl } = await start({ config, files })
    for (const key of keys) {
      const body = JSON.stringify(payload)
      const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
      const proof = isSigned(key)
        ? { 'x-hub-signature-256': signature, 'x-github-event': 'pull_request', 'x-github-delivery': key }
        : { authorization: `Bearer ${hookToken}` }
      const headers = { 'content-type': 'application/json', ...proof }
      const answer = await fetch(`${url}/${key}`, { method: 'POST', headers, body })
      expect([key, answer.status]).toEqual([key, 200])
    }
    const answer = await fetch(`${adminUrl}/api/replay?last=200`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gatewayToken}` },
    })
    // as: the answer of the admin port
    const report = (await answer.json()) as ReplayReport
    expect(report.groups.map(({ paths, example }) => [paths, example])).toEqual([])
    expect(report).toMatchObject({ compared: 'recorded', total: keys.length, counts: { same: keys.length } })
    const command = await runCommand(['replay', '--fail-on', 'changed', '--last', '200'], { dir })
    expect([command.code, command.stdout]).toEqual([0, expect.stringContaining(`${keys.length} same (100 %)`)])
  })
})
