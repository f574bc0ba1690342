// A save that waits to be published, as the status and `publish` describe it.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { silentLog } from '../../src/base/log.ts'
import type { CompareKept } from '../../src/gateway/reload/recent.ts'
import { createReload } from '../../src/gateway/reload/reload.ts'
import { emptyReplay } from '../../src/gateway/replay/replay.ts'

const buildConfig = (text: string) => ({
  hooks: { transforms: { hold: true }, mappings: [{ match: { path: 'x' }, messageTemplate: text }] },
})

/** Each save must wait, because its comparison with the kept deliveries is never complete. */
async function createStage(compareKept: CompareKept = async () => ({ ...emptyReplay, notRun: 1 })) {
  const dir = await mkdtemp(join(tmpdir(), 'hookloom-publish-'))
  const write = (text: string) => writeFile(join(dir, 'hookloom.jsonc'), text)
  await write(JSON.stringify(buildConfig('one')))
  const time = { now: 1_000 }
  const live = createReload({
    dir,
    env: {},
    meter: () => {},
    clock: () => time.now,
    log: silentLog,
    load: async () => ({ transforms: new Map(), inputs: [] }),
    compareKept,
  })
  onTestFinished(async () => {
    await live.close()
    await rm(dir, { recursive: true, force: true })
  })
  await live.start()
  return { live, time, write }
}

test('a save that waits does not count as the last good reload until it is published', async () => {
  const { live, time, write } = await createStage()
  time.now = 2_000
  await write(JSON.stringify(buildConfig('two')))
  await live.reload()
  expect(live.status()).toMatchObject({ held: true, degraded: true, lastReloadAt: 2_000, lastGoodAt: 1_000 })
  time.now = 3_000
  await live.publish()
  expect(live.status()).toMatchObject({ held: false, degraded: false, lastGoodAt: 3_000 })
})

test('with hold, a save waits if the kept deliveries cannot be read', async () => {
  const { live, write } = await createStage(async () => {
    throw new Error('the store cannot be read')
  })
  await write(JSON.stringify(buildConfig('two')))
  await live.reload()
  expect(live.status()).toMatchObject({ held: true, degraded: true })
})

test('without a save that waits, publish says whether the files on disk are live or have a problem', async () => {
  const { live, write } = await createStage()
  await expect(live.publish()).rejects.toMatchObject({
    code: 'conflict',
    message: 'No save waits: the files on disk are live.',
  })
  await write('{ "hooks": ')
  await live.reload()
  await expect(live.publish()).rejects.toMatchObject({
    code: 'conflict',
    message: 'No save waits: a file on disk has a problem. "hookloom check" shows it.',
  })
})
