// Reports every saved module, fixture and configuration file, however the editor writes it. A burst of saves is reported once.
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import type { ChokidarOptions, FSWatcher } from 'chokidar'
import type { Log } from '../../base/log.ts'
import { type BuildInput, hasChanged } from '../transforms/read.ts'
import { isInside } from '../transforms/root.ts'
import { isOutOfWatches, openChokidar, resolveRawPath } from './chokidar.ts'
import { findRealPath, isEmpty, isSource, readStamp } from './file-state.ts'
import { createSweep } from './sweep.ts'

/** `fresh`: the changed files whose current state was not reported yet. */
export type SavedPaths = { readonly changed: readonly string[]; readonly fresh: readonly string[] }

export type WatchOptions = {
  readonly paths: {
    /** The folders with modules, in the same directory as the files. They may not exist yet. */
    readonly roots: readonly string[]
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
  /** Starts chokidar. Tests replace it with one that runs out of watches, or reports nothing. */
  readonly open?: (path: string, options: ChokidarOptions) => Promise<FSWatcher>
  /** How often the files are checked for changes without an event. */
  readonly sweepEveryMs?: number
}

export type Watcher = {
  /** Resolves when every later save will be noticed. */
  ready(): Promise<void>
  /** Whether the files are polled every half second, because the system has no watches left or reports no changes. */
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

export function createWatcher({
  paths,
  inputs,
  onChange,
  onTouch,
  log,
  open = openChokidar,
  sweepEveryMs,
}: WatchOptions): Watcher {
  const given = resolve(dirname(paths.files[0] ?? ''))
  const top = findRealPath(given)
  const within = (path: string) => join(top, relative(given, resolve(path)))
  const givenRoots = paths.roots.map(within)
  /** The roots and the real paths of those that are links. */
  const roots = [...givenRoots]
  const isInRoot = (path: string) => roots.some((root) => isSource(root, path))
  const isAboveRoot = (path: string) => roots.some((root) => path === root || isInside(path, root))
  const files = paths.files.map((file) => join(top, basename(file)))
  const ignored = new Set(paths.ignored?.map(within))
  /** Files outside of the directory, by their real paths, each with the name of the link in the directory. */
  const linked = new Map<string, string>()
  /** Whether a path is watched: in the directory, only the files, the roots and the paths to the roots are watched. */
  const isWatched = (path: string) =>
    !ignored.has(path) &&
    (path === top || files.includes(path) || isAboveRoot(path) || isInRoot(path) || linked.has(path))
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
    for (const path of [...findLinks(), ...newFolders]) void watching.then((watcher) => watcher.add(path))
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

  const listOwnInputs = () => inputs().flatMap(({ file }) => (file.includes(`${sep}node_modules${sep}`) ? [] : file))

  /** The files and folders of the roots, as chokidar knows them. */
  function listWatched(): string[] {
    const folders = Object.entries(opened?.getWatched() ?? {})
    const all = folders.flatMap(([folder, names]) => [folder, ...names.map((name) => join(folder, name))])
    return all.filter((path) => roots.includes(path) || isInRoot(path))
  }

  /** Finds what links of the owner newly lead to, because a change there is no event in the directory. */
  function findLinks(): string[] {
    const added: string[] = []
    for (const root of givenRoots.filter((path) => !roots.includes(findRealPath(path)))) {
      roots.push(findRealPath(root))
      added.push(findRealPath(root))
    }
    for (const path of [...files, ...listOwnInputs()]) {
      const real = findRealPath(path)
      if (real === path || linked.has(real) || isInside(top, real)) continue
      linked.set(real, path)
      added.push(real)
    }
    return added
  }

  function notice(path: string): void {
    sweep.tell(linked.get(path) ?? path)
    sweep.tell(dirname(path))
    if (ignored.has(path)) return
    const link = linked.get(path)
    if (link !== undefined) noteSign(link)
    else if (isInRoot(path) || (isAboveRoot(path) && path !== top)) noteSign(path)
    else checkFiles()
  }

  const sweep = createSweep({
    list: () => new Set([...files, ...listOwnInputs(), ...listWatched()]),
    onMissed: (missed) => {
      for (const path of missed) noteSign(path)
      if (usesPolling || !missed.some((path) => isInside(top, findRealPath(path)))) return
      usesPolling = true
      log.warn(
        {},
        `the system reports no changes of files in ${given}: files are checked every half second instead. Mounts of Docker Desktop and WSL, NFS and SMB report none.`,
      )
      watching = watching.then(pollInstead)
    },
    ...(sweepEveryMs === undefined ? {} : { everyMs: sweepEveryMs }),
  })

  /** Notices the files of a new folder: chokidar reads the folder before it watches it, and misses files that are written in between. */
  function noticeFolder(path: string): void {
    sweep.tell(path)
    sweep.tell(dirname(path))
    if (!isInRoot(path) && !isAboveRoot(path)) return
    newFolders.add(path)
    noteSign(path)
  }

  let usesPolling = false
  let opened: FSWatcher | undefined
  let becomeReady = () => {}
  let ready = new Promise<void>((resolve) => {
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
    opened = watcher
    const behindLinks = [...roots.filter((root) => !givenRoots.includes(root)), ...linked.keys()]
    if (behindLinks.length > 0) watcher.add(behindLinks)
    watcher.on('error', (error) => {
      if (usesPolling || state.kind === 'closed' || !isOutOfWatches(error)) {
        return log.warn({ err: error }, 'a file cannot be watched')
      }
      usesPolling = true
      log.warn({ err: error }, 'the system has no file watches left: files are checked every half second instead')
      watching = pollInstead(watcher)
    })
    watcher.once('ready', () => {
      // a watcher that ran out of watches and is being closed is ignored
      if (isPolling !== usesPolling) return
      becomeReady()
      // what was saved since the last watcher was closed is no event of this one
      if (!isPolling) return
      for (const root of roots) noteSign(root)
      checkFiles()
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
  async function pollInstead(watcher: FSWatcher): Promise<FSWatcher> {
    const becomeReadyBefore = becomeReady
    ready = new Promise((resolve) => {
      becomeReady = () => {
        becomeReadyBefore()
        resolve()
      }
    })
    await watcher.close()
    return start()
  }

  findLinks()
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
      sweep.close()
      await (await watching).close()
    },
  }
}
