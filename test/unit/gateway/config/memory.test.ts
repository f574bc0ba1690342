import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { loadConfig } from '../../../../src/gateway/config/config.ts'
import { createConfigMemory } from '../../../../src/gateway/config/config-memory.ts'
import { recallStore } from '../../../../src/gateway/config/recall.ts'

const env = { NAME: 'one' }

/** Makes a config directory in which a gateway has written down the store of its configuration. */
async function makeNoted(text: (dir: string) => string) {
  const dir = mkdtempSync(join(tmpdir(), 'hookloom-memory-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  writeFileSync(join(dir, 'secret'), 'first')
  writeFileSync(join(dir, '.env'), 'OTHER=two\n')
  writeFileSync(join(dir, 'hookloom.jsonc'), text(dir))
  expect(recallStore({ dir, env })).toBe(undefined)
  createConfigMemory({ dir, env })(loadConfig({ dir, env }))
  return dir
}

const sound = (dir: string) =>
  `{ "store": { "file": "kept.db" }, "gateway": { "token": "\${NAME}\${OTHER}\${file:${dir}/secret}-of-the-gateway" } }`

test('the store of a configuration is remembered until the text of the configuration, .env, a variable or a secret file changes', async () => {
  const dir = await makeNoted(sound)
  const store = join(dir, 'kept.db')
  await vi.waitFor(() => expect(recallStore({ dir, env })).toBe(store), { timeout: 60_000 })
  expect(recallStore({ dir, env: { ...env, UNNAMED: 'x' } })).toBe(store)
  expect(recallStore({ dir, env: { NAME: 'other' } })).toBe(undefined)
  expect(recallStore({ dir, env: {} })).toBe(undefined)
  const edits: [string, string, string][] = [
    ['secret', 'second', 'first'],
    ['.env', 'OTHER=three\n', 'OTHER=two\n'],
    ['hookloom.jsonc', `${sound(dir)}\n`, sound(dir)],
  ]
  for (const [file, changed, before] of edits) {
    writeFileSync(join(dir, file), changed)
    expect({ file, store: recallStore({ dir, env }) }).toEqual({ file, store: undefined })
    writeFileSync(join(dir, file), before)
    expect(recallStore({ dir, env })).toBe(store)
  }
  writeFileSync(join(dir, 'state/config.json'), '[]')
  expect(recallStore({ dir, env })).toBe(undefined)
})

test('a copy of the config directory does not remember the store of the original', async () => {
  const dir = await makeNoted(() => '{}')
  await vi.waitFor(() => expect(recallStore({ dir, env })).toBe(join(dir, 'state/hookloom.db')), { timeout: 60_000 })
  const copy = mkdtempSync(join(tmpdir(), 'hookloom-memory-'))
  onTestFinished(() => rmSync(copy, { recursive: true, force: true }))
  cpSync(dir, copy, { recursive: true })
  expect(recallStore({ dir: copy, env })).toBe(undefined)
})

test('a configuration in which an escape may hide the name of a variable is not remembered', async () => {
  const dir = await makeNoted(() => '{ "gateway": { "token": "\\u0024{NAME}-of-the-gateway" } }')
  // the writes are in the background: when the second directory is remembered, a write for the first one would have ended too
  const other = await makeNoted(sound)
  await vi.waitFor(() => expect(recallStore({ dir: other, env })).toBe(join(other, 'kept.db')), { timeout: 60_000 })
  expect(recallStore({ dir, env })).toBe(undefined)
})
