import { statSync } from 'node:fs'
import { mkdir, mkdtemp, open, realpath, rename, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { watch } from 'chokidar'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { BuildInput } from '../../../../src/core/transforms/read.ts'
import { silentLog } from '../../../../src/base/log.ts'
import { createStage } from './watch-stage.ts'

describe('the watcher of saved files', () => {
  test('the watcher reports a module, a file in a new folder, the configuration and .env', async () => {
    const { dir, root, reported, changes } = await createStage()
    await writeFile(join(root, 'x.ts'), '2')
    await reported('hooks/transforms/x.ts')
    await mkdir(join(root, 'new', 'deep'), { recursive: true })
    await writeFile(join(root, 'new', 'deep', 'y.ts'), '1')
    await reported('hooks/transforms/new/deep/y.ts')
    await writeFile(join(dir, 'hookloom.jsonc'), '{ }')
    await reported('hookloom.jsonc')
    await writeFile(join(dir, '.env'), 'A=1')
    await reported('.env')
    changes.length = 0
    await rm(join(root, 'x.ts'))
    await reported('hooks/transforms/x.ts')
    expect(changes.flat()).toEqual(['hooks/transforms/x.ts'])
  })

  test('the watcher reports the files of a burst of saves together', async () => {
    const { root, reported, changes } = await createStage()
    await Promise.all(['a.ts', 'b.ts', 'c.json'].map((name) => writeFile(join(root, name), name)))
    await reported('hooks/transforms/c.json')
    expect(changes[0]).toEqual(
      expect.arrayContaining(['a.ts', 'b.ts', 'c.json'].map((name) => `hooks/transforms/${name}`)),
    )
  })

  test('the watcher ignores packages, dot folders, temporary files of editors and other files of the config directory', async () => {
    const { dir, root, reported, changes } = await createStage()
    for (const folder of ['node_modules/p', '.git', 'lib/.cache']) {
      await mkdir(join(root, folder), { recursive: true })
      await writeFile(join(root, folder, 'a.ts'), '1')
    }
    await mkdir(join(dir, 'state'))
    await writeFile(join(dir, 'state', 'hookloom.db'), '1')
    await writeFile(join(dir, 'notes.txt'), '1')
    await writeFile(join(root, '.x.ts.swp'), '1')
    await writeFile(join(root, 'x.ts~'), '1')
    // events arrive in order, so the other files would have been reported before the last one
    await writeFile(join(root, 'package.json'), '{}')
    await reported('hooks/transforms/package.json')
    const names = new Set(changes.flat())
    names.delete('hooks/transforms/lib')
    expect([...names]).toEqual(['hooks/transforms/package.json'])
  })

  test.each([false, true])(
    'the watcher ignores a store next to the watched files (config directory is a link: %s)',
    async (link) => {
      // the test emits the events, because chokidar checks all files of a directory after each write
      const told = watch([])
      const open = async () => {
        setImmediate(() => told.emit('ready'))
        return told
      }
      const { dir, root, reported, changes } = await createStage({ link, open })
      await writeFile(join(dir, '.env'), 'WORD=1')
      const emitChange = (directory: string, name: string) =>
        told.emit('raw', 'change', name, { watchedPath: directory })
      emitChange(dir, 'hookloom.db-wal')
      emitChange(root, 'hookloom.db')
      emitChange(root, 'x.ts')
      await reported('hooks/transforms/x.ts')
      expect(changes).toEqual([['hooks/transforms/x.ts']])
      emitChange(dir, 'notes.txt')
      await reported('.env')
    },
  )

  test('a new folder is reported and scanned again, because chokidar reads the folder before it watches the folder', async () => {
    const events = watch([])
    const added = new Promise<unknown>((resolve) => {
      events.add = (path) => {
        resolve(path)
        return events
      }
    })
    const open = async () => {
      setImmediate(() => events.emit('ready'))
      return events
    }
    const { root, reported } = await createStage({ open })
    // the files in the folder cause no event
    events.emit('all', 'addDir', root)
    await reported('hooks/transforms')
    expect(await added).toBe(root)
  })

  test('after a save, the watcher also reports a file that changed without an event since the build read it', async () => {
    const inputs: BuildInput[] = []
    const { dir, root, reported, changes } = await createStage({ inputs: () => inputs })
    // the file is not watched, so it causes no event
    const helper = join(dir, 'helper.ts')
    await writeFile(helper, 'as it was read')
    const read = await stat(helper, { bigint: true })
    inputs.push({ file: helper, mtimeNs: read.mtimeNs, ctimeNs: read.ctimeNs, size: read.size })
    await writeFile(join(root, 'x.ts'), '2')
    await reported('hooks/transforms/x.ts')
    expect(changes.flat()).not.toContain('helper.ts')
    await writeFile(helper, 'as it is now')
    await writeFile(join(root, 'x.ts'), '3')
    await reported('helper.ts')
  })

  test('the watcher waits for the content of a truncated file', async () => {
    const sizes: number[] = []
    const { root, reported } = await createStage({
      onChange: ({ changed }) => void sizes.push(...changed.map((path) => statSync(path).size)),
    })
    const handle = await open(join(root, 'x.ts'), 'w')
    // the writer pauses for longer than a burst
    await pause(80)
    await handle.write('written')
    await handle.close()
    await writeFile(join(root, 'end.ts'), 'end')
    await reported('hooks/transforms/end.ts')
    expect(sizes).not.toContain(0)
    expect(sizes).toContain(7)
  })

  test('the watcher reports a save with an older modification time', async () => {
    const { root, reported, changes } = await createStage()
    await utimes(join(root, 'x.ts'), 1, 1)
    await reported('hooks/transforms/x.ts')
    expect(changes).toEqual([['hooks/transforms/x.ts']])
  })

  test('the watcher works if the config directory is a link', async () => {
    const { root, dir, reported, changes } = await createStage({ link: true })
    await writeFile(join(root, 'x.ts'), '2')
    await reported('hooks/transforms/x.ts')
    await writeFile(join(dir, 'hookloom.jsonc'), '{ }')
    await reported('hookloom.jsonc')
    expect(changes.flat().toSorted()).toEqual(['hookloom.jsonc', 'hooks/transforms/x.ts'])
  })

  test('the watcher reports a configuration file that is a link when its target is replaced', async () => {
    const { dir, reported, changes } = await createStage()
    for (const version of ['v1', 'v2']) {
      await mkdir(join(dir, version))
      await writeFile(join(dir, version, '.env'), `A=${version}, longer than ${version}`)
    }
    await symlink('v1', join(dir, '..data'))
    await symlink('..data/.env', join(dir, '.env'))
    await reported('.env')
    changes.length = 0
    await symlink('v2', join(dir, '..data.new'))
    await rename(join(dir, '..data.new'), join(dir, '..data'))
    await reported('.env')
    expect(changes.flat()).toContain('.env')
  })

  test.each(['ENOSPC', 'EMFILE'])(
    'the watcher polls, and logs a warning, when %s reports that no watches are left',
    async (code) => {
      const warnings: string[] = []
      const modes: unknown[] = []
      const { root, reported, watcher } = await createStage({
        log: { ...silentLog, warn: (_fields, message) => void warnings.push(message) },
        open: async (path, options) => {
          modes.push(options.usePolling)
          const opened = watch(path, { ...options, interval: 20 })
          if (options.usePolling !== true) {
            const error = Object.assign(new Error(`${code}: no space left on device, watch`), { code })
            setImmediate(() => opened.emit('error', error))
          }
          return opened
        },
      })
      expect(watcher.polling).toBe(true)
      expect(modes).toEqual([false, true])
      expect(warnings).toHaveLength(1)
      await writeFile(join(root, 'x.ts'), 'longer than before')
      await reported('hooks/transforms/x.ts')
    },
  )

  test('a save that no event announces is reported, the watcher says so once, and then polls', async () => {
    const warnings: string[] = []
    const modes: unknown[] = []
    const inputs: BuildInput[] = []
    const { dir, root, reported, watcher } = await createStage({
      inputs: () => inputs,
      sweepEveryMs: 20,
      log: { ...silentLog, warn: (_fields, message) => void warnings.push(message) },
      open: async (path, options) => {
        modes.push(options.usePolling)
        if (options.usePolling === true) return watch(path, { ...options, interval: 20 })
        const silent = watch([])
        setImmediate(() => silent.emit('ready'))
        return silent
      },
      before: (folder) => writeFile(join(folder, 'helper.ts'), '1'),
    })
    const helper = join(root, 'helper.ts')
    const read = await stat(helper, { bigint: true })
    inputs.push({ file: helper, mtimeNs: read.mtimeNs, ctimeNs: read.ctimeNs, size: read.size })
    await vi.waitFor(
      async () => {
        await writeFile(helper, `now ${Math.random()}`)
        expect(watcher.polling).toBe(true)
      },
      { timeout: 60_000 },
    )
    await reported('hooks/transforms/helper.ts')
    await watcher.ready()
    await writeFile(join(dir, '.env'), 'A=1')
    await reported('.env')
    await writeFile(join(root, 'new.ts'), '1')
    await reported('hooks/transforms/new.ts')
    expect(modes).toEqual([false, true])
    expect(warnings).toEqual([expect.stringMatching(/^the system reports no changes of files in .*every half second/)])
  })

  test('a save while the watcher goes over to polling is reported', async () => {
    const { root, reported, watcher, changes } = await createStage({
      open: async (path, options) => {
        if (options.usePolling === true) {
          changes.length = 0
          // the first look at the folder finds the file, so that it is no event
          await writeFile(join(root, 'new.ts'), '1')
          return watch(path, { ...options, interval: 20 })
        }
        const full = watch([])
        setImmediate(() => full.emit('ready'))
        const error = Object.assign(new Error('EMFILE: too many open files, watch'), { code: 'EMFILE' })
        setTimeout(() => full.emit('error', error), 50)
        return full
      },
    })
    await expect.poll(() => watcher.polling).toBe(true)
    await reported('hooks/transforms')
    await watcher.ready()
    await writeFile(join(root, 'later.ts'), '1')
    await reported('hooks/transforms/later.ts')
  })

  test('saves that events announce never make the watcher poll', async () => {
    const { root, reported, watcher } = await createStage({ sweepEveryMs: 5 })
    for (let count = 0; count < 40; count += 1) {
      await writeFile(join(root, `x${count}.ts`), '1')
      await rename(join(root, `x${count}.ts`), join(root, `y${count}.ts`))
      await reported(`hooks/transforms/y${count}.ts`)
    }
    expect(watcher.polling).toBe(false)
  })

  test('the watcher reports changes behind the links of the owner: of a folder, of a module and of the configuration', async () => {
    const dotfiles = await realpath(await mkdtemp(join(tmpdir(), 'hookloom-links-')))
    onTestFinished(() => rm(dotfiles, { recursive: true }))
    await mkdir(join(dotfiles, 'transforms'))
    for (const name of ['transforms/x.ts', 'y.ts', '.env']) await writeFile(join(dotfiles, name), '1')
    const inputs: BuildInput[] = []
    const { dir, watcher, seen } = await createStage({
      inputs: () => inputs,
      before: async (root) => {
        await rm(root, { recursive: true })
        await symlink(join(dotfiles, 'transforms'), root)
        await symlink(join(dotfiles, 'y.ts'), join(dotfiles, 'transforms', 'y.ts'))
        await symlink(join(dotfiles, '.env'), join(root, '..', '..', '.env'))
        const file = join(dotfiles, 'transforms', 'y.ts')
        const { mtimeNs, ctimeNs, size } = await stat(file, { bigint: true })
        inputs.push({ file, mtimeNs, ctimeNs, size })
      },
    })
    for (const [place, reported] of [
      ['transforms/x.ts', join(dotfiles, 'transforms/x.ts')],
      ['y.ts', join(dotfiles, 'transforms/y.ts')],
      ['.env', join(dir, '.env')],
    ] as const) {
      await writeFile(join(dotfiles, place), 'longer than before')
      await seen(reported)
    }
    // the link itself is replaced, as a new generation of home-manager does
    await mkdir(join(dotfiles, 'next'))
    await symlink(join(dotfiles, 'next'), join(dir, 'hooks', 'new'))
    await rename(join(dir, 'hooks', 'new'), join(dir, 'hooks', 'transforms'))
    await seen(join(dir, 'hooks', 'transforms'))
    expect(watcher.polling).toBe(false)
  })

  test('a closed watcher reports nothing', async () => {
    const { root, watcher, changes } = await createStage()
    await writeFile(join(root, 'x.ts'), '2')
    await watcher.close()
    const before = changes.length
    await writeFile(join(root, 'x.ts'), '3')
    const other = await createStage()
    await writeFile(join(other.root, 'x.ts'), '2')
    await other.reported('hooks/transforms/x.ts')
    expect(changes).toHaveLength(before)
  })
})
