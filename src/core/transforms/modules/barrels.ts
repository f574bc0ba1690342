// Trims barrels: of a package file with hundreds of re-exports, builds only the re-exports that the module imports. Otherwise esbuild reads the
// whole package at each save. Only files that contain nothing but re-exports, in packages that declare `"sideEffects": false`, are trimmed:
// a full build drops their unused re-exports too.
import { dirname, join } from 'node:path'
import type { Metafile } from 'esbuild'
import { type BuildInput, readInside, toInputStamp } from '../read.ts'
import { isInPackage } from './manifests.ts'
import { binding, readReExports, type ReExport, parsePairs, printPlainCode } from './re-exports.ts'

/** A file of a package with at least this many imports is examined. */
const fewestImports = 20

type Candidate = { readonly file: string; readonly specifiers: ReadonlySet<string> }
type Barrel = Candidate & { readonly stamp: string; readonly reExports: readonly ReExport[] }

/** The re-exports that one build leaves out. */
export type Trim = {
  /** The contents to build instead of the file; undefined if it is not trimmed, or has changed since. */
  findContents(input: BuildInput): string | undefined
  /** False: a built file may import names that were left out, so the build must be repeated without the trim. */
  isUsable(metafile: Metafile, inputs: readonly BuildInput[]): boolean
}

/** Learns from the builds of one module which barrels it uses, and makes the trim for its next build. */
export type Trimmer = {
  learn(metafile: Metafile, inputs: readonly BuildInput[]): void
  /** Resolves with undefined if nothing can be left out. Never rejects. */
  buildTrim(): Promise<Trim | undefined>
}

export function createTrimmer(root: string): Trimmer {
  let candidates: readonly Candidate[] = []
  let ownFiles: readonly string[] = []
  /** The examined files by path. `barrel` is undefined for a file that cannot be trimmed. */
  const barrels = new Map<string, { readonly stamp: string; readonly barrel: Barrel | undefined }>()

  async function readBarrel(candidate: Candidate): Promise<Barrel | undefined> {
    const { contents, input } = await readInside(root, candidate.file)
    const stamp = toInputStamp(input)
    const known = barrels.get(candidate.file)
    const isKnown = known?.stamp === stamp
    const reExports = isKnown ? known.barrel?.reExports : await readReExports(root, candidate.file, contents)
    const barrel = reExports && { ...candidate, stamp, reExports }
    barrels.set(candidate.file, { stamp, barrel })
    return barrel
  }

  return {
    learn: (metafile, inputs) => {
      const found = findCandidates(root, metafile)
      const kept = candidates.filter(({ file }) => !found.some((other) => other.file === file))
      candidates = [...found, ...kept].filter(({ file }) => inputs.some((input) => input.file === file))
      ownFiles = inputs.map(({ file }) => file).filter((file) => !isInPackage(root, dirname(file)))
    },
    buildTrim: async () => {
      if (candidates.length === 0) return undefined
      try {
        const found = (await Promise.all(candidates.map(readBarrel))).flatMap((barrel) => barrel ?? [])
        const sources = await Promise.all(ownFiles.map((file) => readOwnSource(root, file)))
        return buildTrimOf(
          root,
          found,
          sources.flatMap((source) => source ?? []),
        )
      } catch {
        // the full build reports the error with its place
        return undefined
      }
    },
  }
}

type OwnSource = { readonly file: string; readonly stamp: string; readonly code: string }

function buildTrimOf(root: string, barrels: readonly Barrel[], sources: readonly OwnSource[]): Trim | undefined {
  const trimmed = new Map<string, { readonly barrel: Barrel; readonly text: string }>()
  for (const barrel of barrels) {
    const names = listImportedNames(barrel, sources)
    const text = names && buildTrimmedText(barrel, names)
    if (text !== undefined) trimmed.set(barrel.file, { barrel, text })
  }
  if (trimmed.size === 0) return undefined
  const scanned = new Map(sources.map(({ file, stamp }) => [file, stamp]))
  return {
    findContents: (input) => {
      const found = trimmed.get(input.file)
      return found?.barrel.stamp === toInputStamp(input) ? found.text : undefined
    },
    isUsable: (metafile, inputs) => {
      const stamps = new Map(inputs.map((input) => [input.file, toInputStamp(input)]))
      return Object.entries(metafile.inputs).every(([importer, { imports }]) =>
        imports.every(({ path, kind, original = '' }) => {
          const found = trimmed.get(join(root, path))
          if (found === undefined) return true
          const file = join(root, importer)
          const isScanned = scanned.has(file) && scanned.get(file) === stamps.get(file)
          return isScanned && kind === 'import-statement' && found.barrel.specifiers.has(original)
        }),
      )
    },
  }
}

/** Package files that have many imports and that the author's own files import. */
function findCandidates(root: string, { inputs }: Metafile): Candidate[] {
  const specifiers = new Map<string, Set<string>>()
  for (const [importer, { imports }] of Object.entries(inputs)) {
    if (isInPackage(root, dirname(join(root, importer)))) continue
    for (const { path, original } of imports) {
      if (original === undefined) continue
      const known = specifiers.get(path) ?? new Set()
      specifiers.set(path, known.add(original))
    }
  }
  return Object.entries(inputs).flatMap(([path, { imports }]) => {
    const file = join(root, path)
    const named = specifiers.get(path)
    const isLarge = imports.length >= fewestImports && isInPackage(root, dirname(file))
    return named === undefined || !isLarge ? [] : [{ file, specifiers: named }]
  })
}

/** A file of the module in its current state; undefined if it is gone or does not parse, which the build reports. */
async function readOwnSource(root: string, file: string): Promise<OwnSource | undefined> {
  try {
    const { contents, input } = await readInside(root, file)
    const isCode = /\.[cm]?[jt]sx?$/.test(file)
    return { file, stamp: toInputStamp(input), code: isCode ? await printPlainCode(file, contents) : '' }
  } catch {
    return undefined
  }
}

/** The names that these files import from a barrel; undefined if they may use all of it. */
function listImportedNames({ specifiers }: Barrel, sources: readonly OwnSource[]): Set<string> | undefined {
  const names = new Set<string>()
  for (const { code } of sources) {
    for (const specifier of specifiers) {
      const quoted = JSON.stringify(specifier)
      const form = new RegExp(
        String.raw`^(?:import|export) (?:(${binding}),? ?)?(?:\{([^}"]*)\} ?)?(?:from )?${quoted.replace(/[$()*+./?[\\\]^{|}]/g, String.raw`\$&`)};`,
        'gm',
      )
      const found = [...code.matchAll(form)]
      // any other import is a namespace, a star, `import()` or `require`
      if (found.length !== code.split(quoted).length - 1) return undefined
      for (const [, standard, list] of found) {
        if (standard !== undefined) names.add('default')
        for (const { first } of parsePairs(list)) names.add(first)
      }
    }
  }
  return names
}

/** The re-exports of these names; undefined if a name is not found, which the full build reports. */
function buildTrimmedText({ reExports }: Barrel, names: ReadonlySet<string>): string | undefined {
  const lines = new Set<string>()
  for (const name of names) {
    const explicit = reExports.find((one) => one.kind !== 'star' && one.name === name)
    const stars = reExports.filter((one) => one.kind === 'star' && one.names?.has(name) === true && name !== 'default')
    const from = (one: ReExport) => JSON.stringify(one.from)
    if (explicit?.kind === 'named') lines.add(`export { ${explicit.imported} as ${name} } from ${from(explicit)}`)
    else if (explicit?.kind === 'namespace') lines.add(`export * as ${name} from ${from(explicit)}`)
    else if (stars.length > 0) for (const star of stars) lines.add(`export * from ${from(star)}`)
    else return undefined
  }
  // a star whose names are unknown could shadow any of these names, or make it ambiguous
  for (const one of reExports) {
    if (one.kind === 'star' && one.names === undefined) lines.add(`export * from ${JSON.stringify(one.from)}`)
  }
  return [...lines, ''].join('\n')
}
