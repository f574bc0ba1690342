// Modules that define something: a preset, a verifier, a channel. Built and confined as transforms are, and evaluated in this very thread,
// where what they define is used.
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Problem } from '../model/problem.ts'
import { findNamedFile, type Named } from './definition-files.ts'
import { type Bundle, buildModule, type ModuleFile } from './modules/build.ts'
import { type Evaluated, evaluateBundle, pickDefault } from './modules/evaluate.ts'
import type { Input } from './read.ts'
import { toFileLabel } from './root.ts'
import { toThrownReport } from './modules/thrown.ts'
import { isUnchanged } from './modules/resolution-snapshot.ts'

/** What a module exports by default, which nobody has checked, and what messages need of it. */
export type Definition = {
  readonly label: string
  readonly value: unknown
  /** Of its code. */
  readonly hash: string
  /** What of its code was thrown, and where, without a text that may quote a request. */
  toThrown(thrown: unknown): string
}

export type Definitions = {
  /** In the same order. One whose files are as they were is the same object as before; what is not asked for is forgotten. */
  load(files: readonly ModuleFile[]): Promise<(Definition | Problem)[]>
  /** Every file that the newest load was made of, as it was when it was read. */
  inputs(): readonly Input[]
}

type Known = { readonly bundle: Bundle; readonly manifest: string; readonly definition: Definition | Problem }

/** For a module's top level. */
const evaluateMs = 5_000

export function createDefinitions(): Definitions {
  let known = new Map<string, Known>()

  async function loadOne(file: ModuleFile): Promise<Known | Problem> {
    const before = known.get(file.file)
    const manifest = await toManifest(file)
    if (before?.bundle.root === file.root && before.manifest === manifest && (await isUnchanged(before.bundle))) {
      return before
    }
    try {
      const bundle = await buildModule(file)
      return { bundle, manifest, definition: await evaluate(bundle) }
    } catch (error) {
      if (error instanceof Problem) return error
      return new Problem('transform-load-failed', `${toFileLabel(file)} could not be loaded.`, { cause: error })
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

/** Modules by the names of their files, in the same order; undefined: there is no such file. */
export async function loadNamed(
  definitions: Definitions,
  { dir, kind, names }: { dir: string; kind: Named; names: readonly string[] },
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
  let evaluated: Evaluated
  try {
    evaluated = await evaluateBundle(bundle, evaluateMs)
  } catch (error) {
    if (error instanceof Problem) return error
    throw error
  }
  const { label, locate } = evaluated
  const toThrown = (thrown: unknown) => {
    const { what, at } = toThrownReport(thrown, locate)
    return `${what}${at}`
  }
  try {
    return { label, value: pickDefault(evaluated), hash: bundle.hash, toThrown }
  } catch (thrown) {
    return new Problem('transform-load-failed', `${label} does not load: its export threw ${toThrown(thrown)}.`)
  }
}

/** The package.json that says which file of a package is meant: it is read, but is no part of the bundle. */
async function toManifest({ file, packageName }: ModuleFile): Promise<string> {
  if (packageName === undefined) return ''
  const facts = await stat(join(file, 'package.json'), { bigint: true }).catch(() => undefined)
  return facts === undefined ? 'missing' : `${facts.mtimeNs} ${facts.size}`
}
