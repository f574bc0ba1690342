// Many files, and many reloads in one process.
import { writeFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { silentLog } from '../../src/base/log.ts'
import { createStage, readResult } from '../unit/core/transforms/runtime-stage.ts'
import { createStage as createWatched } from '../unit/core/reload/watch-stage.ts'

test('a watcher sees a save among ten thousand files, and ignores ten thousand files of packages', async () => {
  const { root, reported, changes } = await createWatched({
    before: async (directory) => {
      for (const folder of ['many', 'node_modules/many']) {
        await mkdir(join(directory, folder), { recursive: true })
        for (let file = 0; file < 10_000; file += 1) writeFileSync(join(directory, folder, `${file}.ts`), '')
      }
    },
  })
  await writeFile(join(root, 'node_modules', 'many', '7.ts'), '1')
  await writeFile(join(root, 'many', '7.ts'), '1')
  await reported('hooks/transforms/many/7.ts')
  expect(changes.flat()).toEqual(['hooks/transforms/many/7.ts'])
})

test(
  'after 300 reloads, each worker has one bundle for each module, and keeps no older bundle in memory',
  {
    timeout: 120_000,
  },
  async () => {
    const replaced: unknown[] = []
    const log = { ...silentLog, warn: (fields: object) => void replaced.push(fields) }
    const { write, load, runtime } = await createStage({ workers: 1, memoryMb: 40, log })
    await write({ 'y.ts': 'export default () => 0' })
    const values: unknown[] = []
    for (let n = 1; n <= 300; n++) {
      // the memory limit is far below the size of 300 such modules with their source maps
      const text = `${n}`.padEnd(100_000, 'x')
      await write({ 'x.ts': `export default () => '${text}'.length + ${n}` })
      const modules = await load('x.ts', 'y.ts')
      values.push(await readResult(modules['x.ts']))
    }
    expect(values).toEqual(Array.from({ length: 300 }, (_, index) => 100_001 + index))
    expect(replaced).toEqual([])
    expect(runtime.state()).toMatchObject({ builds: 301, serving: [{ bundles: 2 }], threads: 2 })
    await load('y.ts')
    expect(runtime.state()).toMatchObject({ serving: [{ bundles: 1 }] })
  },
)
