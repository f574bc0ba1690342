// Lets a request in: by the hook token, or by a proof that a mapping requires. Raw bytes are verified before they are parsed.
import type { Generation } from '../pipeline/generation.ts'
import type { Admission } from './admission.ts'
import { findClaimedSchemes } from './claimed-schemes.ts'
import type { IncomingMessage } from 'node:http'
import { credentialHeaders, type DeliveryHead, type SignedId } from '../model/delivery.ts'
import { Problem, toProblem, type TraceEntry } from '../model/problem.ts'
import type { HandshakeAnswer, Verified, VerifyRequest } from '../model/verifier.ts'
import { type Hook, isHookOpened, type SignedMapping } from '../pipeline/hook.ts'
import { toSignedId } from '../pipeline/sources.ts'
import type { Answer } from '../deliveries/settlement.ts'
import { inflateBody, readBody, tooLarge } from './body.ts'
import { type Knock, toHead } from '../deliveries/delivery.ts'
import type { HandedSecrets } from './handed.ts'
import type { Refusals } from './refusals.ts'
import { createUnprovenBodies } from './unproven.ts'

export type Incoming = {
  readonly req: IncomingMessage
  readonly requestId: string
  /** Answers `Expect: 100-continue`; called just before the body is read. */
  readonly continueNow: () => void
}

/** A request that was let in, with its inflated body; or the answer to a sender's handshake. */
export type Entered =
  | {
      readonly kind: 'delivery'
      readonly hook: Hook
      readonly head: DeliveryHead
      readonly body: Uint8Array<ArrayBuffer>
      /** The result of each proof. */
      readonly trace: readonly TraceEntry[]
    }
  | { readonly kind: 'handshake'; readonly answer: Answer }

export type EntryParts = {
  readonly admission: Admission
  readonly handed: HandedSecrets
  readonly refusals: Pick<Refusals, 'keepsRequests' | 'note'>
}

export function createEntry({ admission, handed, refusals }: EntryParts) {
  const unproven = createUnprovenBodies()

  /** Throws the refusal of a request, in this order: 404, 403, 400, 405, 429 or 401, 404, then those of the body. */
  return async function enter(incoming: Incoming, generation: Generation): Promise<Entered> {
    const knock = admission.knock(incoming.req, generation.config)
    const hook = generation.hook(knock.path)
    const { signed, secretHeaders } = hook
    if (knock.method !== 'POST') return greet(signed, knock)
    const asked = signed.filter(({ verifier }) => verifier.isClaimed(knock.headers) || verifier.isGreeting(knock))
    // a client without a valid token shares limited memory for its bodies
    const held = knock.token === 'valid' ? undefined : unproven.open()
    let trace = toUnasked(signed, asked)
    try {
      // unknown names and hooks that take only the token are refused like a failed proof, after the body
      const isProofShown =
        knock.token !== 'valid' && hook.kind !== 'built-in' && findClaimedSchemes(generation).isShown(knock.headers)
      if (asked.length === 0 && !isProofShown) admission.checkToken(knock)
      if (knock.token === 'valid' && hook.kind === 'unknown') {
        throw new Problem('hook-unknown', 'No hook has this name.')
      }
      const limit = isProofShown ? findClaimedSchemes(generation).limit : hook.maxBodyBytes
      const { bodyTimeoutMs: timeoutMs } = generation.config.server
      const { req, continueNow } = incoming
      const take = held && ((size: number) => held.take(knock.client, size, limit))
      const reading = readBody(req, { limit, timeoutMs, continueNow, take })
      const read = await (knock.token === 'valid' || isProofShown ? reading : reading.catch(toBodyRefusal))
      // a stranger without a proof gets no answer about its body
      if (read instanceof Problem) {
        trace = [...trace, ...signed.map(({ id }) => toUnmatched(id, read.message))]
        return admission.turnAwaySigner(knock, { isGatewaysFault: false, isProofShown })
      }
      if (refusals.keepsRequests) refusals.note(incoming.requestId, toNoted(knock, secretHeaders, read))
      const proof = asked.length === 0 ? nothingProved : await prove(asked, { ...knock, rawBody: read })
      if (proof.answer !== undefined) return { kind: 'handshake', answer: proof.answer }
      const { signedFor } = proof
      if (!isHookOpened(hook, { token: knock.token === 'valid', signedFor })) {
        trace = [...proof.trace, ...trace]
        admission.turnAwaySigner(knock, { isGatewaysFault: proof.isGatewaysFault, isProofShown })
      }
      // a signer must not guess the hook token next to its signature; in a header of the scheme itself it is not a guess
      const isProved = signedFor.length > 0
      if (isProved && !secretHeaders.has('authorization')) admission.countToken(knock)
      if (read.length > hook.maxBodyBytes) throw tooLarge(hook.maxBodyBytes)
      const contentEncoding = knock.headers['content-encoding']
      const body = await inflateBody(read, { contentEncoding, isProved, limit: hook.maxBodyBytes, take })
      const head = toHead(knock, secretHeaders, { ...proof, signedId: toSignedBy(proof.proved, body) })
      return { kind: 'delivery', hook, head, body, trace: [...proof.trace, ...trace] }
    } catch (error) {
      throw toProblem(error).because(trace)
    } finally {
      held?.release()
    }
  }

  /** GET and HEAD are accepted only for a handshake of a scheme. */
  async function greet(signed: readonly SignedMapping[], knock: Knock): Promise<Entered> {
    const request = { ...knock, rawBody: new Uint8Array() }
    let isDenied = false
    for (const { id, verifier } of signed) {
      if (!verifier.handshakeMethods.includes(knock.method)) continue
      const answer = await verifier.handshake(request, { verified: false, armed: handed.isArmed(id) })
      if (answer?.status === 401) isDenied = true
      else if (answer !== undefined) return { kind: 'handshake', answer: toAnswer(answer) }
    }
    if (isDenied) admission.turnAwaySigner(knock)
    throw new Problem('method-not-allowed', 'Hooks accept only POST.')
  }

  /** `request.rawBody` has the bytes as sent, which the sender signed. */
  async function prove(asked: readonly SignedMapping[], request: VerifyRequest): Promise<Proof> {
    const signedFor: string[] = []
    const proved: Proved[] = []
    const trace: TraceEntry[] = []
    let source: string | undefined
    let isGatewaysFault = false
    for (const { id, match, verifier } of asked) {
      const greeting = verifier.isGreeting(request) && (await shake(id, verifier, request, false))
      if (greeting) return { answer: greeting, signedFor, proved, source, trace, isGatewaysFault }
      const verified = await verifier.verify(request)
      trace.push({ mappingId: id, matched: verified.ok, why: verified.ok ? 'the proof is valid' : verified.reason })
      if (!verified.ok) {
        isGatewaysFault ||= verified.fault === 'gateway'
        continue
      }
      const answer = await shake(id, verifier, request, true)
      if (answer !== undefined) return { answer, signedFor, proved, source, trace, isGatewaysFault }
      signedFor.push(id)
      // a scheme of no sender proves the sender that the mapping names
      source ??= verifier.source ?? match.source ?? verifier.scheme
      proved.push({ mappingId: id, verifier, verified })
    }
    return { answer: undefined, signedFor, proved, source, trace, isGatewaysFault }
  }

  async function shake(
    mappingId: string,
    verifier: SignedMapping['verifier'],
    request: VerifyRequest,
    verified: boolean,
  ): Promise<Answer | undefined> {
    const answer = await verifier.handshake(request, { verified, armed: handed.isArmed(mappingId) })
    if (answer?.handedSecret !== undefined) await handed.keep(mappingId, answer.handedSecret)
    return answer && toAnswer(answer)
  }
}

type Proved = {
  readonly mappingId: string
  readonly verifier: SignedMapping['verifier']
  readonly verified: Extract<Verified, { ok: true }>
}

/** `answer`: to a handshake. `signedFor`: the mappings whose proof is valid. */
type Proof = {
  readonly answer: Answer | undefined
  readonly signedFor: readonly string[]
  readonly proved: readonly Proved[]
  readonly source: string | undefined
  readonly trace: readonly TraceEntry[]
  readonly isGatewaysFault: boolean
}

const nothingProved: Proof = {
  answer: undefined,
  signedFor: [],
  proved: [],
  source: undefined,
  trace: [],
  isGatewaysFault: false,
}

/** Returns what is wrong with a body. Throws what is not the sender's fault. */
function toBodyRefusal(error: unknown): Problem {
  if (error instanceof Problem && error.status < 500) return error
  throw error
}

/** The request without what opens the gateway; a credential header that is the proof of a scheme of this hook stays. */
function toNoted(
  { method, url, headers }: Knock,
  secretHeaders: ReadonlySet<string>,
  rawBody: Uint8Array,
): VerifyRequest {
  const shown = Object.entries(headers).filter(([name]) => secretHeaders.has(name) || !credentialHeaders.has(name))
  return { method, url, headers: Object.fromEntries(shown), rawBody }
}

function toUnasked(signed: readonly SignedMapping[], asked: readonly SignedMapping[]): TraceEntry[] {
  const unasked = signed.filter((mapping) => !asked.includes(mapping))
  return unasked.map(({ id, verifier }) => toUnmatched(id, `the request has no proof of the scheme ${verifier.scheme}`))
}

function toUnmatched(mappingId: string, why: string): TraceEntry {
  return { mappingId, matched: false, why }
}

/** The first delivery id that a proof covers. `body` is inflated. */
function toSignedBy(proved: readonly Proved[], body: Uint8Array): SignedId | undefined {
  for (const { mappingId, verifier, verified } of proved) {
    const id = toSignedId(verifier, verified, body)
    if (id !== undefined) return { mappingId, source: verifier.source ?? verifier.scheme, id }
  }
  return undefined
}

function toAnswer({ status, headers, body }: HandshakeAnswer): Answer {
  return { status, headers, body }
}
