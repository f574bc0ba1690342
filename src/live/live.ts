// Save → live: one generation serves. The next one replaces it in one assignment, after all of it was tested.
import { join } from 'node:path'
import { createAssembler } from './assemble.ts'
import { type Candidate, type CandidateSource, isAsServing, makeCandidate, toMended } from './candidate.ts'
import type { ModuleReport } from './gate.ts'
import { createGenerationRefcount } from './generation-refcount.ts'
import { buildStable, createSaveTracker, withBuildingLine } from './stable-build.ts'
import {
  countParked,
  type FoundProblem,
  isSameProblem,
  type LiveProblem,
  logProblems,
  logReload,
  logSettings,
  type ParkedFor,
  toConfigProblem,
  toModuleProblems,
  toSaved,
} from './reload-log.ts'
import { configFile, envFile } from '../loader/config/text.ts'
import type { Input } from '../loader/read.ts'
import { createWatcher, type Watcher } from '../loader/watch.ts'
import type { OwnChannel } from '../model/channel.ts'
import type { Log, Meter } from '../model/log.ts'
import { toStoreFiles } from '../model/places.ts'
import { Problem, type ProblemRecord, toProblemRecord } from '../model/problem.ts'
import type { Generation } from '../pipeline/generation.ts'

export type LiveOptions = CandidateSource & {
  readonly log: Log
  readonly clock: () => number
  readonly meter: Meter
  /** The number of parked deliveries that wait for a module, for the log of a reload. Without it, none are counted. */
  readonly parkedFor?: ParkedFor
}

export type LiveStatus = {
  readonly generation: string
  /** A saved file is not live, or is invalid. */
  readonly degraded: boolean
  readonly problems: readonly LiveProblem[]
  readonly lastReloadAt: number
  /** The last time at which all saved files were live. */
  readonly lastGoodAt: number | undefined
}

/** `problem`: why the configuration was refused. Then `modules` is empty, and the last generation keeps serving unchanged. */
export type ReloadReport = {
  readonly generation: string
  readonly swapped: boolean
  readonly tookMs: number
  readonly modules: readonly ModuleReport[]
  readonly problem: ProblemRecord | undefined
}

/**
 * `mended`: modules whose parked deliveries may succeed now. `retired` resolves when the last request of the previous generation
 * has ended: deliveries that it parked in the meantime may run again too.
 */
export type Swap = { readonly mended: readonly string[]; readonly retired: Promise<void> }
export type SwapListener = (generation: Generation, swap: Swap) => void

export type Live = {
  /** The generation that serves. A request keeps the one that it began with. */
  current(): Generation
  /** The files as they were at the newest load, live or not. Throws the problem of an invalid configuration. */
  edited(): Generation
  /** The channels in code of that generation. */
  ownChannels(): readonly OwnChannel[]
  /** Loads the first generation. Throws `config-missing` or `config-invalid`, but not for a module that does not load. */
  start(): Promise<void>
  /** Starts to watch. Resolves when every later save will be noticed, and all saves since the start are live. */
  watch(): Promise<void>
  /** Reloads, after a running reload has ended. Never rejects. */
  reload(): Promise<ReloadReport>
  status(): LiveStatus
  onSwap(listener: SwapListener): void
  /** Marks the generation as used by a request until the returned function is called: `retired` waits for it. */
  hold(generation: Generation): () => void
  close(): Promise<void>
}

export function createLive({ log, clock, meter, parkedFor, ...options }: LiveOptions): Live {
  const refcount = createGenerationRefcount()
  const saves = createSaveTracker()
  const assembler = createAssembler(options.dir)
  const listeners: SwapListener[] = []
  let serving: Candidate | undefined
  let newest: Candidate | Problem | undefined
  let endServing = () => {}
  let inputs: readonly Input[] = []
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
    return makeCandidate({ ...options, load, assembler }, { serving, changed: saves.changed(), suspects })
  }

  const freshlySaved = () => toSaved(options.dir, saves.fresh(), inputs)

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
    note(isRefused ? [toConfigProblem(built), ...rest] : toModuleProblems(built.modules))
    const isTaken = !isRefused && !closed
    const parked = await countParked(parkedFor, isTaken ? built.modules : [])
    const swapped = isTaken && (serving === undefined || !isAsServing(built, serving))
    const tookMs = performance.now() - startedAt
    if (swapped) swap(built)
    const isWhole = isTaken && built.modules.every(({ kind }) => kind === 'live' || kind === 'same')
    meter('reloads', { outcome: isWhole ? 'live' : 'refused' })
    const modules = isTaken ? built.modules : []
    logReload(log, { before, problems, modules, parked, tookMs, saved: swapped ? [] : saved })
    const problem = isRefused ? toProblemRecord(built) : undefined
    return { generation: current().id, swapped, tookMs, modules, problem }
  }

  function swap(built: Candidate): void {
    const before = serving
    const end = endServing
    const retired = before === undefined ? Promise.resolve() : refcount.unused(before.generation)
    endServing = refcount.add(built.generation)
    serving = built
    end()
    if (before === undefined) return
    const mended = toMended(before, built)
    logSettings(log, { ...before, config: before.parts.config }, { ...built, config: built.parts.config })
    for (const listener of listeners) listener(built.generation, { mended, retired })
  }

  function note(found: readonly FoundProblem[]): void {
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
      note(toModuleProblems(built.modules))
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
    status: () => ({
      generation: current().id,
      degraded: problems.length > 0,
      problems,
      lastReloadAt,
      lastGoodAt,
    }),
    onSwap: (listener) => void listeners.push(listener),
    hold: refcount.acquire,
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
