// Makes saves live. One generation serves; when all parts of the next one are tested, it replaces the serving one in a single assignment.
import { join } from 'node:path'
import { createAssembler } from './assemble.ts'
import { type Candidate, isSameAsServing, buildCandidate, listRetryableModules } from './candidate.ts'
import { createGenerationRefcount } from '../../core/reload/generation-refcount.ts'
import type { Live, LiveOptions, LiveStatus, ReloadReport } from './live-types.ts'
import { compareRecent, logRecent, mustWait, logWaiting, type RecentChanges } from './recent.ts'
import { buildStable, createSaveTracker } from '../../core/reload/stable-build.ts'
import {
  codeFolders,
  countParked,
  type FoundProblem,
  isSameProblem,
  type LiveProblem,
  logProblems,
  logReload,
  logSettings,
  type SavedFile,
  toConfigProblem,
  toModuleProblems,
  listSavedFiles,
  logLongBuild,
} from './reload-log.ts'
import { configFile, envFile } from '../config/text.ts'
import { noOwnParts } from '../../model/plugin.ts'
import type { BuildInput } from '../../core/transforms/read.ts'
import { createWatcher, type Watcher } from '../../core/reload/watch.ts'
import { createSerialQueue } from '../../base/serial.ts'
import { toStoreFiles } from '../../model/places.ts'
import { Problem, toProblemRecord } from '../../core/model/problem.ts'
import type { Generation } from '../generation/generation.ts'

/** The time limits of a comparison with recent deliveries: before a swap that may have to wait, and for a log line. */
const beforeSwapMs = 5_000
const forLineMs = 30_000
const none: RecentChanges = new Map()

/** `newest`: the result of the last build; a Problem if the configuration is invalid. */
type Loaded = {
  readonly serving: Candidate
  /** Releases the serving generation. */
  readonly release: () => void
  readonly newest: Candidate | Problem
}

/**
 * ```
 *         start            a save that hooks.transforms.hold keeps back
 *  empty ───────▶ serving ────────────────────────────────────────────▶ waiting ──┐
 *                 ▲  ▲ │    publish, or a save that need not wait         │  ▲    │ another save
 *                 │  └─┼──────────────────────────────────────────────────┘  └────┘ that must wait
 *                 └────┘ any other save
 * ```
 */
type State =
  | { readonly kind: 'empty' }
  | (Loaded & { readonly kind: 'serving' })
  | (Loaded & { readonly kind: 'waiting'; readonly waiting: Candidate })

export function createReload({
  log,
  clock,
  meter,
  parkedFor,
  compareKept,
  onCompared,
  onReload,
  onSwap,
  onReport,
  ...options
}: LiveOptions): Live {
  const refcount = createGenerationRefcount<Generation>()
  const saves = createSaveTracker()
  const assembler = createAssembler(options.dir)
  const closing = new AbortController()
  const inOrder = createSerialQueue()
  let state: State = { kind: 'empty' }
  let health: Pick<LiveStatus, 'problems' | 'lastReloadAt' | 'lastGoodAt' | 'lastSave'> = {
    problems: [],
    lastReloadAt: 0,
    lastGoodAt: undefined,
    lastSave: undefined,
  }
  let inputs: readonly BuildInput[] = []
  /** The next reload, if it has not begun. */
  let planned: Promise<ReloadReport> | undefined
  let stopWatching: Watcher['close'] = async () => {}

  function requireLoaded(): Exclude<State, { kind: 'empty' }> {
    if (state.kind === 'empty') throw new Error('the first generation is not loaded yet')
    return state
  }

  const current = (): Generation => requireLoaded().serving.generation

  /** The transition to `serving` with another generation. The `retired` of `onSwap` resolves when nothing uses the previous generation. */
  function swap(built: Candidate): void {
    const before = state
    state = { kind: 'serving', serving: built, release: refcount.add(built.generation), newest: built }
    if (before.kind === 'empty') return
    const { generation } = before.serving
    const retired = refcount.waitUntilUnused(generation)
    before.release()
    const retryable = listRetryableModules(before.serving, built)
    logSettings(log, generation, built.generation)
    onSwap?.(built.generation, { retryable, retired })
  }

  /** The transitions after a save that does not go live, or not yet. */
  function keepServing(waiting: Candidate | undefined): void {
    const { serving, release, newest } = requireLoaded()
    const same = { serving, release, newest }
    state = waiting === undefined ? { kind: 'serving', ...same } : { kind: 'waiting', ...same, waiting }
  }

  /** Builds the next generation. Throws a Problem of the configuration. */
  function build(): Promise<Candidate> {
    const load: LiveOptions['load'] = async (query) => {
      const modules = await options.load(query)
      inputs = [...modules.inputs, ...assembler.inputs()]
      return modules
    }
    const suspects = new Set(health.problems.flatMap(({ module }) => module ?? []))
    const serving = state.kind === 'empty' ? undefined : state.serving
    return buildCandidate({ ...options, load, assembler }, { serving, changed: saves.listChanged(), suspects })
  }

  const listFreshFiles = () => listSavedFiles(options.dir, saves.listFresh(), inputs)

  async function reloadNow(): Promise<ReloadReport> {
    const startedAt = performance.now()
    const { signal } = closing
    const built = await logLongBuild(log, listFreshFiles, () =>
      buildStable({ build, inputs: () => inputs, saves, isClosed: () => signal.aborted }),
    )
    state = { ...requireLoaded(), newest: built }
    const saved = listFreshFiles()
    saves.clear()
    const { problems: before, lastGoodAt } = health
    recordProblems(built, saved)
    const candidate = built instanceof Problem || signal.aborted ? undefined : built
    const modules = candidate?.modules ?? []
    const { serving } = requireLoaded()
    const next = candidate !== undefined && !isSameAsServing(candidate, serving) ? candidate : undefined
    const mayWait = next !== undefined && serving.parts.config.hooks.transforms.hold
    const changes = mayWait ? await compare(serving, next, beforeSwapMs) : none
    const waits = mustWait(changes)
    if (waits) health = { ...health, lastGoodAt }
    const swapped = next !== undefined && !waits
    const tookMs = performance.now() - startedAt
    if (swapped) swap(next)
    else keepServing(next)
    onReload?.()
    const isWhole = candidate?.modules.every(({ kind }) => kind === 'live' || kind === 'same') === true
    meter('reloads', { outcome: isWhole ? 'live' : 'refused' })
    const { problems } = health
    const parked = await countParked(parkedFor, modules)
    const { drain } = current().config.hooks.transforms
    const line = { before, problems, modules, parked, drain, tookMs, saved: next === undefined ? saved : [] }
    if (waits) logWaiting(log, changes)
    else logReload(log, line)
    if (swapped) void reportChanges(serving, next)
    const problem = built instanceof Problem ? toProblemRecord(built) : undefined
    const fresh = problems.find(({ since }) => since === health.lastReloadAt)
    const details = { files: saved.map(({ label }) => label), held: waits, why: fresh?.detail }
    onReport?.({ generation: current().id, swapped, ...details })
    return { generation: current().id, swapped, tookMs, modules, problem }
  }

  const compare = (before: Candidate, after: Candidate, limitMs: number) =>
    compareRecent(compareKept, { before, after, limitMs })

  /** The swap does not wait for this comparison, and a newer swap makes it worthless. */
  async function reportChanges(before: Candidate, after: Candidate): Promise<void> {
    const changes = await compare(before, after, forLineMs)
    if (current() !== after.generation) return
    logRecent(log, changes)
    onCompared?.(after.generation.id, changes)
  }

  function recordProblems(built: Candidate | Problem, saved: readonly SavedFile[] = []): void {
    const known = health.problems
    const lastReloadAt = clock()
    // with an invalid configuration, the modules are not loaded, so their problems are unchanged
    const found: readonly FoundProblem[] =
      built instanceof Problem
        ? [toConfigProblem(built), ...known.filter(({ module }) => module !== undefined)]
        : toModuleProblems(built.modules)
    const problems = found.map((problem): LiveProblem => {
      const { since = lastReloadAt } = known.find((other) => isSameProblem(other, problem)) ?? {}
      return { ...problem, since }
    })
    health = {
      problems,
      lastReloadAt,
      lastGoodAt: problems.length === 0 ? lastReloadAt : health.lastGoodAt,
      lastSave: saved.length === 0 ? health.lastSave : { files: saved.map(({ label }) => label), at: lastReloadAt },
    }
  }

  function reload(): Promise<ReloadReport> {
    if (planned !== undefined) return planned
    const mine = inOrder(() => {
      planned = undefined
      return reloadNow()
    })
    planned = mine
    void mine.catch((error: unknown) => log.error({ err: error }, 'a reload failed inside the gateway'))
    return mine
  }

  return {
    current,
    requireEdited() {
      const { newest } = requireLoaded()
      if (newest instanceof Problem) throw newest
      return newest.edited
    },
    describeThrower: assembler.describeThrower,
    ownParts: () => (state.kind === 'empty' ? noOwnParts : state.serving.assembled.own),
    async start() {
      const built = await logLongBuild(log, listFreshFiles, build)
      recordProblems(built)
      swap(built)
      const parked = await countParked(parkedFor, built.modules)
      const { drain } = current().config.hooks.transforms
      logProblems(log, { before: [], problems: health.problems, modules: built.modules, parked, drain })
    },
    async watch() {
      const { dir } = options
      const watcher = createWatcher({
        paths: {
          roots: codeFolders.map((folder) => join(dir, folder)),
          files: [join(dir, configFile), join(dir, envFile)],
          ignored: toStoreFiles(dir, current().config),
        },
        inputs: () => inputs,
        onTouch: saves.begin,
        onChange: (saved) => {
          saves.finish(saved)
          void reload()
        },
        log,
      })
      stopWatching = watcher.close
      await watcher.ready()
      await reload()
    },
    reload,
    publish: () =>
      inOrder(() => {
        const isGood = health.problems.length === 0
        if (state.kind !== 'waiting') {
          const why = isGood
            ? 'the files on disk are live.'
            : 'a file on disk has a problem. "hookloom check" shows it.'
          throw new Problem('conflict', `No save waits: ${why}`)
        }
        const { waiting } = state
        swap(waiting)
        if (isGood) health = { ...health, lastGoodAt: clock() }
        onReload?.()
        for (const { module } of waiting.modules.filter(({ kind }) => kind === 'live'))
          log.info({}, `${module} is live`)
        return { generation: current().id }
      }),
    status: () => ({
      generation: current().id,
      degraded: health.problems.length > 0 || state.kind === 'waiting',
      held: state.kind === 'waiting',
      ...health,
    }),
    acquire: refcount.acquire,
    async close() {
      closing.abort()
      await stopWatching()
      saves.finish({ changed: [], fresh: [] })
      await inOrder(() => {})
      if (state.kind !== 'empty') state.release()
    },
  }
}
