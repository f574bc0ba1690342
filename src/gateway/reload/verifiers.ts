// Loads schemes in code, from a pack or from hooks/verifiers, for the mappings that name them. A scheme that never loaded accepts no
// request, and affects nothing else.
import { fileNamePattern } from '../../base/names.ts'
import { buildBroken, type Loaded, type Loader, loadVersions } from './loader.ts'
import { listNames } from './module-files.ts'
import { findNearest } from '../../base/text.ts'
import { Problem } from '../../core/model/problem.ts'
import type { LoadedPlugin } from '../../model/plugin.ts'
import type { DefinedVerifier } from '../../model/proof.ts'
import type { NamedMapping } from '../../core/mapping/compile.ts'
import type { SenderTable } from '../proofs/senders.ts'
import type { ModuleReport } from '../../core/reload/gate.ts'
import type { Pack } from './packs.ts'
import { findBrokenPlugin } from './plugins.ts'

export type LoadedVerifiers = {
  readonly verifiers: readonly DefinedVerifier[]
  readonly reports: readonly ModuleReport[]
}

/**
 * Loads the schemes. Throws `config-invalid` for the name of a built-in scheme, and for a name that two schemes have. A name that is similar to
 * that of a built-in scheme is reported as unknown: it is a typo, not a missing module. While a plugin does not load, it may have any scheme that is
 * missing. `serving` has the last good version of each scheme, in case the new one is broken.
 */
export async function loadVerifiers(
  parts: {
    readonly mappings: readonly NamedMapping[]
    readonly packs: readonly Pack[]
    readonly plugins: readonly LoadedPlugin[]
    readonly senders: SenderTable
    readonly serving: readonly DefinedVerifier[]
  },
  loader: Loader,
): Promise<LoadedVerifiers> {
  const { mappings, packs, plugins, senders, serving } = parts
  const { schemeNames } = senders
  const own = await listNames(loader.dir, 'verifier')
  for (const name of own) checkNotBuiltIn(name, `hooks/verifiers/${name}`, schemeNames)
  const ofPacks = packs.flatMap((pack) => listPackVerifiers(pack, schemeNames))
  const duplicate = ofPacks.find(({ scheme }, index) => ofPacks.findIndex((other) => other.scheme === scheme) !== index)
  const clash = ofPacks.find(({ scheme }) => own.includes(scheme))
  if (duplicate !== undefined || clash !== undefined) {
    const name = (duplicate ?? clash)?.scheme ?? ''
    throw new Problem('config-invalid', `Two verifiers have the scheme "${name}": rename one of them.`)
  }
  const named = new Set(mappings.flatMap(({ verify }) => verify?.scheme ?? []))
  const known = new Set([...schemeNames, ...ofPacks.map(({ scheme }) => scheme)])
  const wanted = [...named].filter((scheme) => !known.has(scheme) && fileNamePattern.test(scheme)).toSorted()
  const broken = findBrokenPlugin(plugins)
  const { versions, reports } = await loadVersions(loader, 'verifier', {
    names: wanted,
    describeMissing: (scheme, file) =>
      broken === undefined && findNearest(scheme, schemeNames) === undefined
        ? describeMissing(scheme, file, own)
        : undefined,
    define: toVerifier,
    findLast: (scheme) => serving.find((verifier) => verifier.scheme === scheme),
  })
  const waiting = wanted.flatMap((scheme): DefinedVerifier[] =>
    broken === undefined || versions.some((verifier) => verifier.scheme === scheme)
      ? []
      : [{ kind: 'broken', scheme, problem: broken.problem }],
  )
  return { verifiers: [...ofPacks, ...waiting, ...versions], reports }
}

function listPackVerifiers({ name, preset, origin }: Pack, schemeNames: readonly string[]): DefinedVerifier[] {
  if (origin === undefined) return []
  const { label, hash, describeThrown } = origin
  return (preset.verifiers ?? []).map((definition) => {
    checkNotBuiltIn(definition.scheme, `${label}: a verifier of the preset "${name}"`, schemeNames)
    return { kind: 'sound', scheme: definition.scheme, definition, hash, describeThrown }
  })
}

function checkNotBuiltIn(scheme: string, what: string, schemeNames: readonly string[]): void {
  if (!schemeNames.includes(scheme)) return
  throw new Problem('config-invalid', `${what} has the name of the built-in scheme "${scheme}". Rename it.`)
}

function describeMissing(scheme: string, file: string, own: readonly string[]): string {
  const near = findNearest(scheme, own)
  const hint = near === undefined ? '' : ` Did you mean "${near}"?`
  return `${file} does not exist, and "${scheme}" is not a built-in scheme.${hint}`
}

function toVerifier(scheme: string, module: Loaded<'verifier'>): DefinedVerifier {
  if (module.kind === 'broken') return { kind: 'broken', scheme, problem: module.problem }
  const { label, value: definition, hash, describeThrown } = module
  if (definition.scheme === scheme) return { kind: 'sound', scheme, definition, hash, describeThrown }
  const detail = `${label} must define the scheme "${scheme}", found another one: a verifier must have the name of its file.`
  return { ...buildBroken('verifier', detail), scheme }
}
