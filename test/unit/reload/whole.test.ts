import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createLive } from '../../../src/reload/reload.ts'
import type { LiveOptions } from '../../../src/reload/live-types.ts'
import type { BuildInput } from '../../../src/transforms/read.ts'
import { silentLog } from '../../../src/model/log.ts'

const config = {
  hooks: {
    enabled: true,
    token: 'hook-secret-of-the-stage',
    mappings: [{ match: { path: 'x' }, transform: { module: 'x.ts' } }],
  },
}

/** Loads return their number as the hash of the code. The time of change of their one file is given. */
async function createStage(changedAt: (load: number) => number) {
  const dir = await mkdtemp(join(tmpdir(), 'hookloom-live-'))
  onTestFinished(() => rm(dir, { recursive: true, force: true }))
  await writeFile(join(dir, 'hookloom.jsonc'), JSON.stringify(config))
  let loads = 0
  const load: LiveOptions['load'] = async () => {
    loads += 1
    const run = async () => ({ kind: 'returned', value: {}, log: [] }) as const
    const transform = { module: 'x.ts', hash: String(loads), problem: undefined, run }
    const input: BuildInput = { file: 'x.ts', mtimeNs: 0n, ctimeNs: BigInt(changedAt(loads)) * 1_000_000n, size: 1n }
    return { transforms: new Map([['x.ts', transform]]), inputs: [input] }
  }
  const live = createLive({ dir, env: {}, load, log: silentLog, clock: Date.now, meter: () => {} })
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

  test('a build is used after many repetitions if a program keeps writing files', async () => {
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
