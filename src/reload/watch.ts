// Reports every saved module, fixture and configuration file, however the editor writes it. A burst of saves is reported once.
import { realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import type { ChokidarOptions, FSWatcher } from 'chokidar'
import type { Log } from '../model/log.ts'
import { type BuildInput, hasChanged } from '../transforms/read.ts'
import { isInside } from '../transforms/root.ts'

/** `fresh`: the changed files whose current state was not reported yet. */
export type SavedPaths = { readonly changed: readonly string[]; readonly fresh: readonly string[] }

export type WatchOptions = {
  readonly paths: {
    /** The transforms root, in the same directory as the files. It may not exist yet. */
    readonly root: string
    /** Other directories with modules. */
    readonly further?: readonly string[]
    /** hookloom.jsonc and .env, in one directory. They need not exist. */
    readonly files: readonly string[]
    /** Files that the gateway itself writes in the directory, such as a store next to the configuration, which changes with each delivery. */
    readonly ignored?: readonly string[]
  }
  /** The files that the last build read, with their state at that time. A file in another state has changed. */
  readonly inputs: () => readonly BuildInput[]
  /**
   * Called with paths below the real path of the directory, when a burst has been quiet for 10 ms, or has lasted 50 ms. If a file is empty at
   * that time, the call waits until the file is written, but at most 200 ms.
   */
  readonly onChange: (reason: SavedPaths) => void
  /** Called at each sign of a change, before `onChange`: a build that is running is outdated. */
  readonly onTouch?: () => void
  readonly log: Log
  /** Starts chokidar. Tests replace it with one that runs out of watches. */
  readonly open?: (path: string, options: ChokidarOptions) => Promise<FSWatcher>
}

export type Watcher = {
  /** Resolves when every later save will be noticed. */
  ready(): Promise<void>
  /** Whether the system has no watches left, so that the files are polled every half second. */
  readonly polling: boolean
  close(): Promise<void>
}

const debounceMs = 10
const maxBurstMs = 50
// chokidar drops the second of two changes of a file within 50 ms; both checks run after that time
const settleMs = [60, 200] as const
// an editor truncates a file before it writes it; a file that stays empty was saved empty
const emptyMs = 200
const pollEveryMs = 500

/**
 * ```
 *         a sign of a change        quiet for 10 ms, or 50 ms old: onChange
 *  quiet ───────────────────▶ burst ────────────────────────────────────────▶ settling
 *    ▲                       ▲ │  ▲                                            │   │
 *    │    sign, empty file   └─┘  └────────── a sign, or a missed change ──────┘   │
 *    └───────────────────────────────── checked twice, nothing missed ─────────────┘
 * ```
 * Each state can end in `closed`, which is final.
 */
type State =
  | { readonly kind: 'quiet' | 'closed' }
  | { readonly kind: 'burst'; readonly paths: Set<string>; readonly since: number; readonly timer: NodeJS.Timeout }
  | { readonly kind: 'settling'; readonly timers: readonly NodeJS.Timeout[] }

export function createWatcher({ paths, inputs, onChange, onTouch, log, open = openChokidar }: WatchOptions): Watcher {
  const given = resolve(dirname(paths.files[0] ?? paths.root))
  const top = findRealPath(given)
  const within = (path: string) => join(top, relative(given, resolve(path)))
  const roots = [paths.root, ...(paths.further ?? [])].map(within)
  const isInRoot = (path: string) => roots.some((root) => isSource(root, path))
  const isAboveRoot = (path: string) => roots.some((root) => path === root || isInside(path, root))
  const files = paths.files.map((file) => join(top, basename(file)))
  const ignored = new Set(paths.ignored?.map(within))
  /** Whether a path is watched: in the directory, only the files, the roots and the paths to the roots are watched. */
  const isWatched = (path: string) =>
    !ignored.has(path) && (path === top || files.includes(path) || isAboveRoot(path) || isInRoot(path))
  const seen = new Map<string, string>(files.map((file) => [file, readStamp(file)]))
  const newFolders = new Set<string>()
  let state: State = { kind: 'quiet' }

  /** Enters a state. All changes of the state go through here, so the timers of the previous state are always cleared. */
  function enter(next: State): void {
    if (state.kind === 'burst') clearTimeout(state.timer)
    if (state.kind === 'settling') for (const timer of state.timers) clearTimeout(timer)
    state = next
  }

  function noteSign(path: string): void {
    if (state.kind === 'closed') return
    const now = performance.now()
    const { paths: touched, since } = state.kind === 'burst' ? state : { paths: new Set<string>(), since: now }
    touched.add(path)
    onTouch?.()
    const leftMs = maxBurstMs - (now - since)
    const timer = setTimeout(flush, Math.max(0, Math.min(debounceMs, leftMs)))
    enter({ kind: 'burst', paths: touched, since, timer })
  }

  function flush(): void {
    if (state.kind !== 'burst') return
    const changed = [...state.paths]
    // the stamps are read before the build reads the files, so that every later write is noticed
    const stamps = changed.map((path) => [path, readStamp(path)] as const)
    if (stamps.some(([, stamp]) => isEmpty(stamp)) && performance.now() - state.since < emptyMs) {
      return enter({ ...state, timer: setTimeout(flush, debounceMs) })
    }
    const fresh = stamps.flatMap(([path, stamp]) => (seen.get(path) === stamp ? [] : [path]))
    for (const [path, stamp] of stamps) seen.set(path, stamp)
    const [first, last] = settleMs
    enter({ kind: 'settling', timers: [setTimeout(noteMissed, first), setTimeout(settle, last)] })
    onChange({ changed, fresh })
  }

  /** Watches new folders, and finds the files that were saved without an event since the last burst. */
  function noteMissed(): void {
    for (const folder of newFolders) void watching.then((watcher) => watcher.add(folder))
    newFolders.clear()
    for (const [path, stamp] of seen) if (readStamp(path) !== stamp) noteSign(path)
    for (const input of inputs()) if (!seen.has(input.file) && hasChanged(input)) noteSign(input.file)
  }

  function settle(): void {
    noteMissed()
    for (const path of seen.keys()) if (!files.includes(path)) seen.delete(path)
    if (state.kind === 'settling') enter({ kind: 'quiet' })
  }

  /** Finds changes of hookloom.jsonc and .env, including a link whose target was replaced. */
  function checkFiles(): void {
    for (const file of files) if (readStamp(file) !== seen.get(file)) noteSign(file)
  }

  function notice(path: string): void {
    if (ignored.has(path)) return
    if (isInRoot(path)) noteSign(path)
    else checkFiles()
  }

  /** Notices the files of a new folder: chokidar reads the folder before it watches it, and misses files that are written in between. */
  function noticeFolder(path: string): void {
    if (!isInRoot(path) && !isAboveRoot(path)) return
    newFolders.add(path)
    noteSign(path)
  }

  let usesPolling = false
  let becomeReady = () => {}
  const ready = new Promise<void>((resolve) => {
    becomeReady = resolve
  })

  async function start(): Promise<FSWatcher> {
    const isPolling = usesPolling
    const watcher = await open(top, {
      // chokidar would delay a save by rename
      atomic: false,
      ignoreInitial: true,
      // otherwise chokidar would follow a link and watch the folder behind it
      followSymlinks: false,
      ignorePermissionErrors: true,
      usePolling: isPolling,
      interval: pollEveryMs,
      ignored: (path) => !isWatched(path),
    })
    watcher.on('error', (error) => {
      if (usesPolling || state.kind === 'closed' || !isOutOfWatches(error)) {
        return log.warn({ err: error }, 'a file cannot be watched')
      }
      usesPolling = true
      watching = pollInstead(watcher, error)
    })
    watcher.once('ready', () => {
      // a watcher that ran out of watches and is being closed is ignored
      if (isPolling === usesPolling) becomeReady()
    })
    watcher.on('all', (event, path) => (event === 'addDir' ? noticeFolder(path) : notice(path)))
    // the event of the system, before chokidar throttles it; `path` is a name in the watched directory
    watcher.on('raw', (_event, path: unknown, details: unknown) => {
      const directory =
        typeof details === 'object' && details !== null && 'watchedPath' in details ? details.watchedPath : undefined
      if (typeof path === 'string' && typeof directory === 'string') notice(resolveRawPath(directory, path))
    })
    return watcher
  }

  /** Polls all files, because changes without a watch would be lost. */
  async function pollInstead(watcher: FSWatcher, error: Error): Promise<FSWatcher> {
    log.warn({ err: error }, 'the system has no file watches left: files are checked every half second instead')
    await watcher.close()
    return start()
  }

  let watching = start()

  return {
    async ready() {
      await watching
      await ready
    },
    get polling() {
      return usesPolling
    },
    async close() {
      enter({ kind: 'closed' })
      await (await watching).close()
    },
  }
}

async function openChokidar(path: string, options: ChokidarOptions): Promise<FSWatcher> {
  const { watch } = await import('chokidar')
  return watch(path, options)
}

/** Whether a path is a file of an author: below the root, not in a package or a dot folder, and no backup copy of an editor. */
function isSource(root: string, path: string): boolean {
  if (!isInside(root, path)) return false
  const parts = relative(root, path).split(sep)
  // files of types have no code, and "hookloom types" writes them while the gateway runs
  if (path.endsWith('.d.ts')) return false
  return !parts.some((part) => part === 'node_modules' || part.startsWith('.') || part.endsWith('~'))
}

/** The path that changed, from a `raw` event of chokidar. */
function resolveRawPath(watched: string, name: string): string {
  // a watched file reports its own name; a watched directory reports the name of the entry
  return basename(watched) === name && statSync(watched, { throwIfNoEntry: false })?.isDirectory() !== true
    ? watched
    : resolve(watched, name)
}

function isOutOfWatches(error: unknown): error is Error {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return code === 'EMFILE' || code === 'ENOSPC'
}

/** The time, size and inode of a file, which change with every write or replacement. Empty if the file does not exist. */
function readStamp(path: string): string {
  try {
    const stats = statSync(path, { bigint: true, throwIfNoEntry: false })
    return stats === undefined ? '' : `${stats.mtimeNs} ${stats.size} ${stats.ino}`
  } catch {
    return ''
  }
}

/** Whether the stamp is that of an empty file. */
function isEmpty(stamp: string): boolean {
  return stamp.split(' ')[1] === '0'
}

/** The real path if the file exists; otherwise the path itself. */
export function findRealPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return resolve(path)
  }
}
