import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createReload } from '../../../../src/gateway/reload/reload.ts'
import type { LiveOptions } from '../../../../src/gateway/reload/live-types.ts'
import type { BuildInput } from '../../../../src/core/transforms/read.ts'
import { silentLog } from '../../../../src/base/log.ts'

const config = {
  hooks: {
    enabled: true,
    token: 'hook-secret-of-the-stage',
    mappings: [{ match: { path: 'x' }, transform: { module: 'x.ts' } }],
  },
}

/** Each load returns its number as the hash of its code. `changedAt`: when the only file of a load changed. `onRead` runs after the file was read. */
async function createStage(
  changedAt: (load: number) => number,
  onRead?: (load: number, file: string) => Promise<void>,
) {
  const dir = await mkdtemp(join(tmpdir(), 'hookloom-live-'))
  onTestFinished(() => rm(dir, { recursive: true, force: true }))
  await writeFile(join(dir, 'hookloom.jsonc'), JSON.stringify(config))
  const file = join(dir, 'x.ts')
  await writeFile(file, 'export default () => ({})')
  let loads = 0
  const load: LiveOptions['load'] = async () => {
    loads += 1
    const run = async () => ({ kind: 'returned', value: {}, log: [] }) as const
    const transform = { module: 'x.ts', hash: String(loads), problem: undefined, run }
    const { mtimeNs, size } = await stat(file, { bigint: true })
    const input: BuildInput = { file, mtimeNs, ctimeNs: BigInt(changedAt(loads)) * 1_000_000n, size }
    await onRead?.(loads, file)
    return { transforms: new Map([['x.ts', transform]]), inputs: [input] }
  }
  const live = createReload({ dir, env: {}, load, log: silentLog, clock: Date.now, meter: () => {} })
  await live.start()
  return { live, serving: () => [...live.current().transforms.values()].map(({ hash }) => hash) }
}

const longAgo = 0
const soon = () => Date.now() + 60_000

describe('files that are saved during a build', () => {
  test('a build is repeated if a file was saved while the build read files', async () => {
    const { live, serving } = await createStage((load) => (load === 2 ? soon() : longAgo))
    await live.reload()
    expect(serving()).toEqual(['3'])
  })

  test('a build is repeated if a file was saved after it was read, whatever the clock of the file system says', async () => {
    const { live, serving } = await createStage(
      () => longAgo,
      async (load, file) => {
        if (load === 2) await writeFile(file, 'export default () => null')
      },
    )
    await live.reload()
    expect(serving()).toEqual(['3'])
  })

  test('after many repetitions a build is used, even if a program keeps writing files', async () => {
    const { live, serving } = await createStage(soon)
    const { swapped } = await live.reload()
    expect(swapped).toBe(true)
    expect(serving()).not.toEqual(['1'])
  })

  test('a build is used at once if all files were saved before it', async () => {
    const { live, serving } = await createStage(() => longAgo)
    await live.reload()
    expect(serving()).toEqual(['2'])
  })
})
