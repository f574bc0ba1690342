// The way in: by the hook token, or by a proof that a mapping asks for. Raw bytes are proved before they are parsed.
import type { IncomingMessage } from 'node:http'
import type { DeliveryHead, SignedId, TraceEntry } from '../model/delivery.ts'
import { Problem } from '../model/problem.ts'
import type { HandshakeAnswer, VerifyRequest } from '../model/verifier.ts'
import type { Generation } from '../pipeline/generation.ts'
import { type Hook, isHookOpened, type SignedMapping } from '../pipeline/hook.ts'
import { toSignedId } from '../pipeline/signed-id.ts'
import type { Admission, Knock } from './admission.ts'
import type { Answer } from './answer.ts'
import { readBody } from './body.ts'
import { toHead } from './delivery.ts'
import type { HandedSecrets } from './handed.ts'
import { createUnprovenBodies, type UnprovenHold } from './unproven.ts'

export type Incoming = {
  readonly req: IncomingMessage
  readonly requestId: string
  /** Answers `Expect: 100-continue`; called just before the body is read. */
  readonly continueNow: () => void
}

/** What is known of a request so far, for the record of a refusal. */
export type Trail = { hook: string | undefined; trace: readonly TraceEntry[] }

/** A request that is in, with its body inflated; or a sender's handshake, answered and over. */
export type Entered =
  | { readonly kind: 'delivery'; readonly hook: Hook; readonly head: DeliveryHead; readonly body: Uint8Array }
  | { readonly kind: 'handshake'; readonly answer: Answer }

export type EntryParts = { readonly admission: Admission; readonly handed: HandedSecrets }

export function createEntry({ admission, handed }: EntryParts) {
  const unproven = createUnprovenBodies()

  /** Throws what refuses the request, in the order of its checks: 404, 403, 400, 405, 429 or 401, 404, then what its body refuses. */
  return async function enter(incoming: Incoming, generation: Generation, trail: Trail): Promise<Entered> {
    const held = unproven.open()
    try {
      return await admit(incoming, generation, trail, held)
    } finally {
      held.release()
    }
  }

  async function admit(incoming: Incoming, generation: Generation, trail: Trail, held: UnprovenHold): Promise<Entered> {
    const knock = admission.knock(incoming.req, generation.config)
    trail.hook = knock.path
    const hook = generation.hook(knock.path)
    const { signed, secretHeaders } = hook
    if (knock.method !== 'POST') return greet(signed, knock)
    const asked = signed.filter(({ verifier }) => verifier.isClaimed(knock.headers) || verifier.isGreeting(knock))
    trail.trace = toUnasked(signed, asked)
    if (asked.length === 0) admission.checkToken(knock)
    if (hook.kind === 'unknown') throw new Problem('hook-unknown', 'No hook has this name.')
    const limit = hook.maxBodyBytes
    const { raw, bytes } = await readBody(incoming.req, {
      limit,
      ...(knock.token === 'valid' ? {} : { take: (size: number) => held.take(knock.client, size, limit) }),
      timeoutMs: generation.config.server.bodyTimeoutMs,
      continueNow: incoming.continueNow,
    })
    const proof = await prove(asked, { ...knock, rawBody: raw }, bytes)
    if (proof.answer !== undefined) return { kind: 'handshake', answer: proof.answer }
    // a signer must not guess the hook token beside its signature; where the header is the scheme's own, it is no guess
    if (proof.signedFor.length > 0 && !secretHeaders.has('authorization')) admission.countToken(knock)
    const head = toHead(knock, secretHeaders, proof)
    if (!isHookOpened(hook, head.admitted)) {
      trail.trace = [...proof.trace, ...trail.trace]
      admission.turnAwaySigner(knock, proof)
    }
    return { kind: 'delivery', hook, head, body: bytes }
  }

  /** GET and HEAD: only where a scheme declares a handshake by them. */
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
    throw new Problem('method-not-allowed', 'Hooks take POST.')
  }

  /** `body` is inflated; the raw bytes of the request are what the sender signed. */
  async function prove(asked: readonly SignedMapping[], request: VerifyRequest, body: Uint8Array) {
    const signedFor: string[] = []
    const trace: TraceEntry[] = []
    let source: string | undefined
    let signedId: SignedId | undefined
    let isGatewaysFault = false
    for (const { id, verifier } of asked) {
      const greeting = verifier.isGreeting(request) && (await shake(id, verifier, request, false))
      if (greeting) return { answer: greeting, signedFor, signedId, source, trace, isGatewaysFault }
      const verified = await verifier.verify(request)
      trace.push({ mappingId: id, matched: verified.ok, why: verified.ok ? 'the proof holds' : verified.reason })
      if (!verified.ok) {
        isGatewaysFault ||= verified.fault === 'gateway'
        continue
      }
      const answer = await shake(id, verifier, request, true)
      if (answer !== undefined) return { answer, signedFor, signedId, source, trace, isGatewaysFault }
      signedFor.push(id)
      source ??= verifier.source ?? verifier.scheme
      signedId ??= toSignedBy(id, verifier, toSignedId(verifier, verified, body))
    }
    return { answer: undefined, signedFor, signedId, source, trace, isGatewaysFault }
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

function toUnasked(signed: readonly SignedMapping[], asked: readonly SignedMapping[]): TraceEntry[] {
  return signed
    .filter((mapping) => !asked.includes(mapping))
    .map(({ id, verifier }) => ({
      mappingId: id,
      matched: false,
      why: `it carries no proof of scheme ${verifier.scheme}`,
    }))
}

function toSignedBy(
  mappingId: string,
  { source, scheme }: SignedMapping['verifier'],
  id: string | undefined,
): SignedId | undefined {
  return id === undefined ? undefined : { mappingId, source: source ?? scheme, id }
}

function toAnswer({ status, headers, body }: HandshakeAnswer): Answer {
  return { status, headers, body }
}
