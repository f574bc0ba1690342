import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { loadConfigParts } from '../../../../src/gateway/config/config-parts.ts'

function makeDir(text: string): string {
  const dir = mkdtempSync(join(tmpdir(), 'hookloom-parts-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  writeFileSync(join(dir, 'hookloom.jsonc'), text)
  return dir
}

test('the admin port of an invalid configuration is read', () => {
  const dir = makeDir('{ "server": { "adminPort": 9123 }, "unknown": 1 }')
  expect(loadConfigParts({ dir, env: {} }).server.adminPort).toBe(9_123)
})

test.each([99_999, -1, 1.5])('the admin port %d does not exist, so the default is used', (adminPort) => {
  const { server, problem } = loadConfigParts({ dir: makeDir(JSON.stringify({ server: { adminPort } })), env: {} })
  expect(server.adminPort).toBe(8_791)
  expect(problem?.code).toBe('config-invalid')
})
