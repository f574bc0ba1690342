// Lets a request in: by the hook token, or by a proof that a mapping requires. Raw bytes are verified before they are parsed.
import type { Generation } from '../generation/generation.ts'
import { type Admission, readToken, toHeaders } from './admission.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { isRunPath } from '../../core/model/delivery.ts'
import { Problem, toProblem, type TraceEntry } from '../../core/model/problem.ts'
import { isHookOpen, type SignedMapping } from '../../core/mapping/hook.ts'
import { checkProofs, listSigned, openRequest } from '../proofs/check.ts'
import type { AdmittedRequest } from '../deliveries/arrivals.ts'
import type { Quarantine } from '../deliveries/refused/quarantine.ts'
import { unclaimedReason } from '../deliveries/refused/reasons.ts'
import type { RawRequest } from '../deliveries/refused/seal.ts'
import type { Answer } from '../../core/mapping/answer.ts'
import { readBody, readBodySoon } from './body.ts'
import type { CheckedHead } from '../../core/mapping/delivery.ts'
import type { HandshakeSecrets } from './handshake-secrets.ts'
import type { Runner } from '../../model/runner.ts'
import type { ArrivedRequest } from '../../model/source.ts'
import { createOtherMethods, toAnswer } from './other-methods.ts'
import { type Refusals, removeGatewayCredentials } from './refusals.ts'
import { readRunCall, type RunCall } from './runs.ts'
import { type AwaitCall, findAwaitedHook, readAwaitCall } from './awaits.ts'
import { findServe, readServedCall, type ServedCall } from './served.ts'
import { type BodyMemory, createUnprovenBodies } from './unproven.ts'

export type Incoming = {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly requestId: string
  /** Of a request that arrived elsewhere: its id, and the time by which its proof is checked. */
  readonly arrived?: Pick<ArrivedRequest, 'id' | 'at'> | undefined
  /** Answers `Expect: 100-continue`; called just before the body is read. */
  readonly continueNow: () => void
  /** The body as it was sent; undefined until it was read. */
  body?: Buffer<ArrayBuffer> | undefined
}

/** A request that was admitted, with its inflated body; the answer to a sender's handshake; or a request for a run, a wait or a runner. */
export type EntryResult =
  | (AdmittedRequest & { readonly kind: 'delivery' })
  | { readonly kind: 'handshake'; readonly answer: Answer }
  | RunCall
  | AwaitCall
  | ServedCall

export type Entry = ReturnType<typeof createEntry>

type EntryParts = {
  readonly admission: Admission
  readonly handed: HandshakeSecrets
  readonly refusals: Pick<Refusals, 'keepsRequests' | 'note'>
  readonly quarantine: Pick<Quarantine, 'accepts'>
  readonly findRunner: (name: string) => Runner | undefined
}

export function createEntry({ admission, handed, refusals, quarantine, findRunner }: EntryParts) {
  const unproven = createUnprovenBodies()
  const answerOtherMethod = createOtherMethods({ admission, handed })

  /**
   * Throws the refusal of a request. The order of the checks: 404, 403, 400, 405, 429 or 401, 404 for an unknown name, the body. If the headers
   * have a proof, or the body may have one, the body is read before the proof is refused with 401 or 429.
   */
  async function admitRequest(incoming: Incoming, generation: Generation): Promise<EntryResult> {
    const request = admission.checkHead(incoming.req, generation)
    if (isRunPath(request.path)) return readRunCall(request, admission)
    const { bodyTimeoutMs: timeoutMs } = generation.config.server
    // a source waits for the answer of each request that it brings, and a stream has no end
    const serve = incoming.arrived === undefined ? findServe(request.path, generation, findRunner) : undefined
    if (serve !== undefined)
      return readServedCall(request, { ...incoming, serve, memory: unproven.open(), timeoutMs }, admission)
    const awaited = findAwaitedHook(request, generation)
    if (awaited !== undefined) return readAwaitCall(request, { ...incoming, hook: awaited, timeoutMs })
    const hook = generation.findHook(request.path)
    const { secretHeaders, tokenless } = hook
    const signed = listSigned(hook, request)
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
      const proof = await checkProofs(
        claimed,
        { head: request, rawBody: read, arrivedAt: incoming.arrived?.at },
        handed,
      )
      if (proof.answer !== undefined) return { kind: 'handshake', answer: toAnswer(proof.answer) }
      const { signedFor } = proof
      if (!isHookOpen(hook, { token: request.token === 'valid', signedFor })) {
        trace = [...proof.trace, ...trace]
        admission.refuseUnproved(request, { isGatewaysFault: proof.isGatewaysFault, isProofShown })
      }
      // a client with a valid signature must not guess the hook token at the same time; an `Authorization` header that a scheme of the hook reads is not a guess
      if (signedFor.length > 0 && !secretHeaders.has('authorization')) admission.noteToken(request)
      trace = [...proof.trace, ...trace]
      const opened = await openRequest({ request, hook, read, proof, take })
      return { kind: 'delivery', hook, ...opened, trace, client: request.client }
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
    const proof = await checkProofs(claimed, { head: request, rawBody: read, arrivedAt: at, isRetried: true }, handed)
    if (proof.answer !== undefined) return { kind: 'handshake', answer: toAnswer(proof.answer) }
    const trace = [...proof.trace, ...unclaimed]
    if (!isHookOpen(hook, { token: token === 'valid', signedFor: proof.signedFor })) {
      throw proof.isGatewaysFault
        ? new Problem('proof-unavailable', 'The proof of the sender cannot be checked at the moment.', { trace })
        : new Problem('unauthorized', 'The request still has no valid credential.', { trace })
    }
    try {
      const opened = await openRequest({ request, hook, read, proof })
      return { kind: 'delivery', hook, ...opened, trace, client: request.client }
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
