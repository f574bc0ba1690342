// The saves that are remembered for hookloom bisect.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ConfigSchema } from '../../../../src/gateway/config/keys.ts'
import { silentLog } from '../../../../src/base/log.ts'
import { createGeneration } from '../../../../src/gateway/generation/generation.ts'
import { createSaveMemory, readSaves } from '../../../../src/gateway/reload/saves.ts'
import { makeFolder } from '../../../e2e/gateway.ts'
import { builtInSenders } from '../../../../src/gateway/built-in.ts'

test('a remembered save has no secret of a newer configuration that is on disk when the files of the save are read', async () => {
  const dir = makeFolder()
  const config = ConfigSchema.parse({ hooks: { enabled: true, token: 'hook-secret-of-the-older-save' } })
  const generation = createGeneration({ senders: builtInSenders, config, mappings: [], transforms: new Map() })
  const newer = { hooks: { enabled: true, token: 'hook-secret-of-the-newer-save' }, gateway: { token: '${A_TOKEN}' } }
  writeFileSync(join(dir, 'hookloom.jsonc'), JSON.stringify(newer))
  // as: only this field of the status is read
  const status = () => ({ degraded: false }) as ReturnType<Parameters<typeof createSaveMemory>[0]['status']>
  const saves = createSaveMemory({ current: () => generation, status }, { dir, clock: () => 1, log: silentLog })
  saves.remember()
  await saves.stop()
  const [save] = await readSaves(dir)
  expect(save?.files['hookloom.jsonc']).toContain('"token":"${REMOVED_SECRET_')
  expect(save?.files['hookloom.jsonc']).toContain('${A_TOKEN}')
  expect(save?.files['hookloom.jsonc']).not.toContain('newer')
})

test('what a save changed is remembered with it, and not with another one', async () => {
  const dir = makeFolder()
  const config = ConfigSchema.parse({ hooks: { enabled: true, token: 'hook-secret-of-the-save' } })
  const generation = createGeneration({ senders: builtInSenders, config, mappings: [], transforms: new Map() })
  // as: only this field of the status is read
  const status = () => ({ degraded: false }) as ReturnType<Parameters<typeof createSaveMemory>[0]['status']>
  let at = 0
  const parts = { dir, clock: () => (at += 1), log: silentLog }
  const saves = createSaveMemory({ current: () => generation, status }, parts)
  const changes = new Map([['orders.ts', { differ: 2, of: 9, isWhole: true }]])
  saves.noteChanges(generation.id, changes)
  for (const text of ['{}', '{ }']) {
    writeFileSync(join(dir, 'hookloom.jsonc'), text)
    saves.remember()
    saves.noteChanges(text === '{}' ? generation.id : 'of another save', changes)
    await saves.stop()
  }
  const read = await readSaves(dir)
  expect(read.map((save) => save.changes)).toEqual([changes, undefined])
  expect(read.map(({ files }) => files['hookloom.jsonc'])).toEqual(['{}', '{ }'])
})
