// A watched folder, removed after the test.
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { createWatcher, type WatchOptions } from '../../../../src/core/reload/watch.ts'
import { silentLog } from '../../../../src/base/log.ts'

export async function createStage(
  given: Partial<WatchOptions> & { link?: boolean; before?: (root: string) => Promise<void> } = {},
) {
  const { link = false, before, ...options } = given
  const dir = await realpath(await mkdtemp(join(tmpdir(), 'hookloom-watch-')))
  const root = join(dir, 'hooks', 'transforms')
  await mkdir(root, { recursive: true })
  await writeFile(join(root, 'x.ts'), '1')
  await before?.(root)
  await writeFile(join(dir, 'hookloom.jsonc'), '{}')
  const shown = link ? `${dir}-link` : dir
  if (link) await symlink(dir, shown)
  const changes: string[][] = []
  const paths = new Set<string>()
  const { onChange, ...others } = options
  const waiting = new Set<() => void>()
  const watcher = createWatcher({
    paths: {
      roots: [join(shown, 'hooks', 'transforms')],
      files: [join(shown, 'hookloom.jsonc'), join(shown, '.env')],
      ignored: [join(shown, 'hookloom.db-wal'), join(shown, 'hooks', 'transforms', 'hookloom.db')],
    },
    inputs: () => [],
    onChange: (reason) => {
      const { changed } = reason
      onChange?.(reason)
      for (const path of changed) paths.add(path)
      changes.push(changed.map((path) => path.slice(dir.length + 1)).toSorted())
      for (const look of waiting) look()
    },
    log: silentLog,
    ...others,
  })
  onTestFinished(async () => {
    await watcher.close()
    await rm(dir, { recursive: true, force: true })
    if (link) await rm(shown, { force: true })
  })
  await watcher.ready()
  const waitUntil = (isDone: () => boolean) =>
    new Promise<void>((done) => {
      const look = () => {
        if (isDone()) done()
      }
      waiting.add(look)
      look()
    })
  return {
    dir,
    root,
    watcher,
    changes,
    /** Resolves when this path in the folder was reported. */
    reported: (path: string) => waitUntil(() => changes.some((changed) => changed.includes(path))),
    /** Resolves when this whole path was reported, which may be outside of the folder. */
    seen: (path: string) => waitUntil(() => paths.has(path)),
  }
}
