// Loads modules in worker threads with the gateway's limits, and runs their fixtures, as a gateway does before a save goes live.
import { realpathSync } from 'node:fs'
import { extname, relative, resolve } from 'node:path'
import { createAssembler } from '../../gateway/reload/assemble.ts'
import { type FixtureOutcome, type GenerationParts, runFixture } from '../../gateway/replay/fixtures.ts'
import { loadConfig, type LoadedConfig } from '../../gateway/config/config.ts'
import { pickEnv } from '../../gateway/config/env.ts'
import { type FixtureFile, readFixtures } from '../../gateway/replay/fixture-files.ts'
import type { Config } from '../../model/config/config.ts'
import { findNearest } from '../../base/text.ts'
import type { BuildInput } from '../../core/transforms/read.ts'
import { moduleExtensions, resolveModule, resolveTransformsRoot } from '../../core/transforms/root.ts'
import { createTransformRuntime, type RuntimeOptions } from '../../core/transforms/runtime.ts'
import { silentLog } from '../../base/log.ts'
import { Problem, type ProblemRecord } from '../../core/model/problem.ts'
import type { Context } from '../terminal/context.ts'
import { cutLine } from '../terminal/print.ts'

export type BenchModules = {
  /** The transforms root, with symlinks resolved. */
  readonly root: string
  readonly parts: GenerationParts
  /** The requested modules, each once. */
  readonly modules: readonly string[]
  /** The `process.env` of the modules. */
  readonly env: Readonly<Record<string, string>>
}

type ModuleResult = {
  readonly module: string
  /** Why the module does not load, and so no fixture was run. Undefined if it loads. */
  readonly problem: ProblemRecord | undefined
  readonly fixtures: readonly { readonly file: FixtureFile; readonly outcome: FixtureOutcome }[]
}

export type Bench = {
  /**
   * Loads the configuration (or uses `config`), and the modules with these names; without names, all modules of the configuration. Throws a
   * Problem of the configuration, and `usage-invalid` for an unknown module.
   */
  load(names: readonly string[], config?: Config): Promise<BenchModules>
  run(loaded: BenchModules, module: string): Promise<ModuleResult>
  /** The files that the latest load read. */
  inputs(): readonly BuildInput[]
  close(): Promise<void>
}

/** `isWithoutSecrets`: see `substituteEnv`. `onCovered` and `isShadow`: see `RuntimeOptions`. */
export function createBench({
  dir,
  env,
  isWithoutSecrets,
  onCovered,
  isShadow,
}: Pick<Context, 'dir' | 'env'> &
  Pick<RuntimeOptions, 'onCovered' | 'isShadow'> & { readonly isWithoutSecrets?: boolean }): Bench {
  const assembler = createAssembler(dir)
  const runtime = createTransformRuntime({ clock: Date.now, log: silentLog, onCovered, isShadow })

  async function load(names: readonly string[], given?: Config): Promise<BenchModules> {
    const loaded = loadConfig({ dir, env, isWithoutSecrets })
    const settings = buildSettings(loaded)
    const config = given ?? loaded.config
    const { mappings, senders, verifiers } = await assembler.assemble(config)
    const root = await resolveTransformsRoot(dir, config.hooks)
    const mapped = mappings.flatMap(({ transform }) => transform ?? [])
    const known = [...new Set(mapped.map(({ module }) => module))]
    const modules = names.length === 0 ? known : await Promise.all(names.map((name) => findModule(root, known, name)))
    const unmapped = modules.filter((module) => !known.includes(module)).map((module) => ({ module }))
    const refs = [...mapped.filter(({ module }) => modules.includes(module)), ...unmapped]
    const transforms = await runtime.load({ root, refs, settings })
    return {
      root,
      parts: { config, mappings, transforms, senders, verifiers },
      modules: [...new Set(modules)],
      env: settings.env,
    }
  }

  return {
    load,
    async run({ root, parts }, module) {
      const problem = findModuleProblem(parts, module)
      if (problem !== undefined) return { module, problem, fixtures: [] }
      const fixtures: ModuleResult['fixtures'][number][] = []
      for (const file of await readFixtures(root, module)) {
        fixtures.push({ file, outcome: await runFixture(parts, module, file) })
      }
      return { module, problem, fixtures }
    },
    inputs: runtime.inputs,
    close: runtime.close,
  }
}

function buildSettings({ config, env }: LoadedConfig) {
  const limits = config.hooks.transforms
  return { ...limits, env: pickEnv(limits.env, env) }
}

function findModuleProblem({ transforms }: GenerationParts, module: string): ProblemRecord | undefined {
  const own = [...transforms.values()].filter((transform) => transform.module === module)
  return own.find(({ problem }) => problem !== undefined)?.problem
}

/** Accepts the module's name in the configuration, that name without its extension, or a path from the shell. */
async function findModule(root: string, known: readonly string[], name: string): Promise<string> {
  for (const word of [name, relative(root, findRealPath(name))]) {
    const endings = extname(word) === '' ? moduleExtensions : ['']
    for (const plain of endings.map((ending) => `${word.replace(/^(\.\/)+/, '')}${ending}`)) {
      const mapped = known.find((module) => module.replace(/^(\.\/)+/, '') === plain)
      if (mapped !== undefined) return mapped
      const isThere = await resolveModule(root, plain).then(
        () => true,
        () => false,
      )
      if (isThere) return plain
    }
  }
  const near = findNearest(name, [...known, ...known.map((module) => module.slice(0, -extname(module).length))])
  const next = near === undefined ? `Looked in ${root}.` : `Did you mean ${near}?`
  throw new Problem('usage-invalid', `There is no module "${cutLine(name, 80)}". ${next}`)
}

function findRealPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return resolve(path)
  }
}
