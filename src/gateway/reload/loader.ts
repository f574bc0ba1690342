// Loads the modules of integrators that define something: presets, verifiers, channels and plugins. They are built and confined like transforms,
// but evaluated in the main thread, which uses their definitions.
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { toErrorText } from '../../base/exceptions.ts'
import { Problem, type ProblemCode, type ProblemRecord, toProblemRecord } from '../../core/model/problem.ts'
import {
  type ParseResult,
  safeParseChannel,
  safeParsePlugin,
  safeParsePreset,
  safeParseVerifier,
} from '../../model/definitions.ts'
import { findModuleFile, type ModuleKind, toExpectedLabel } from './module-files.ts'
import { chooseVersion, type ModuleReport } from '../../core/reload/gate.ts'
import { type Bundle, buildModule, type ModuleFile } from '../../core/transforms/modules/build.ts'
import type { Evaluated } from '../../core/transforms/modules/evaluate.ts'
import type { Locate } from '../../core/transforms/modules/locate.ts'
import { type BuildInput, toInputStamp } from '../../core/transforms/read.ts'
import { toFileLabel } from '../../core/transforms/root.ts'
import { buildThrownReport } from '../../core/transforms/modules/thrown.ts'
import { installProvided } from '../../core/transforms/modules/provided.ts'
import { isUnchanged } from '../../core/transforms/modules/resolution-snapshot.ts'

/** What the default export of each kind must be, and the code of its problems. */
const kinds = {
  preset: { code: 'config-invalid', expected: 'a preset by default: definePreset({ … })', parse: safeParsePreset },
  verifier: {
    code: 'verifier-failed',
    expected: 'a verifier by default: defineVerifier({ … })',
    parse: safeParseVerifier,
  },
  channel: { code: 'channel-failed', expected: 'a channel by default: defineChannel({ … })', parse: safeParseChannel },
  plugin: {
    code: 'plugin-failed',
    expected: 'by default what defineChannel or its like returns, or a list of that',
    parse: safeParsePlugin,
  },
} satisfies Record<ModuleKind, { code: ProblemCode; expected: string; parse: (value: unknown) => ParseResult<unknown> }>

type Exported<Kind extends ModuleKind> = Extract<ReturnType<(typeof kinds)[Kind]['parse']>, { ok: true }>['value']

/** The default export of a module. */
type Definition<Value> = {
  readonly kind: 'sound'
  readonly value: Value
  /** The hash of its bundle. */
  readonly hash: string
  /** Describes an exception in the module's code with its place, without text that may quote a request. */
  describeThrown(thrown: unknown): string
}

type Broken = { readonly kind: 'broken'; readonly problem: ProblemRecord }

/** A module, or why it does not load. `label`: its file, for messages. */
export type Loaded<Kind extends ModuleKind> = { readonly label: string } & (Definition<Exported<Kind>> | Broken)

export type Loader = {
  /** The config directory. */
  readonly dir: string
  /** Loads files, and keeps their order. A file that did not change is not evaluated again. Other modules of the kind are dropped. */
  load<Kind extends ModuleKind>(kind: Kind, files: readonly ModuleFile[]): Promise<Loaded<Kind>[]>
  /** Every file that the newest load of each kind read, with its state at that time. */
  inputs(): readonly BuildInput[]
  /** The module whose code threw an exception, and where: `hooks/plugins/zulip.ts threw a TypeError at zulip.ts:12`. */
  describeThrower(thrown: unknown): string | undefined
}

type Known = { readonly bundle: Bundle; readonly manifest: string; readonly definition: Definition<unknown> | Problem }

/** The time limit for the top level of a module. */
const evaluateMs = 5_000

export function createLoader(dir: string): Loader {
  const known = new Map<ModuleKind, ReadonlyMap<string, Known>>()
  /** Of each module that was ever evaluated, the newest version: a timer of it may run when its file is broken or gone. */
  const evaluated = new Map<string, Locate>()

  async function loadOne(file: ModuleFile, before: Known | undefined): Promise<Known | Problem> {
    const manifest = await readManifestStamp(file)
    if (before?.bundle.root === file.root && before.manifest === manifest && (await isUnchanged(before.bundle))) {
      return before
    }
    try {
      const bundle = await buildModule(file)
      const definition = await evaluate(bundle, (locate) => evaluated.set(toFileLabel(file), locate))
      return { bundle, manifest, definition }
    } catch (error) {
      if (error instanceof Problem) return error
      const detail = `${toFileLabel(file)} could not be loaded.`
      return new Problem('transform-load-failed', detail, { frame: toErrorText(error), cause: error })
    }
  }

  return {
    dir,
    async load(kind, files) {
      const before = known.get(kind)
      const loaded = await Promise.all(
        files.map(async (file) => [file, await loadOne(file, before?.get(file.file))] as const),
      )
      known.set(
        kind,
        new Map(loaded.flatMap(([{ file }, one]) => (one instanceof Problem ? [] : [[file, one] as const]))),
      )
      return loaded.map(([file, one]) => check(kind, file, one instanceof Problem ? one : one.definition))
    },
    inputs: () => [...known.values()].flatMap((ofKind) => [...ofKind.values()].flatMap(({ bundle }) => bundle.inputs)),
    describeThrower(thrown) {
      for (const [label, locate] of evaluated) {
        const { what, at } = buildThrownReport(thrown, locate)
        if (at !== '') return `${label} threw ${what}${at}`
      }
      return undefined
    },
  }
}

/**
 * Loads the modules with these names, and keeps the last good version of each that is broken now. `define`: makes a version of a module.
 * `describeMissing`: why a module that does not exist is needed; undefined leaves the name out. `findLast`: the version that serves.
 */
export async function loadVersions<
  Kind extends ModuleKind,
  Version extends Pick<Definition<unknown>, 'kind' | 'hash'> | Broken,
>(
  loader: Loader,
  kind: Kind,
  query: {
    readonly names: readonly string[]
    readonly describeMissing: (name: string, label: string) => string | undefined
    readonly define: (name: string, module: Loaded<Kind>) => Version
    readonly findLast: (name: string) => Version | undefined
  },
): Promise<{ readonly versions: Version[]; readonly reports: ModuleReport[] }> {
  const { names, describeMissing, define, findLast } = query
  const files = await Promise.all(names.map((name) => findModuleFile(loader.dir, kind, name)))
  const found = files.flatMap((file) => file ?? [])
  const loaded = await loader.load(kind, found)
  const chosen = names.flatMap((name, index) => {
    const file = files[index]
    const module = file === undefined ? missing(name) : loaded[found.indexOf(file)]
    return module === undefined ? [] : chooseVersion(module.label, define(name, module), findLast(name))
  })
  return { versions: chosen.map(({ taken }) => taken), reports: chosen.map(({ report }) => report) }

  function missing(name: string): Loaded<Kind> | undefined {
    const label = toExpectedLabel(kind, name)
    const why = describeMissing(name, label)
    return why === undefined ? undefined : { label, ...buildBroken(kind, why) }
  }
}

/** What a module that cannot be used becomes. */
export function buildBroken(kind: ModuleKind, detail: string, frame?: string): Broken {
  const problem = new Problem(kinds[kind].code, detail, frame === undefined ? {} : { frame })
  return { kind: 'broken', problem: toProblemRecord(problem) }
}

function check<Kind extends ModuleKind>(
  kind: Kind,
  file: ModuleFile,
  definition: Definition<unknown> | Problem,
): Loaded<Kind> {
  const label = toFileLabel(file)
  if (definition instanceof Problem) return { label, ...buildBroken(kind, definition.message, definition.frame) }
  const { expected, parse } = kinds[kind]
  const parsed = parse(definition.value)
  // as: the parser of the kind has returned the value
  if (parsed.ok) return { ...definition, label, value: parsed.value as Exported<Kind> }
  const frame = parsed.faults.map((fault) => `${label}: ${fault}.`).join('\n')
  return { label, ...buildBroken(kind, `${label} must export ${expected}.`, frame) }
}

/** `onRun`: gets the place of exceptions in code that has run, even if its export is invalid. */
async function evaluate(bundle: Bundle, onRun: (locate: Locate) => void): Promise<Definition<unknown> | Problem> {
  // jiti is large, and most gateways define nothing in code
  const { evaluateBundle, pickDefault } = await import('../../core/transforms/modules/evaluate.ts')
  await installProvided()
  let evaluated: Evaluated
  try {
    evaluated = await evaluateBundle(bundle, evaluateMs)
  } catch (error) {
    if (error instanceof Problem) return error
    throw error
  }
  const { label, locate } = evaluated
  onRun(locate)
  const describe = (thrown: unknown) => {
    const { what, at } = buildThrownReport(thrown, locate)
    return `${what}${at}`
  }
  try {
    return { kind: 'sound', value: pickDefault(evaluated), hash: bundle.hash, describeThrown: describe }
  } catch (thrown) {
    return new Problem('transform-load-failed', `${label} does not load: its export threw ${describe(thrown)}.`)
  }
}

/** The state of the package.json that names the entry of a package, which is no input of the bundle; an empty text for a file. */
async function readManifestStamp({ file, packageName }: ModuleFile): Promise<string> {
  if (packageName === undefined) return ''
  const facts = await stat(join(file, 'package.json'), { bigint: true }).catch(() => undefined)
  return facts === undefined ? 'missing' : toInputStamp(facts)
}
