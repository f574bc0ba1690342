// Save → live: one generation serves. The next one replaces it in one assignment, after all of it was tested.
import { join } from 'node:path'
import { createAssembler } from './assemble.ts'
import { type Candidate, isAsServing, buildCandidate, listMended } from './candidate.ts'
import { createGenerationRefcount } from './generation-refcount.ts'
import type { Live, LiveOptions, ReloadReport, SwapListener } from './live-types.ts'
import { compareRecent, isHeldBack, logHeldBack, type RecentChanges } from './recent.ts'
import { buildStable, createSaveTracker, withBuildingLine } from './stable-build.ts'
import {
  countParked,
  type FoundProblem,
  isSameProblem,
  type LiveProblem,
  logProblems,
  logReload,
  logSettings,
  toConfigProblem,
  toModuleProblems,
  listSavedFiles,
} from './reload-log.ts'
import { configFile, envFile } from '../config/text.ts'
import type { BuildInput } from '../transforms/read.ts'
import { createWatcher, type Watcher } from './watch.ts'
import { toStoreFiles } from '../model/places.ts'
import { Problem, toProblemRecord } from '../model/problem.ts'
import type { Generation } from '../pipeline/generation.ts'

/** A save that may be held back waits for the comparison for this long; the line of a reload for that long. */
const heldMs = 5_000
const lineMs = 2_000
const none: RecentChanges = new Map()

export function createLive({ log, clock, meter, parkedFor, compareKept, ...options }: LiveOptions): Live {
  const refcount = createGenerationRefcount()
  const saves = createSaveTracker()
  const assembler = createAssembler(options.dir)
  const listeners: SwapListener[] = []
  let serving: Candidate | undefined
  let held: Candidate | undefined
  let newest: Candidate | Problem | undefined
  let endServing = () => {}
  let inputs: readonly BuildInput[] = []
  let problems: readonly LiveProblem[] = []
  let lastReloadAt = 0
  let lastGoodAt: number | undefined
  let watcher: Watcher | undefined
  let closed = false
  let last: Promise<unknown> = Promise.resolve()
  let next: Promise<ReloadReport> | undefined

  function current(): Generation {
    if (serving === undefined) throw new Error('the first generation is not loaded yet')
    return serving.generation
  }

  /** Throws a Problem of the configuration. */
  function build(): Promise<Candidate> {
    const load: LiveOptions['load'] = async (query) => {
      const loaded = await options.load(query)
      inputs = [...loaded.inputs, ...assembler.inputs()]
      return loaded
    }
    const suspects = new Set(problems.flatMap(({ module }) => module ?? []))
    return buildCandidate({ ...options, load, assembler }, { serving, changed: saves.changed(), suspects })
  }

  const freshlySaved = () => listSavedFiles(options.dir, saves.fresh(), inputs)

  async function reloadNow(): Promise<ReloadReport> {
    const startedAt = performance.now()
    const built = await withBuildingLine(log, freshlySaved, () =>
      buildStable({ build, inputs: () => inputs, saves, isClosed: () => closed }),
    )
    newest = built
    const saved = freshlySaved()
    saves.clear()
    const isRefused = built instanceof Problem
    const before = problems
    // if the configuration is invalid, the modules were not loaded: their problems are still the same
    const rest = isRefused ? problems.filter(({ module }) => module !== undefined) : []
    noteProblems(isRefused ? [toConfigProblem(built), ...rest] : toModuleProblems(built.modules))
    const isTaken = !isRefused && !closed
    const parked = await countParked(parkedFor, isTaken ? built.modules : [])
    const isNew = isTaken && (serving === undefined || !isAsServing(built, serving))
    const holding = isNew && serving?.parts.config.hooks.transforms.hold ? await compare(serving, built, heldMs) : none
    held = isNew && isHeldBack(holding) ? built : undefined
    const swapped = isNew && held === undefined
    const tookMs = performance.now() - startedAt
    const previous = serving
    if (swapped) swap(built)
    const isWhole = isTaken && built.modules.every(({ kind }) => kind === 'live' || kind === 'same')
    meter('reloads', { outcome: isWhole ? 'live' : 'refused' })
    const modules = isTaken ? built.modules : []
    const line = { before, problems, modules, parked, tookMs, saved: isNew ? [] : saved }
    if (held !== undefined) logHeldBack(log, holding)
    else if (!swapped || previous === undefined || compareKept === undefined) logReload(log, { ...line, recent: none })
    // what is live need not wait for it
    else void compare(previous, built, lineMs).then((recent) => logReload(log, { ...line, recent }))
    const problem = isRefused ? toProblemRecord(built) : undefined
    return { generation: current().id, swapped, tookMs, modules, problem }
  }

  const compare = (before: Candidate, after: Candidate, limitMs: number) =>
    compareRecent(compareKept, { before, after, limitMs })

  function swap(built: Candidate): void {
    const before = serving
    const end = endServing
    const retired = before === undefined ? Promise.resolve() : refcount.unused(before.generation)
    endServing = refcount.add(built.generation)
    serving = built
    end()
    if (before === undefined) return
    const mended = listMended(before, built)
    logSettings(log, before.generation, built.generation)
    for (const listener of listeners) listener(built.generation, { mended, retired })
  }

  function noteProblems(found: readonly FoundProblem[]): void {
    lastReloadAt = clock()
    problems = found.map(withSince)
    if (problems.length === 0) lastGoodAt = lastReloadAt
  }

  function withSince(problem: FoundProblem): LiveProblem {
    const known = problems.find((other) => isSameProblem(other, problem))
    return { ...problem, since: known?.since ?? clock() }
  }

  const live: Live = {
    current,
    edited() {
      if (newest instanceof Problem) throw newest
      return newest?.edited ?? current()
    },
    ownChannels: () => serving?.assembled.channels ?? [],
    async start() {
      const built = await withBuildingLine(log, freshlySaved, build)
      newest = built
      const parked = await countParked(parkedFor, built.modules)
      noteProblems(toModuleProblems(built.modules))
      swap(built)
      logProblems(log, { before: [], problems, modules: built.modules, parked })
    },
    async watch() {
      const { dir } = options
      watcher = createWatcher({
        paths: {
          root: join(dir, 'hooks', 'transforms'),
          further: ['presets', 'verifiers', 'channels'].map((folder) => join(dir, 'hooks', folder)),
          files: [join(dir, configFile), join(dir, envFile)],
          ignored: toStoreFiles(dir, current().config),
        },
        inputs: () => inputs,
        onTouch: saves.started,
        onChange: (saved) => {
          saves.finished(saved)
          void live.reload()
        },
        log,
      })
      await watcher.ready()
      await live.reload()
    },
    reload() {
      if (next !== undefined) return next
      const mine = last.then(() => {
        next = undefined
        return reloadNow()
      })
      next = mine
      last = mine.catch((error: unknown) => log.error({ err: error }, 'a reload failed inside the gateway'))
      return mine
    },
    async publish() {
      await last
      if (held === undefined) throw new Problem('conflict', 'No save waits: the files on disk are live.')
      const built = held
      held = undefined
      swap(built)
      for (const { module } of built.modules.filter(({ kind }) => kind === 'live')) log.info({}, `${module} is live`)
      return { generation: current().id }
    },
    status: () => ({
      generation: current().id,
      degraded: problems.length > 0 || held !== undefined,
      held: held !== undefined,
      problems,
      lastReloadAt,
      lastGoodAt,
    }),
    onSwap: (listener) => void listeners.push(listener),
    acquire: refcount.acquire,
    async close() {
      closed = true
      await watcher?.close()
      saves.finished({ changed: [], fresh: [] })
      await last
      endServing()
    },
  }
  return live
}
