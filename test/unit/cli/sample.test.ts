import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { presets } from '../../../presets/index.ts'
import { buildSample } from '../../../src/cli/requests/sample.ts'
import { ConfigSchema } from '../../../src/gateway/config/keys.ts'
import type { Preset } from '../../../src/model/preset.ts'
import { builtInSenders } from '../../../src/gateway/built-in.ts'

/** The sample of a GitHub preset whose fixture is a recorded request, with its old signature. */
function buildRecorded(headers: readonly string[]) {
  const fixtures = mkdtempSync(join(tmpdir(), 'hookloom-sample-'))
  onTestFinished(() => rmSync(fixtures, { recursive: true, force: true }))
  const recorded = { 'x-github-event': 'push', 'x-hub-signature-256': 'sha256=0ld' }
  writeFileSync(join(fixtures, 'push.json'), JSON.stringify({ request: { headers: recorded, payload: {} } }))
  const preset: Preset | undefined = presets.find(({ name }) => name === 'github')
  if (preset === undefined) throw new Error('there is a preset github')
  const origin = { label: '', fixtures, page: undefined, hash: '', describeThrown: String }
  const config = ConfigSchema.parse({ hooks: { presets: [{ name: 'github', secret: 'a'.repeat(32) }] } })
  return buildSample(
    config,
    { name: 'github', preset, origin },
    { word: 'push', now: Date.now(), headers, known: { senders: builtInSenders } },
  )
}

test('the old signature of a recorded fixture is replaced by a new one, and its other headers are kept', () => {
  const { headers } = buildRecorded([])
  expect(headers['x-hub-signature-256']).toMatch(/^sha256=[0-9a-f]{64}$/)
  expect(headers['x-github-event']).toBe('push')
})

test('a header of the command line replaces that of the new proof', () => {
  expect(buildRecorded(['X-Hub-Signature-256: sha256=mine']).headers['x-hub-signature-256']).toBe('sha256=mine')
})
