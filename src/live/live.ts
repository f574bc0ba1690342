// Save → live: one generation serves, and the next takes its place in one assignment, once all of it is known to be good.
import { join } from 'node:path'
import { type Assembled, createAssembler } from './assemble.ts'
import type { Parts } from './fixtures.ts'
import { type ModuleReport, passGate } from './gate.ts'
import { createHolds } from './holds.ts'
import { configFile, envFile, loadConfig } from '../loader/config.ts'
import type { Env } from '../loader/env.ts'
import type { Input } from '../loader/read.ts'
import { resolveTransformsRoot } from '../loader/root.ts'
import { createWatcher, type Watcher } from '../loader/watch.ts'
import type { Config } from '../model/config.ts'
import type { Log } from '../model/log.ts'
import type { TransformRef } from '../model/mapping.ts'
import { type Problem, type ProblemRecord, toProblem, toProblemRecord } from '../model/problem.ts'
import type { Transform } from '../model/transform.ts'
import {
  type FoundProblem,
  isSameProblem,
  type LiveProblem,
  tellConfig,
  tellReload,
  toConfigProblem,
  toModuleProblems,
} from './news.ts'
import { createGeneration, type Generation } from '../pipeline/generation.ts'
import type { VerifierTools } from '../pipeline/verify.ts'

/** What a load gave, and the files as they were read for it. */
export type LoadedModules = {
  readonly transforms: ReadonlyMap<string, Transform>
  readonly inputs: readonly Input[]
}

export type LiveOptions = {
  /** The config directory. */
  readonly dir: string
  readonly env: Env
  /** A module that does not load is a stand-in with the reason. Throws `config-invalid` for one outside the root. */
  readonly load: (query: { root: string; refs: readonly TransformRef[]; config: Config }) => Promise<LoadedModules>
  readonly verifierTools?: (mappingId: string) => VerifierTools
  readonly log: Log
  readonly clock: () => number
}

export type LiveStatus = {
  readonly generation: string
  /** Something that was saved is not live, or does not hold. */
  readonly degraded: boolean
  readonly problems: readonly LiveProblem[]
  readonly lastReloadAt: number
  /** When all that was saved was last live. */
  readonly lastGoodAt: number | undefined
}

/** `problem`: why the configuration was not taken; then `modules` is empty, and the last generation serves as it was. */
export type ReloadReport = {
  readonly generation: string
  readonly swapped: boolean
  readonly tookMs: number
  readonly modules: readonly ModuleReport[]
  readonly problem: ProblemRecord | undefined
}

/**
 * `mended`: modules whose parked deliveries may fare better now. `retired` resolves when the last request of the generation
 * before has ended: what that one parked meanwhile may run again too.
 */
export type Swap = { readonly mended: readonly string[]; readonly retired: Promise<void> }
export type SwapListener = (generation: Generation, swap: Swap) => void

export type Live = {
  /** What a request begins with, and keeps. */
  current(): Generation
  /** Loads the first generation. Throws `config-missing` or `config-invalid`; a module that does not load is no reason to. */
  start(): Promise<void>
  /** Begins to watch; resolves when every save from now on is seen, and those since the start are live. */
  watch(): Promise<void>
  /** After the one that runs, if one does. Never rejects. */
  reload(): Promise<ReloadReport>
  status(): LiveStatus
  onSwap(listener: SwapListener): void
  /** For as long as a request runs: `retired` waits for it. */
  hold(generation: Generation): () => void
  close(): Promise<void>
}

type Built = {
  kind: 'built'
  generation: Generation
  assembled: Assembled
  parts: Parts
  modules: readonly ModuleReport[]
}

const fixtureBudgetMs = 2000
/** Builds that are thrown away since somebody saved meanwhile, before one is taken as it is. */
const mostRounds = 5

export function createLive({ dir, env, load, verifierTools, log, clock }: LiveOptions): Live {
  const holds = createHolds()
  const assembler = createAssembler(dir)
  const listeners: SwapListener[] = []
  const changed = new Set<string>()
  let serving: Built | undefined
  let endServing = () => {}
  let inputs: readonly Input[] = []
  let problems: readonly LiveProblem[] = []
  let lastReloadAt = 0
  let lastGoodAt: number | undefined
  let watcher: Watcher | undefined
  let touched = false
  let calm: Promise<void> | undefined
  let becomeCalm = () => {}
  let closed = false
  let last: Promise<unknown> = Promise.resolve()
  let next: Promise<ReloadReport> | undefined

  function current(): Generation {
    if (serving === undefined) throw new Error('the first generation is not loaded yet')
    return serving.generation
  }

  /** Everything anew from disk. Throws a Problem of the configuration. */
  async function build(): Promise<Built> {
    const { config } = loadConfig({ dir, env })
    const assembled = await assembler.assemble(config, serving?.assembled)
    const { mappings, verifiers, reports } = assembled
    // a template that does not parse is found before any transform is loaded
    createGeneration({ config, mappings, transforms: new Map(), verifiers })
    const root = await resolveTransformsRoot({ configDir: dir, transformsDir: config.hooks.transformsDir })
    const refs = mappings.flatMap(({ transform }) => transform ?? [])
    const loaded = await load({ root, refs, config })
    inputs = [...loaded.inputs, ...assembler.inputs()]
    const { transforms, modules } = await passGate({
      root,
      parts: { config, mappings, transforms: loaded.transforms, verifiers },
      serving: serving?.generation.transforms,
      changed: [...changed],
      suspects: new Set(problems.flatMap(({ module }) => module ?? [])),
      budgetMs: fixtureBudgetMs,
    })
    const parts = { config, mappings, transforms, verifiers }
    const generation = createGeneration({ ...parts, verifierTools })
    return { kind: 'built', assembled, parts, modules: [...reports, ...modules], generation }
  }

  /** The newest that there is: what was saved while it was built is built again. */
  async function buildNewest(): Promise<Built | { kind: 'refused'; problem: Problem }> {
    for (let round = 1; ; round += 1) {
      // in the middle of a save, files are half of what they will be
      await calm
      touched = false
      try {
        const built = await build()
        if (!touched || round === mostRounds || closed) return built
      } catch (error) {
        if (!touched || round === mostRounds || closed) return { kind: 'refused', problem: toProblem(error) }
      }
    }
  }

  async function reloadNow(): Promise<ReloadReport> {
    const startedAt = performance.now()
    const built = await buildNewest()
    changed.clear()
    lastReloadAt = clock()
    const found = built.kind === 'refused' ? [toConfigProblem(built.problem)] : toModuleProblems(built.modules)
    const before = problems
    // the modules were not looked at where the configuration does not hold: what was wrong with them still is
    const rest = built.kind === 'refused' ? problems.filter(({ module }) => module !== undefined) : []
    problems = [...found.map(withSince), ...rest]
    if (problems.length === 0) lastGoodAt = lastReloadAt
    if (closed || built.kind === 'refused') {
      tellReload(log, { before, problems, modules: [], tookMs: 0 })
      const problem = built.kind === 'refused' ? toProblemRecord(built.problem) : undefined
      return { generation: current().id, swapped: false, tookMs: performance.now() - startedAt, modules: [], problem }
    }
    const swapped = !isAsServing(built.generation, current())
    const tookMs = performance.now() - startedAt
    if (swapped) swap(built)
    tellReload(log, { before, problems, modules: built.modules, tookMs })
    return { generation: current().id, swapped, tookMs, modules: built.modules, problem: undefined }
  }

  function swap(built: Built): void {
    const before = serving
    const end = endServing
    const retired = before === undefined ? Promise.resolve() : holds.gone(before.generation)
    endServing = holds.begin(built.generation)
    serving = built
    end()
    if (before === undefined) return
    const mended = toMended(before, built)
    tellConfig(log, before.parts.config, built.parts.config)
    for (const listener of listeners) listener(built.generation, { mended, retired })
  }

  function withSince(problem: FoundProblem): LiveProblem {
    const known = problems.find((other) => isSameProblem(other, problem))
    return { ...problem, since: known?.since ?? clock() }
  }

  const live: Live = {
    current,
    async start() {
      const built = await build()
      lastReloadAt = clock()
      problems = toModuleProblems(built.modules).map(withSince)
      if (problems.length === 0) lastGoodAt = lastReloadAt
      swap(built)
      for (const { detail, frame } of problems) log.warn(frame === undefined ? {} : { frame }, detail)
    },
    async watch() {
      watcher = createWatcher({
        paths: {
          root: join(dir, 'hooks', 'transforms'),
          further: [join(dir, 'hooks', 'presets'), join(dir, 'hooks', 'verifiers')],
          files: [join(dir, configFile), join(dir, envFile)],
        },
        inputs: () => inputs,
        onTouch: () => {
          touched = true
          calm ??= new Promise((resolve) => {
            becomeCalm = resolve
          })
        },
        onChange: (reason) => {
          becomeCalm()
          calm = undefined
          for (const path of reason.changed) changed.add(path)
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
    hold: holds.hold,
    async close() {
      closed = true
      await watcher?.close()
      becomeCalm()
      await last
      endServing()
    },
  }
  return live
}

/** A stand-in has no code, only a reason, which answers show in development. */
function isAsServing(one: Generation, other: Generation): boolean {
  return one.id === other.id && JSON.stringify(one.problems) === JSON.stringify(other.problems)
}

/** New code, that is; and where the configuration changed, every module, also one that is no longer named. */
function toMended(before: Built, after: Built): string[] {
  const sound = after.modules.filter(({ kind }) => kind === 'live').map(({ module }) => module)
  if (JSON.stringify(before.parts.config) === JSON.stringify(after.parts.config)) return sound
  const good = [...after.generation.transforms.values()].filter(({ problem }) => problem === undefined)
  const named = new Set(after.modules.map(({ module }) => module))
  const dropped = before.modules.filter(({ module }) => !named.has(module))
  return [...new Set([...good, ...dropped].map(({ module }) => module))]
}
