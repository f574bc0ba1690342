// Tells that a module, a fixture or the configuration was saved: every save, whatever its style, and a burst of them once.
import { realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import type { ChokidarOptions, FSWatcher } from 'chokidar'
import type { Log } from '../model/log.ts'
import type { Input } from './read.ts'
import { isInside } from './root.ts'

/** `fresh`: those of the changed files that were not reported as they are now. */
export type Saved = { readonly changed: readonly string[]; readonly fresh: readonly string[] }

export type WatchOptions = {
  readonly paths: {
    /** The transforms root, below the directory of the files. It need not be there yet. */
    readonly root: string
    /** More directories of the same kind. */
    readonly further?: readonly string[]
    /** hookloom.jsonc and .env, there or not; all in one directory. */
    readonly files: readonly string[]
    /** What the gateway itself writes in the directory: a store beside the configuration is written with each delivery. */
    readonly ignored?: readonly string[]
  }
  /** The files that the last build read, as it read them: one that is not like that any more has changed. */
  readonly inputs: () => readonly Input[]
  /**
   * Paths below the real path of the directory. Called once a burst has been quiet for 10 ms, or went on for 50 ms; where it
   * left a file empty, once that is written, or is still empty 200 ms later.
   */
  readonly onChange: (reason: Saved) => void
  /** Called at each sign of a change, with an `onChange` to follow: what is being built now is not the newest. */
  readonly onTouch?: () => void
  readonly log: Log
  /** Opens chokidar; tests hand in one that runs out of watches. */
  readonly open?: (path: string, options: ChokidarOptions) => Promise<FSWatcher>
}

export type Watcher = {
  /** Resolves when every save from now on is seen. */
  ready(): Promise<void>
  /** True: the system has no watches left, and files are looked at every half second. */
  readonly polling: boolean
  close(): Promise<void>
}

const debounceMs = 10
const longestBurstMs = 50
// chokidar drops the second of two changes of a file within 50 ms; both looks come after that
const settleMs = [60, 200]
// whoever truncates a file is about to write it; one that stays empty is meant to be
const emptyMs = 200
const pollEveryMs = 500

export function createWatcher({ paths, inputs, onChange, onTouch, log, open = openChokidar }: WatchOptions): Watcher {
  const given = resolve(dirname(paths.files[0] ?? paths.root))
  const top = toRealPath(given)
  const within = (path: string) => join(top, relative(given, resolve(path)))
  const roots = [paths.root, ...(paths.further ?? [])].map(within)
  const isInRoot = (path: string) => roots.some((root) => isSource(root, path))
  const files = paths.files.map((file) => join(top, basename(file)))
  const ignored = new Set(paths.ignored?.map(within))
  /** Below the directory only the ways to the roots, the roots themselves and the files are of interest. */
  const isWatched = (path: string) =>
    !ignored.has(path) &&
    (path === top ||
      files.includes(path) ||
      roots.some((root) => path === root || isInside(path, root)) ||
      isInRoot(path))
  const seen = new Map<string, string>(files.map((file) => [file, toStamp(file)]))
  const burst = new Set<string>()
  let timers: NodeJS.Timeout[] = []
  let flushing: NodeJS.Timeout | undefined
  let burstAt = 0
  let polling = false
  let closed = false
  let isReady = () => {}

  function touch(path: string): void {
    if (closed) return
    if (burst.size === 0) burstAt = performance.now()
    burst.add(path)
    onTouch?.()
    clearTimeout(flushing)
    const left = longestBurstMs - (performance.now() - burstAt)
    flushing = setTimeout(flush, Math.max(0, Math.min(debounceMs, left)))
  }

  function flush(): void {
    // looked at before anybody reads them: a write from now on is a difference
    const stamps = [...burst].map((path) => [path, toStamp(path)] as const)
    if (stamps.some(([, stamp]) => isEmpty(stamp)) && performance.now() - burstAt < emptyMs) {
      flushing = setTimeout(flush, debounceMs)
      return
    }
    const changed = [...burst]
    const fresh = stamps.flatMap(([path, stamp]) => (seen.get(path) === stamp ? [] : [path]))
    burst.clear()
    for (const [path, stamp] of stamps) seen.set(path, stamp)
    for (const timer of timers) clearTimeout(timer)
    timers = settleMs.map((ms) => setTimeout(settle, ms, ms === settleMs.at(-1)))
    onChange({ changed, fresh })
  }

  function settle(isLast: boolean): void {
    for (const [path, stamp] of seen) if (toStamp(path) !== stamp) touch(path)
    for (const input of inputs())
      if (!isOfPackage(input) && !seen.has(input.file) && !isAsRead(input)) touch(input.file)
    if (isLast) for (const path of seen.keys()) if (!files.includes(path)) seen.delete(path)
  }

  /** Also where the file of that name is a link whose target was exchanged. */
  function lookAtFiles(): void {
    for (const file of files) if (toStamp(file) !== seen.get(file)) touch(file)
  }

  function notice(path: string): void {
    if (ignored.has(path)) return
    if (isInRoot(path)) touch(path)
    else lookAtFiles()
  }

  async function start(usePolling: boolean): Promise<FSWatcher> {
    const watcher = await open(top, {
      // a save by rename is a change like any other, and not to be waited for
      atomic: false,
      ignoreInitial: true,
      // a link to elsewhere would make that place ours to watch
      followSymlinks: false,
      ignorePermissionErrors: true,
      usePolling,
      interval: pollEveryMs,
      ignored: (path) => !isWatched(path),
    })
    watcher.on('error', (error) => {
      if (polling || closed || !isOutOfWatches(error)) return log.warn({ err: error }, 'a file cannot be watched')
      polling = true
      current = fallBack(watcher, error)
    })
    watcher.once('ready', () => {
      // one that ran out of watches before is on its way out
      if (polling === usePolling) isReady()
    })
    watcher.on('all', (_event, path) => notice(path))
    // what the system says, before chokidar's throttles; `path` is a name in the directory that is watched
    watcher.on('raw', (_event, path: unknown, details: unknown) => {
      const directory =
        typeof details === 'object' && details !== null && 'watchedPath' in details ? details.watchedPath : undefined
      if (typeof path === 'string' && typeof directory === 'string') notice(toRawPath(directory, path))
    })
    return watcher
  }

  /** What the watcher has no watch for would be lost: all of it is looked at again and again instead. */
  async function fallBack(watcher: FSWatcher, error: Error): Promise<FSWatcher> {
    log.warn({ err: error }, 'the system has no file watches left: files are checked every half second instead')
    await watcher.close()
    return start(true)
  }

  let current: Promise<FSWatcher>
  const ready = new Promise<void>((done, failed) => {
    isReady = done
    current = start(false)
    current.catch(failed)
  })

  return {
    ready: () => ready,
    get polling() {
      return polling
    },
    async close() {
      closed = true
      clearTimeout(flushing)
      for (const timer of timers) clearTimeout(timer)
      await (await current).close()
    },
  }
}

async function openChokidar(path: string, options: ChokidarOptions): Promise<FSWatcher> {
  const { watch } = await import('chokidar')
  return watch(path, options)
}

/** Below the root, and neither in a package or a dot folder nor an editor's own file. */
function isSource(root: string, path: string): boolean {
  if (!isInside(root, path)) return false
  const parts = relative(root, path).split(sep)
  return !parts.some((part) => part === 'node_modules' || part.startsWith('.') || part.endsWith('~'))
}

function toRawPath(watched: string, name: string): string {
  // a watched file reports its own name, a directory the name of the entry
  return basename(watched) === name && statSync(watched, { throwIfNoEntry: false })?.isDirectory() !== true
    ? watched
    : resolve(watched, name)
}

function isOutOfWatches(error: unknown): error is Error {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return code === 'EMFILE' || code === 'ENOSPC'
}

/** What a write or an exchange changes: time, size, inode. Empty where nothing is. */
function toStamp(path: string): string {
  try {
    const stats = statSync(path, { bigint: true, throwIfNoEntry: false })
    return stats === undefined ? '' : `${stats.mtimeNs} ${stats.size} ${stats.ino}`
  } catch {
    return ''
  }
}

/** Whether the file is as it was when it was read. */
function isAsRead({ file, mtimeNs, size }: Input): boolean {
  return toStamp(file).startsWith(`${mtimeNs} ${size} `)
}

/** There are thousands of them, and nobody watches them: the next build looks at them. */
function isOfPackage({ file }: Input): boolean {
  return file.includes(`${sep}node_modules${sep}`)
}

/** Of a file without a byte in it. */
function isEmpty(stamp: string): boolean {
  return stamp.split(' ')[1] === '0'
}

/** Links followed, where there is something. */
export function toRealPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return resolve(path)
  }
}
