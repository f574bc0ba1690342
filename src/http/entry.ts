// Lets a request in: by the hook token, or by a proof that a mapping requires. Raw bytes are verified before they are parsed.
import type { Generation } from '../pipeline/generation.ts'
import { type Admission, readToken, toHeaders } from './admission.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type DeliveryHead, isRunPath, type SignedId } from '../model/delivery.ts'
import { Problem, toProblem, type TraceEntry } from '../model/problem.ts'
import type { Verified, VerifyRequest } from '../model/verifier.ts'
import { type Hook, isHookOpen, type SignedMapping } from '../pipeline/hook.ts'
import { readSignedId } from '../pipeline/sources.ts'
import type { Quarantine } from '../deliveries/refused/quarantine.ts'
import { unclaimedReason } from '../deliveries/refused/reasons.ts'
import type { RawRequest } from '../deliveries/refused/seal.ts'
import type { Answer } from '../deliveries/settlement.ts'
import { inflateBody, readBody, readBodySoon, buildTooLargeProblem } from './body.ts'
import { type CheckedHead, buildAdmittedHead } from '../deliveries/delivery.ts'
import type { HandshakeSecrets } from './handshake-secrets.ts'
import { createOtherMethods, toAnswer } from './other-methods.ts'
import { type Refusals, removeGatewayCredentials } from './refusals.ts'
import { readRunCall, type RunCall } from './runs.ts'
import { type BodyMemory, createUnprovenBodies } from './unproven.ts'

export type Incoming = {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly requestId: string
  /** Answers `Expect: 100-continue`; called just before the body is read. */
  readonly continueNow: () => void
  /** The body as it was sent; undefined until it was read. */
  body?: Buffer<ArrayBuffer> | undefined
}

/** A request that was admitted, with its inflated body; the answer to a sender's handshake; or a request for a run. */
export type EntryResult =
  | {
      readonly kind: 'delivery'
      readonly hook: Hook
      readonly head: DeliveryHead
      readonly body: Uint8Array<ArrayBuffer>
      /** The result of each proof. */
      readonly trace: readonly TraceEntry[]
      readonly client: string
    }
  | { readonly kind: 'handshake'; readonly answer: Answer }
  | RunCall

type EntryParts = {
  readonly admission: Admission
  readonly handed: HandshakeSecrets
  readonly refusals: Pick<Refusals, 'keepsRequests' | 'note'>
  readonly quarantine: Pick<Quarantine, 'accepts'>
}

export function createEntry({ admission, handed, refusals, quarantine }: EntryParts) {
  const unproven = createUnprovenBodies()
  const answerOtherMethod = createOtherMethods({ admission, handed })

  /**
   * Throws the refusal of a request. The order of the checks: 404, 403, 400, 405, 429 or 401, 404 for an unknown name, the body. If the headers
   * have a proof, or the body may have one, the body is read before the proof is refused with 401 or 429.
   */
  async function admitRequest(incoming: Incoming, generation: Generation): Promise<EntryResult> {
    const request = admission.checkHead(incoming.req, generation)
    if (isRunPath(request.path)) return readRunCall(request, admission)
    const hook = generation.findHook(request.path)
    const { secretHeaders, tokenless } = hook
    const signed = request.method === 'POST' ? hook.signed : hook.signed.filter((mapping) => takesGet(mapping, request))
    if (request.method !== 'POST' && signed.length === 0)
      return { kind: 'handshake', answer: await answerOtherMethod(hook, request) }
    const claimed = signed.filter(
      ({ verifier }) => verifier.isClaimed(request.headers) || verifier.isHandshakeHead(request),
    )
    // the bodies of clients without a valid token share limited memory
    const memory = request.token === 'valid' ? undefined : unproven.open()
    let trace = traceUnclaimed(signed, claimed)
    const note = (body: Uint8Array) =>
      refusals.note(incoming.requestId, removeGatewayCredentials(request, secretHeaders, body))
    try {
      // a request whose headers have a proof is refused after its body was read, even if its hook is unknown, or has only mappings that check no proof
      const isProofShown =
        request.token !== 'valid' && hook.kind !== 'built-in' && tokenless.isProofShown(request.headers)
      if (claimed.length === 0 && !isProofShown) {
        if (request.token === 'wrong') incoming.body = await readBodyToKeep(incoming, request, memory)
        if (incoming.body !== undefined && refusals.keepsRequests) note(incoming.body)
        admission.checkToken(request)
      }
      const limit = isProofShown ? tokenless.maxBodyBytes : hook.maxBodyBytes
      const { bodyTimeoutMs: timeoutMs } = generation.config.server
      const { req, continueNow } = incoming
      if (request.token === 'valid' && hook.kind === 'unknown') {
        // the request is kept, because the operator may make a hook from its body on the page
        if (refusals.keepsRequests) await readBody(req, { limit, timeoutMs, continueNow }).then(note, () => {})
        throw new Problem('hook-unknown', 'No hook has this name.')
      }
      const take = memory && ((size: number) => memory.take(request.client, size, limit))
      const reading = readBody(req, { limit, timeoutMs, continueNow, take })
      const read = await (request.token === 'valid' || isProofShown ? reading : reading.catch(returnSenderProblem))
      // a client without a proof must not learn why its body is invalid
      if (read instanceof Problem) {
        trace = [...trace, ...signed.map(({ id }) => toUnmatchedEntry(id, read.message))]
        return admission.refuseUnproved(request, { isGatewaysFault: false, isProofShown })
      }
      incoming.body = read
      if (refusals.keepsRequests) note(read)
      const proof = await checkProofs(claimed, { head: request, rawBody: read })
      if (proof.answer !== undefined) return { kind: 'handshake', answer: proof.answer }
      const { signedFor } = proof
      if (!isHookOpen(hook, { token: request.token === 'valid', signedFor })) {
        trace = [...proof.trace, ...trace]
        admission.refuseUnproved(request, { isGatewaysFault: proof.isGatewaysFault, isProofShown })
      }
      // a client with a valid signature must not guess the hook token at the same time; an `Authorization` header that a scheme of the hook reads is not a guess
      if (signedFor.length > 0 && !secretHeaders.has('authorization')) admission.noteToken(request)
      trace = [...proof.trace, ...trace]
      return await buildEntry({ request, hook, read, proof, trace, take })
    } catch (error) {
      throw toProblem(error).withTrace(trace)
    } finally {
      memory?.release()
    }
  }

  /**
   * Lets in a request that was refused before, if its credential is valid now. Its proof is checked by the time `at` at which it arrived. Throws
   * `hook-unknown`, and the refusals of proof and body. Counts no failure of its client, and stores no secret of its sender.
   */
  async function readmitRequest(
    { path, method, url, rawHeaders, client, body }: RawRequest & { readonly path: string },
    at: number,
    generation: Generation,
  ): Promise<EntryResult> {
    const hook = generation.findHook(path)
    const given = readToken(rawHeaders)
    const tokenId = given.kind === 'token' ? admission.findTokenId(given.token, path, generation) : undefined
    const token = tokenId !== undefined ? 'valid' : given.kind === 'none' ? 'none' : 'wrong'
    const request = { method, url, path, headers: toHeaders(rawHeaders), client, token, tokenId } as const
    const claimed = hook.signed.filter(({ verifier }) => verifier.isClaimed(request.headers))
    if (hook.kind === 'unknown') throw new Problem('hook-unknown', 'No hook has this name.')
    const unclaimed = traceUnclaimed(hook.signed, claimed)
    const read = Buffer.from(body)
    const proof = await checkProofs(claimed, { head: request, rawBody: read, arrivedAt: at })
    if (proof.answer !== undefined) return { kind: 'handshake', answer: proof.answer }
    const trace = [...proof.trace, ...unclaimed]
    if (!isHookOpen(hook, { token: token === 'valid', signedFor: proof.signedFor })) {
      throw proof.isGatewaysFault
        ? new Problem('proof-unavailable', 'The proof of the sender cannot be checked at the moment.', { trace })
        : new Problem('unauthorized', 'The request still has no valid credential.', { trace })
    }
    try {
      return await buildEntry({ request, hook, read, proof, trace })
    } catch (error) {
      throw toProblem(error).withTrace(trace)
    }
  }

  return { admitRequest, readmitRequest }

  /**
   * Reads the body of a request with a wrong token, so that it can be kept: a sender with an outdated token looks like a client that guesses.
   * All hooks are treated alike.
   */
  function readBodyToKeep({ req, continueNow }: Incoming, { client }: CheckedHead, memory?: BodyMemory) {
    const take = (size: number) => memory?.take(client, size, size)
    return readBodySoon(req, { accepts: quarantine.accepts, continueNow, take })
  }

  /** `rawBody`: the bytes as sent, which the sender signed. `arrivedAt`: only for a request that was refused before, the time when it arrived. */
  async function checkProofs(
    claimed: readonly SignedMapping[],
    { head, rawBody, arrivedAt }: { head: CheckedHead; rawBody: Uint8Array; arrivedAt?: number },
  ): Promise<ProofResult> {
    if (claimed.length === 0) return noProof
    const request = { ...head, rawBody }
    const signedFor: string[] = []
    const proved: ValidProof[] = []
    const trace: TraceEntry[] = []
    let source: string | undefined
    let isGatewaysFault = false
    for (const mapping of claimed) {
      const { id, identity, verifier } = mapping
      const unverifiedAnswer =
        arrivedAt === undefined &&
        verifier.isHandshakeHead(request) &&
        (await runHandshake(identity.secretsName, verifier, request, false))
      if (unverifiedAnswer) return { answer: unverifiedAnswer, signedFor, proved, source, trace, isGatewaysFault }
      const verified = await verifier.verify(request, arrivedAt)
      trace.push({ mappingId: id, matched: verified.ok, why: verified.ok ? 'the proof is valid' : verified.reason })
      if (!verified.ok) {
        isGatewaysFault ||= verified.fault === 'gateway'
        continue
      }
      const answer = await runHandshake(identity.secretsName, verifier, request, true, arrivedAt !== undefined)
      if (answer !== undefined) return { answer, signedFor, proved, source, trace, isGatewaysFault }
      signedFor.push(...identity.proves)
      source ??= mapping.provenSender.source
      proved.push({ mapping, verified })
    }
    return { answer: undefined, signedFor, proved, source, trace, isGatewaysFault }
  }

  /** The answer to a handshake; undefined if the request is none. `isRetried`: the request was refused before, and is tried again now. */
  async function runHandshake(
    secretsName: string,
    verifier: SignedMapping['verifier'],
    request: VerifyRequest,
    verified: boolean,
    isRetried = false,
  ): Promise<Answer | undefined> {
    // the secret of a retried request is not accepted: another one may have been accepted since
    const answer = await verifier.handshake(request, { verified, armed: !isRetried && handed.isArmed(secretsName) })
    if (answer?.handedSecret !== undefined && !isRetried) await handed.save(secretsName, answer.handedSecret)
    return answer && toAnswer(answer)
  }
}

function takesGet({ verifier }: SignedMapping, { method, headers }: CheckedHead): boolean {
  return method === 'GET' && verifier.acceptsGet && verifier.isClaimed(headers)
}

type ProvedRequest = {
  readonly request: CheckedHead
  readonly hook: Hook
  readonly read: Buffer<ArrayBuffer>
  readonly proof: ProofResult
  readonly trace: readonly TraceEntry[]
  readonly take?: ((bytes: number) => void) | undefined
}

/** The admitted form of a request: its head without credentials, and its inflated body. */
async function buildEntry({ request, hook, read, proof, trace, take }: ProvedRequest): Promise<EntryResult> {
  if (read.length > hook.maxBodyBytes) throw buildTooLargeProblem(hook.maxBodyBytes)
  const contentEncoding = request.headers['content-encoding']
  const { signedFor, source, proved } = proof
  const isProved = signedFor.length > 0
  const body = await inflateBody(read, { contentEncoding, isProved, limit: hook.maxBodyBytes, take })
  const signers = [...new Set(proved.map(({ mapping }) => mapping.identity.signer))].toSorted()
  const signedId = findSignedId(proved, body)
  const head = buildAdmittedHead(request, hook.secretHeaders, { signedFor, source, signers, signedId })
  return { kind: 'delivery', hook, head, body, trace, client: request.client }
}

type ValidProof = { readonly mapping: SignedMapping; readonly verified: Extract<Verified, { ok: true }> }

/** `answer`: the answer to a handshake. `signedFor`: the names of the valid proofs, as `Admitted` stores them. */
type ProofResult = {
  readonly answer: Answer | undefined
  readonly signedFor: readonly string[]
  readonly proved: readonly ValidProof[]
  readonly source: string | undefined
  readonly trace: readonly TraceEntry[]
  readonly isGatewaysFault: boolean
}

const noProof: ProofResult = {
  answer: undefined,
  signedFor: [],
  proved: [],
  source: undefined,
  trace: [],
  isGatewaysFault: false,
}

/** Returns a problem that is the sender's fault, and throws any other error. */
function returnSenderProblem(error: unknown): Problem {
  if (error instanceof Problem && error.status < 500) return error
  throw error
}

function traceUnclaimed(signed: readonly SignedMapping[], claimed: readonly SignedMapping[]): TraceEntry[] {
  const unclaimed = signed.filter((mapping) => !claimed.includes(mapping))
  return unclaimed.map(({ id, verifier }) => toUnmatchedEntry(id, `${unclaimedReason} ${verifier.scheme}`))
}

function toUnmatchedEntry(mappingId: string, why: string): TraceEntry {
  return { mappingId, matched: false, why }
}

/** The first delivery id that a proof covers. `body` is inflated. */
function findSignedId(proved: readonly ValidProof[], body: Uint8Array): SignedId | undefined {
  for (const { mapping, verified } of proved) {
    const { identity, verifier, provenSender } = mapping
    const id = readSignedId(provenSender.facts, verifier.covers, verified, body)
    if (id !== undefined) return { signer: identity.signer, source: provenSender.source, id }
  }
  return undefined
}
