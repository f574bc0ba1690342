// Loads schemes in code, from a pack or from hooks/verifiers, for the mappings that name them. A scheme that never loaded accepts no
// request, and affects nothing else.
import { isPlainName, listNames, toExpectedFile } from './definition-files.ts'
import { type Definition, type Definitions, loadNamedModules } from './definitions.ts'
import { safeParseVerifier } from '../../model/definitions.ts'
import { findNearest } from '../../base/text.ts'
import { Problem, toProblemRecord } from '../../core/model/problem.ts'
import type { LoadedPlugin } from '../../model/plugin.ts'
import type { DefinedVerifier } from '../../model/proof.ts'
import type { NamedMapping } from '../../core/mapping/compile.ts'
import type { SenderTable } from '../proofs/senders.ts'
import { type ModuleReport, chooseVersion } from '../../core/reload/gate.ts'
import type { Pack } from './packs.ts'
import { findBrokenPlugin } from './plugins.ts'

export type LoadedVerifiers = {
  readonly verifiers: readonly DefinedVerifier[]
  readonly reports: readonly ModuleReport[]
}

/**
 * Loads the schemes. Throws `config-invalid` for the name of a built-in scheme, and for a name that two schemes have. A name that is similar to
 * that of a built-in scheme is reported as unknown: it is a typo, not a missing module. While a plugin does not load, it may have any scheme that is
 * missing. `serving` has the last good version of each scheme, in
 * case the new one is broken.
 */
export async function loadVerifiers(
  {
    dir,
    mappings,
    packs,
    plugins,
    senders,
    serving,
  }: {
    dir: string
    mappings: readonly NamedMapping[]
    packs: readonly Pack[]
    plugins: readonly LoadedPlugin[]
    senders: SenderTable
    serving: readonly DefinedVerifier[]
  },
  definitions: Definitions,
): Promise<LoadedVerifiers> {
  const { schemeNames } = senders
  const own = await listNames(dir, 'verifier')
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
  const wanted = [...named].filter((scheme) => !known.has(scheme) && isPlainName(scheme)).toSorted()
  const loaded = await loadNamedModules(definitions, { dir, kind: 'verifier', names: wanted })
  const broken = findBrokenPlugin(plugins)
  const waiting = wanted.flatMap((scheme, index): DefinedVerifier[] =>
    broken === undefined || loaded[index] !== undefined ? [] : [{ kind: 'broken', scheme, problem: broken.problem }],
  )
  const results = wanted.flatMap((scheme, index) => {
    const found = loaded[index]
    if (found !== undefined) return [buildVerifier(scheme, found.label, found.definition)]
    if (broken !== undefined) return []
    return findNearest(scheme, schemeNames) === undefined ? [buildMissingVerifier(scheme, own)] : []
  })
  const chosen = results.map(({ module, verifier }) =>
    chooseVersion(
      module,
      verifier,
      serving.find(({ scheme }) => scheme === verifier.scheme),
    ),
  )
  return {
    verifiers: [...ofPacks, ...waiting, ...chosen.map(({ taken }) => taken)],
    reports: chosen.map(({ report }) => report),
  }
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

type Result = { readonly module: string; readonly verifier: DefinedVerifier }

function buildMissingVerifier(scheme: string, own: readonly string[]): Result {
  const near = findNearest(scheme, own)
  const module = toExpectedFile('verifier', scheme)
  const hint = near === undefined ? '' : ` Did you mean "${near}"?`
  return buildBrokenVerifier(
    scheme,
    module,
    new Problem('verifier-failed', `${module} does not exist, and "${scheme}" is not a built-in scheme.${hint}`),
  )
}

function buildVerifier(scheme: string, label: string, definition: Definition | Problem): Result {
  if (definition instanceof Problem) {
    const { message, frame } = definition
    return buildBrokenVerifier(
      scheme,
      label,
      new Problem('verifier-failed', message, frame === undefined ? {} : { frame }),
    )
  }
  const { value, hash, describeThrown } = definition
  const parsed = safeParseVerifier(value)
  if (!parsed.ok) {
    const frame = parsed.faults.map((fault) => `${label}: ${fault}.`).join('\n')
    const detail = `${label} must export a verifier by default: defineVerifier({ … }).`
    return buildBrokenVerifier(scheme, label, new Problem('verifier-failed', detail, { frame }))
  }
  if (parsed.value.scheme !== scheme) {
    const detail = `${label} must define the scheme "${scheme}", found another one: a verifier must have the name of its file.`
    return buildBrokenVerifier(scheme, label, new Problem('verifier-failed', detail))
  }
  return {
    module: label,
    verifier: { kind: 'sound', scheme, definition: parsed.value, hash, describeThrown },
  }
}

function buildBrokenVerifier(scheme: string, module: string, problem: Problem): Result {
  return { module, verifier: { kind: 'broken', scheme, problem: toProblemRecord(problem) } }
}
