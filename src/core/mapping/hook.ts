// A hook name and everything that takes its requests. Each request looks its hook up once and hands it on.
import { type Admitted, type Delivery, type DeliveryHead, listOpeningProofs, maxHookChars } from '../model/delivery.ts'
import type { Accepts } from '../model/syntax.ts'
import { normalizeHookName } from '../model/mapping-rules.ts'
import type { RequestHead } from '../model/verifier.ts'
import type { CompiledMapping } from './compile.ts'
import type { Identity } from './identity.ts'
import type { HookMappings, Router } from './match.ts'
import type { Policy } from './policy.ts'
import type { SenderRecognition } from './senders.ts'

/** A mapping that requires a proof of its sender. */
export type SignedMapping = CompiledMapping & {
  [Key in 'verifier' | 'provenSender']: NonNullable<CompiledMapping[Key]>
}

export type Hook = {
  /** `built-in`: `wake` and `agent`, which no mapping can replace. `unknown`: no mapping takes the name. */
  readonly kind: 'built-in' | 'mapped' | 'unknown'
  /** Whether this name is the path of a mapping. */
  readonly isNamed: boolean
  /** The mappings that can take a delivery of this hook, in order of priority. */
  readonly mappings: readonly CompiledMapping[]
  readonly signed: readonly SignedMapping[]
  /** The bodies that one of the mappings accepts besides JSON and forms. */
  readonly accepted: ReadonlySet<'text' | 'xml' | 'empty'>
  /** The rings of the mappings that expect requests (`expectEvery`), by mapping id. */
  readonly expecting: ReadonlyMap<string, string>
  /** Lower-case names of headers whose values only verifiers may read. */
  readonly secretHeaders: ReadonlySet<string>
  /** The maximum size of a body, in bytes. */
  readonly maxBodyBytes: number
  /** True: the body is parsed when a delivery is built, so an invalid body is refused then. */
  readonly readsPayload: boolean
  /** The first mapping that is open to the delivery and whose conditions are all true. */
  readonly find: HookMappings<CompiledMapping>['find']
  readonly tokenless: TokenlessRules
  readonly senders: SenderRecognition
  readonly policy: Policy
}

/**
 * The rules for a request without a valid token. They are the same for every hook name, so that no answer depends on which hooks exist. A proof in
 * the body does not count, because the headers do not show it. Nor does a Bearer token, because every hook takes one.
 */
type TokenlessRules = {
  /** Whether the headers have a proof of a scheme that some mapping uses. */
  isProofShown(headers: RequestHead['headers']): boolean
  /** The largest body, in bytes, that any hook accepts that has a mapping with a proof in the headers. */
  readonly maxBodyBytes: number
}

const noMappings: HookMappings<never> = { mappings: [], find: () => ({ mapping: undefined, trace: [] }) }

/** `limit`: `server.maxBodyBytes`. */
export function createHooks(
  mappings: readonly CompiledMapping[],
  router: Router<CompiledMapping>,
  { limit, senders, policy }: Pick<Hook, 'senders' | 'policy'> & { readonly limit: number },
): (path: string) => Hook {
  const common = { senders, policy, tokenless: createTokenlessRules(mappings, router, limit) }
  const builtIn = buildHook('built-in', noMappings, limit, common)
  // names that no mapping has share a hook, so the configuration limits the number of hooks
  const hooks = new Map<HookMappings<CompiledMapping>, Hook>()
  // a name that is empty or too long is not a hook, even if a mapping takes every name
  const nameless = buildHook('unknown', noMappings, limit, common)

  return (path) => {
    if (path === 'wake' || path === 'agent') return builtIn
    if (path === '' || path.length > maxHookChars) return nameless
    const hookMappings = router.findMappings(path)
    const known = hooks.get(hookMappings)
    if (known !== undefined) return known
    const hook = buildHook(hookMappings.mappings.length > 0 ? 'mapped' : 'unknown', hookMappings, limit, common)
    hooks.set(hookMappings, hook)
    return hook
  }
}

function buildHook(
  kind: Hook['kind'],
  { mappings, find }: HookMappings<CompiledMapping>,
  limit: number,
  common: Pick<Hook, 'senders' | 'policy' | 'tokenless'>,
): Hook {
  const signed = mappings.filter((mapping): mapping is SignedMapping => mapping.verifier !== undefined)
  return {
    kind,
    isNamed: mappings.some(({ match }) => match.path !== undefined),
    mappings,
    signed,
    accepted: new Set(mappings.flatMap(({ mapping }) => mapping.accept ?? [])),
    expecting: new Map(
      mappings.flatMap(({ id, identity, mapping }) => (mapping.expectEvery === undefined ? [] : [[id, identity.ring]])),
    ),
    secretHeaders: new Set(signed.flatMap(({ verifier }) => verifier.secretHeaders)),
    maxBodyBytes: findMaxBodyBytes(mappings, limit),
    readsPayload: kind === 'built-in' || mappings.some(({ readsPayload }) => readsPayload),
    find,
    ...common,
  }
}

function findMaxBodyBytes(mappings: readonly CompiledMapping[], limit: number): number {
  return Math.max(limit, ...mappings.map(({ mapping }) => mapping.maxBodyBytes ?? 0))
}

function createTokenlessRules(
  mappings: readonly CompiledMapping[],
  router: Router<CompiledMapping>,
  limit: number,
): TokenlessRules {
  const signed = mappings.filter(({ verifier }) => verifier?.isClaimed({}) === false)
  // mappings with the same scheme, header and prefix need only one check
  const claims = new Map(
    signed.map(({ mapping: { verify }, verifier }) => [
      JSON.stringify([verify?.scheme, verify?.header, verify?.prefix]),
      verifier?.isClaimed,
    ]),
  )
  // a mapping without a path takes the requests of every hook
  const reachable = signed.flatMap(({ match }) => {
    const path = normalizeHookName(match.path ?? '')
    return path === '' ? mappings : router.findMappings(path).mappings
  })
  return {
    isProofShown(headers) {
      // the headers are copied only for a Bearer token, which most of these requests do not have
      const isBearer = /^bearer\b/i.test(headers['authorization'] ?? '')
      const { authorization: _, ...others } = isBearer ? headers : {}
      return [...claims.values()].some((isClaimed) => isClaimed?.(isBearer ? others : headers))
    },
    maxBodyBytes: findMaxBodyBytes(reachable, limit),
  }
}

/** The name of a hook in metrics: a configured name, `*` for any other name that a mapping takes, empty for an unknown name. */
export function toHookLabel({ kind, isNamed }: Hook, path: string): string {
  if (kind === 'unknown') return ''
  return kind === 'built-in' || isNamed ? path : '*'
}

/** Why the credentials of a request do not open this mapping; undefined if they do. */
function findDenial(
  { identity, mapping, verifier }: CompiledMapping,
  { token, ...proofs }: Admitted,
): string | undefined {
  if (verifier !== undefined && !isProved(identity, listOpeningProofs(proofs)))
    return 'the request has no valid proof for this mapping'
  if (token) return undefined
  if (verifier === undefined)
    return 'the request has no hook token, which this mapping requires because it has no verify'
  if (mapping.verify?.also === undefined) return undefined
  return 'the request has no hook token, which verify.also of this mapping requires'
}

function isProved(identity: Identity, signedFor: readonly string[]): boolean {
  return signedFor.some((proof) => identity.isOpenedBy(proof))
}

/** The first mapping that the credentials of a delivery open and whose conditions are true, and why the mappings before it do not take it. */
export function findMapping(hook: Hook, delivery: Delivery): ReturnType<Hook['find']> {
  return hook.find(delivery, (mapping) => findDenial(mapping, delivery.admitted))
}

/** Whether the credentials of a request are enough for a mapping of this hook, or for the built-in hook, which needs the token. */
export function isHookOpen({ kind, mappings }: Hook, admitted: Admitted): boolean {
  return kind === 'built-in' ? admitted.token : mappings.some((mapping) => findDenial(mapping, admitted) === undefined)
}

/**
 * The bodies that a hook accepts besides JSON: none for the built-in hooks; forms, and the bodies that a mapping or a proved scheme accepts, for
 * the others.
 */
export function toAcceptedBodies(hook: Hook, head: SenderHead): Accepts {
  const { kind, signed, accepted } = hook
  const proofs = listOpeningProofs(head.admitted)
  return {
    forms: kind !== 'built-in',
    plain: accepted.has('text'),
    xml: accepted.has('xml'),
    empty:
      accepted.has('empty') ||
      signed.some(({ identity, verifier }) => verifier.acceptsEmpty && isProved(identity, proofs)),
    listJsonFields: () => listJsonFields(hook, head),
  }
}

type SenderHead = Pick<DeliveryHead, 'admitted' | 'verifiedBy' | 'headers'>

/** The fields of forms with JSON that the sender is known for, or that a mapping names which the credentials open. */
function listJsonFields({ mappings, signed, senders }: Hook, { admitted, verifiedBy, headers }: SenderHead): string[] {
  const named = mappings.flatMap((mapping) =>
    mapping.mapping.jsonFields !== undefined && findDenial(mapping, admitted) === undefined
      ? mapping.mapping.jsonFields
      : [],
  )
  const proofs = listOpeningProofs(admitted)
  const isSigned = signed.some(({ identity, verifier }) => verifier.covers.body && isProved(identity, proofs))
  // no header may change how a signed body is read
  const sender = senders.recognise({ verifiedBy, headers: isSigned ? {} : headers })
  return [...new Set([...named, ...(sender?.facts.jsonFields ?? [])])]
}
