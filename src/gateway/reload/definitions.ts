// Loads modules that define a preset, a verifier or a channel. They are built and confined like transforms, but evaluated in the main
// thread, which uses their definitions.
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { toErrorText } from '../../base/exceptions.ts'
import { Problem } from '../../core/model/problem.ts'
import { findNamedFile, type NamedModuleKind } from './definition-files.ts'
import { type Bundle, buildModule, type ModuleFile } from '../../core/transforms/modules/build.ts'
import type { Evaluated } from '../../core/transforms/modules/evaluate.ts'
import { type BuildInput, toInputStamp } from '../../core/transforms/read.ts'
import { toFileLabel } from '../../core/transforms/root.ts'
import { buildThrownReport } from '../../core/transforms/modules/thrown.ts'
import { isUnchanged } from '../../core/transforms/modules/resolution-snapshot.ts'

/** The default export of a module, not yet checked, and the facts for messages. */
export type Definition = {
  readonly label: string
  readonly value: unknown
  /** The hash of its bundle. */
  readonly hash: string
  /** Describes an exception in the module's code with its place, without text that may quote a request. */
  describeThrown(thrown: unknown): string
}

export type Definitions = {
  /** Loads files, and keeps their order. A module whose files did not change is the same object as before. Other modules are dropped. */
  load(files: readonly ModuleFile[]): Promise<(Definition | Problem)[]>
  /** Every file that the newest load read, with its state at that time. */
  inputs(): readonly BuildInput[]
}

type Known = { readonly bundle: Bundle; readonly manifest: string; readonly definition: Definition | Problem }

/** The time limit for the top level of a module. */
const evaluateMs = 5_000

export function createDefinitions(): Definitions {
  let known = new Map<string, Known>()

  async function loadOne(file: ModuleFile): Promise<Known | Problem> {
    const before = known.get(file.file)
    const manifest = await readManifestStamp(file)
    if (before?.bundle.root === file.root && before.manifest === manifest && (await isUnchanged(before.bundle))) {
      return before
    }
    try {
      const bundle = await buildModule(file)
      return { bundle, manifest, definition: await evaluate(bundle) }
    } catch (error) {
      if (error instanceof Problem) return error
      const detail = `${toFileLabel(file)} could not be loaded.`
      return new Problem('transform-load-failed', detail, { frame: toErrorText(error), cause: error })
    }
  }

  return {
    async load(files) {
      const loaded = await Promise.all(files.map(async (file) => [file.file, await loadOne(file)] as const))
      known = new Map(loaded.flatMap(([file, one]) => (one instanceof Problem ? [] : [[file, one]])))
      return loaded.map(([, one]) => (one instanceof Problem ? one : one.definition))
    },
    inputs: () => [...known.values()].flatMap(({ bundle }) => bundle.inputs),
  }
}

/** The modules with these names, in the same order; undefined for a name without a file. */
export async function loadNamedModules(
  definitions: Definitions,
  { dir, kind, names }: { dir: string; kind: NamedModuleKind; names: readonly string[] },
): Promise<({ readonly label: string; readonly definition: Definition | Problem } | undefined)[]> {
  const files = await Promise.all(names.map((name) => findNamedFile(dir, kind, name)))
  const there = files.flatMap((file) => file ?? [])
  const loaded = await definitions.load(there)
  return files.map((file) => {
    const definition = file && loaded[there.indexOf(file)]
    return definition && { label: toFileLabel(file), definition }
  })
}

async function evaluate(bundle: Bundle): Promise<Definition | Problem> {
  // jiti is large, and most gateways define nothing in code
  const { evaluateBundle, pickDefault } = await import('../../core/transforms/modules/evaluate.ts')
  let evaluated: Evaluated
  try {
    evaluated = await evaluateBundle(bundle, evaluateMs)
  } catch (error) {
    if (error instanceof Problem) return error
    throw error
  }
  const { label, locate } = evaluated
  const describe = (thrown: unknown) => {
    const { what, at } = buildThrownReport(thrown, locate)
    return `${what}${at}`
  }
  try {
    return { label, value: pickDefault(evaluated), hash: bundle.hash, describeThrown: describe }
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
