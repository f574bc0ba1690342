// Checks the proofs of a request, and opens its body. Raw bytes are verified before they are parsed.
import type { DeliveryHead, SignedId } from '../../core/model/delivery.ts'
import type { TraceEntry } from '../../core/model/problem.ts'
import type { SenderFacts } from '../../core/model/sender.ts'
import type { Coverage, HandshakeAnswer, Verified, VerifyRequest } from '../../core/model/verifier.ts'
import { buildAdmittedHead, type CheckedHead } from '../../core/mapping/delivery.ts'
import type { Hook, SignedMapping } from '../../core/mapping/hook.ts'
import { hasIdInBody, readIdInBody } from '../../core/mapping/sources.ts'
import { buildTooLargeProblem, inflateBody, toOwnBuffer } from './inflate.ts'
import { readJsonBody } from './verifiers/proof.ts'

/** The secrets that senders hand over in a handshake. `secretsName`: their name in the `Identity` of a mapping. */
export type HandedSecrets = {
  /** Whether a new secret is allowed now. */
  isArmed(secretsName: string): boolean
  /** Throws `unauthorized` if none is allowed. */
  save(secretsName: string, secret: string): Promise<void>
}

/** The mappings whose proofs the request may have. A GET is a delivery only for a scheme that accepts it. */
export function listSigned({ signed }: Hook, { method, headers }: CheckedHead): readonly SignedMapping[] {
  if (method === 'POST') return signed
  return method === 'GET' ? signed.filter(({ verifier }) => verifier.acceptsGet && verifier.isClaimed(headers)) : []
}

type ValidProof = { readonly mapping: SignedMapping; readonly verified: Extract<Verified, { ok: true }> }

/** `answer`: the answer to a handshake. `signedFor`: the names of the valid proofs, as `Admitted` stores them. */
export type ProofResult = {
  readonly answer: HandshakeAnswer | undefined
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

type ProofInput = {
  readonly head: CheckedHead
  /** The bytes as sent, which the sender signed. */
  readonly rawBody: Uint8Array
  /** When it arrived, if not now. */
  readonly arrivedAt?: number | undefined
  /** It was refused before, and is tried again now. */
  readonly isRetried?: boolean
}

/** Checks the proofs of the mappings that the request claims. The first handshake ends the check. */
export async function checkProofs(
  claimed: readonly SignedMapping[],
  { head, rawBody, arrivedAt, isRetried = false }: ProofInput,
  handed: HandedSecrets,
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
      !isRetried &&
      verifier.isHandshakeHead(request) &&
      (await runHandshake(mapping, request, { verified: false, isRetried: false, handed }))
    if (unverifiedAnswer) return { answer: unverifiedAnswer, signedFor, proved, source, trace, isGatewaysFault }
    const verified = await verifier.verify(request, arrivedAt)
    trace.push({ mappingId: id, matched: verified.ok, why: verified.ok ? 'the proof is valid' : verified.reason })
    if (!verified.ok) {
      isGatewaysFault ||= verified.fault === 'gateway'
      continue
    }
    const answer = await runHandshake(mapping, request, { verified: true, isRetried, handed })
    if (answer !== undefined) return { answer, signedFor, proved, source, trace, isGatewaysFault }
    signedFor.push(...identity.proves)
    source ??= mapping.provenSender.source
    proved.push({ mapping, verified })
  }
  return { answer: undefined, signedFor, proved, source, trace, isGatewaysFault }
}

type Handshake = { readonly verified: boolean; readonly isRetried: boolean; readonly handed: HandedSecrets }

/** The answer to a handshake; undefined if the request is none. `isRetried`: the request was refused before, and is tried again now. */
async function runHandshake(
  { identity: { secretsName }, verifier }: SignedMapping,
  request: VerifyRequest,
  { verified, isRetried, handed }: Handshake,
): Promise<HandshakeAnswer | undefined> {
  // the secret of a retried request is not accepted: another one may have been accepted since
  const answer = await verifier.handshake(request, { verified, armed: !isRetried && handed.isArmed(secretsName) })
  if (answer?.handedSecret !== undefined && !isRetried) await handed.save(secretsName, answer.handedSecret)
  return answer
}

type AdmittedRequest = {
  readonly request: CheckedHead
  readonly hook: Hook
  readonly read: Buffer<ArrayBuffer>
  readonly proof: ProofResult
  readonly take?: ((bytes: number) => void) | undefined
}

/**
 * The admitted form of a request: its head without credentials, and its inflated body, or what a proof has decrypted. Throws `body-too-large` and the
 * errors of `inflateBody`.
 */
export async function openRequest({ request, hook, read, proof, take }: AdmittedRequest): Promise<{
  readonly head: DeliveryHead
  readonly body: Buffer<ArrayBuffer>
}> {
  if (read.length > hook.maxBodyBytes) throw buildTooLargeProblem(hook.maxBodyBytes)
  const contentEncoding = request.headers['content-encoding']
  const { signedFor, source, proved } = proof
  const isProved = signedFor.length > 0
  const inflated = await inflateBody(read, { contentEncoding, isProved, limit: hook.maxBodyBytes, take })
  const opened = proved.find(({ verified }) => verified.body !== undefined)?.verified.body
  if (opened !== undefined && opened.length > hook.maxBodyBytes) throw buildTooLargeProblem(hook.maxBodyBytes)
  // a copy with its own ArrayBuffer, because the one of the code may have other bytes, and goes to a thread
  const body = opened === undefined ? inflated : toOwnBuffer(Buffer.from(opened), opened.length)
  const signers = [...new Set(proved.map(({ mapping }) => mapping.identity.signer))].toSorted()
  const signedId = findSignedId(proved, body)
  const head = buildAdmittedHead(request, hook.secretHeaders, { signedFor, source, signers, signedId })
  return { head, body }
}

/** The first delivery id that a proof covers. `body` is inflated and decrypted. */
function findSignedId(proved: readonly ValidProof[], body: Uint8Array): SignedId | undefined {
  for (const { mapping, verified } of proved) {
    const { identity, verifier, provenSender } = mapping
    const id = readSignedId(provenSender.facts, verifier.covers, verified, body)
    if (id !== undefined) return { signer: identity.signer, source: provenSender.source, id }
  }
  return undefined
}

/**
 * The delivery id that a proof covers: the one that the proof names, else the one in a covered body. `sender`: whose requests the proof proves.
 * `bytes`: the inflated body. Undefined if the proof covers no id.
 */
export function readSignedId(
  sender: SenderFacts | undefined,
  covers: Coverage,
  { id }: Extract<Verified, { ok: true }>,
  bytes: Uint8Array,
): string | undefined {
  if (id !== undefined) return id
  if (sender === undefined || !covers.body || !hasIdInBody(sender)) return undefined
  const parsed = readJsonBody(bytes)
  if (parsed === undefined) return undefined
  return readIdInBody(sender, { bytes, syntax: 'json', parsed })
}
