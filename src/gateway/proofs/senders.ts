// The senders of a gateway: how each is recognised, and the scheme of its proof.
import type { Scheme, SenderDefinition } from '../../model/scheme.ts'
import type { DefinedVerifier } from '../../model/proof.ts'
import { buildTwiceProblem, indexByName, recogniseSenders, type SenderRecognition } from '../../core/mapping/senders.ts'
import { unlistedNames } from './verifiers/generic.ts'

export type SenderTable = SenderRecognition & {
  readonly rows: readonly SenderDefinition[]
  /** The schemes of all senders, in the order of the senders. */
  readonly schemes: readonly Scheme[]
  /** Every name for `verify.scheme`, except those of modules in `hooks/verifiers`. */
  readonly schemeNames: readonly string[]
  /** The headers with a proof. One that names the event is not in the list: the proof of such a sender is in the body. */
  readonly proofHeaders: ReadonlySet<string>
  readonly findScheme: (id: string) => Scheme | undefined
}

/** What a mapping can name in `verify.scheme`. `verifiers`: schemes in code, which cannot replace those of senders. */
export type KnownSchemes = {
  readonly senders: SenderTable
  readonly verifiers?: readonly DefinedVerifier[] | undefined
}

/**
 * The order of the rows is the priority of detection. `hash`: that of the plugins whose rows are in the list. Throws `config-invalid` if two senders, or two schemes, have the same name: a plugin cannot
 * replace a sender that is built in.
 */
export function createSenders(rows: readonly SenderDefinition[], hash = ''): SenderTable {
  const schemes = rows.flatMap(listSchemes)
  const senders = recogniseSenders(rows, hash)
  const byId = indexByName(schemes, ({ id }) => id, 'schemes')
  for (const id of unlistedNames) if (byId.has(id)) throw buildTwiceProblem('schemes', id)
  return {
    ...senders,
    rows,
    schemes,
    schemeNames: [...byId.keys(), ...unlistedNames],
    proofHeaders: new Set(rows.flatMap(listProofHeaders)),
    findScheme: (id) => byId.get(id),
  }
}

/** The schemes of a sender, each with its names. */
export function listSchemes({ name, label, docs, scheme, schemes: several }: SenderDefinition): readonly Scheme[] {
  if (docs === undefined) return []
  return (several ?? [scheme]).map(({ id = name, variant, ...row }) => ({
    ...row,
    id,
    source: name,
    label: variant === undefined ? label : `${label} (${variant})`,
    docs,
  }))
}

function listProofHeaders(row: SenderDefinition): readonly string[] {
  const isEvent = (name: string) => row.event?.some((fact) => fact.in === 'header' && fact.name === name) === true
  const named = listSchemes(row).flatMap((scheme) => {
    if (scheme.kind === 'code') return [...scheme.code.headers, ...(scheme.code.secretHeaders ?? [])]
    return 'header' in scheme && scheme.header !== undefined ? [scheme.header] : []
  })
  return named.map((name) => name.toLowerCase()).filter((name) => !isEvent(name))
}
