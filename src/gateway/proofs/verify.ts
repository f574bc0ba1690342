// Makes a verifier from the settings of a mapping. Invalid settings are reported when they are loaded, not with a delivery.
import { findNearest } from '../../base/text.ts'
import { Problem } from '../../core/model/problem.ts'
import type { PinnedFetch } from '../../model/proof.ts'
import type { Verifier } from '../../core/model/verifier.ts'
import type { VerifySettings } from '../../core/model/verify.ts'
import { createAsymmetricProof } from './verifiers/asymmetric.ts'
import { createClientStateProof } from './verifiers/client-state.ts'
import { createConcatHashProof } from './verifiers/concat-hash.ts'
import { createBrokenVerifier, createCodeProof, toCodeScheme } from './verifiers/defined.ts'
import { applyHeaderSettings, findUnlistedScheme } from './verifiers/generic.ts'
import { answerHandshake } from './verifiers/handshakes.ts'
import { createHmacProof } from './verifiers/hmac.ts'
import { createJwtProof } from './verifiers/jwt.ts'
import { readSecrets } from './verifiers/keys.ts'
import { toSettingProblem, type Proof, type ProofTools } from './verifiers/proof.ts'
import type { Scheme } from '../../model/scheme.ts'
import type { KnownSchemes } from './senders.ts'
import { createBasicProof, createTokenProof } from './verifiers/token.ts'

export type VerifierTools = {
  readonly fetch: PinnedFetch
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Secrets that the sender gave in a handshake; the same array until they change. */
  readonly handed?: () => readonly string[]
}

/** Tools that fetch nothing, for mappings that get no requests from the network. */
export const offlineTools: VerifierTools = {
  fetch: async () => ({ ok: false, fault: 'gateway', reason: 'nothing is fetched here' }),
  now: Date.now,
}

/** Throws `config-invalid` with the scheme, the setting that is missing or wrong, and the expected value. */
export function createVerifier(
  settings: VerifySettings,
  { senders, verifiers = [], ...tools }: VerifierTools & KnownSchemes,
): Verifier {
  const scheme = findUnlistedScheme(settings) ?? senders.findScheme(settings.scheme)
  if (scheme !== undefined) return createSchemeVerifier(scheme, settings, tools)
  const defined = verifiers.find((other) => other.scheme === settings.scheme)
  if (defined?.kind === 'sound') return createSchemeVerifier(toCodeScheme(defined), settings, tools)
  if (defined?.kind === 'broken') return createBrokenVerifier(defined.scheme, defined.problem)
  const known = [...senders.schemeNames, ...verifiers.map((other) => other.scheme)]
  const near = findNearest(settings.scheme, known)
  throw new Problem(
    'config-invalid',
    `The scheme ${JSON.stringify(settings.scheme)} does not exist.` +
      (near === undefined
        ? ' For a sender that is not listed, use "generic-hmac", "token", "basic" or a module in hooks/verifiers.'
        : ` Did you mean "${near}"?`),
  )
}

/** How each kind of proof is made. */
const proofs: { readonly [Kind in Scheme['kind']]: (scheme: Scheme & { kind: Kind }, tools: ProofTools) => Proof } = {
  hmac: (scheme, tools) => createHmacProof(applyHeaderSettings(scheme, tools.settings), tools),
  token: createTokenProof,
  basic: createBasicProof,
  ed25519: createAsymmetricProof,
  ecdsa: createAsymmetricProof,
  jwt: createJwtProof,
  'concat-hash': createConcatHashProof,
  'client-state': createClientStateProof,
  code: createCodeProof,
}

function createProof<Kind extends Scheme['kind']>(scheme: Scheme & { kind: Kind }, tools: ProofTools): Proof {
  return proofs[scheme.kind](scheme, tools)
}

/** Kinds of proof that do not sign a time. */
const timeless: ReadonlySet<Scheme['kind']> = new Set(['token', 'basic', 'concat-hash', 'client-state'])

function createSchemeVerifier(scheme: Scheme, settings: VerifySettings, tools: VerifierTools): Verifier {
  if (settings.toleranceSeconds !== undefined && timeless.has(scheme.kind)) {
    throw toSettingProblem(settings, 'does not sign a time, so verify.toleranceSeconds has no effect. Remove it.')
  }
  // code gets all settings, and decides about them
  const isOwn = scheme.kind === 'code'
  if (settings.decompressed === true && scheme.id !== 'generic-hmac' && !isOwn)
    throw toSettingProblem(settings, 'has no key verify.decompressed. Remove it: only "generic-hmac" has it.')
  const acceptsGet = settings.get === true && !isOwn
  if (acceptsGet && scheme.id !== 'url-secret')
    throw toSettingProblem(settings, 'takes no GET requests. Remove verify.get: only "url-secret" has it.')
  const secrets = createSecrets(scheme, settings, tools)
  const { fetch, now } = tools
  const proof = createProof(scheme, { settings, secrets, fetch, now })
  const handshakes = (scheme.handshakes ?? []).filter(({ method }) => method !== 'GET' || !acceptsGet)
  return {
    scheme: scheme.id,
    source: scheme.source,
    secretHeaders: [...new Set([...proof.secretHeaders, ...(scheme.secretHeaders ?? [])])],
    handsOver: scheme.handsOver === true,
    handshakeMethods: [...new Set(handshakes.map(({ method }) => method))].filter((method) => method !== 'POST'),
    acceptsEmpty: scheme.acceptsEmpty === true || acceptsGet,
    acceptsGet,
    covers: proof.covers,
    isClaimed: proof.isClaimed,
    verify: proof.verify,
    isHandshakeHead: (head) =>
      handshakes.some(
        ({ method, signed, isHandshakeHead }) =>
          !signed && method === head.method && (isHandshakeHead === undefined || isHandshakeHead(head)),
      ),
    handshake: async (request, context) =>
      handshakes.some(({ method }) => method === request.method)
        ? await answerHandshake(handshakes, request, { ...context, settings, secrets, fetch })
        : undefined,
    explain: (request) => proof.explain?.(request),
  }
}

/** The secrets of the configuration, followed by the secrets from handshakes. */
function createSecrets(scheme: Scheme, settings: VerifySettings, { handed }: VerifierTools): () => readonly string[] {
  const isKeyed = scheme.kind !== 'ed25519' && scheme.kind !== 'ecdsa'
  if (!isKeyed || (scheme.kind === 'jwt' && scheme.algorithm !== 'HS256')) return () => []
  const own = readSecrets(settings, scheme.handsOver === true || scheme.kind === 'code')
  if (scheme.handsOver !== true || handed === undefined) return () => own
  let seen: readonly string[] | undefined
  let all = own
  return () => {
    const current = handed()
    if (current !== seen) {
      seen = current
      all = [...own, ...current]
    }
    return all
  }
}
