// Handshakes: requests by which senders check a URL. Those of one sender are in its row; here are those of senders that only have the URL, or a
// word in a header, which prove with it that they may ask. A text that is sent back is limited in length and characters.
import { isJsonObject, type JsonObject } from '../../../base/json.ts'
import type { Handshake, HandshakeReply, HandshakeTools } from '../../../model/proof.ts'
import type { HandshakeAnswer, HandshakeContext, RequestHead, VerifyRequest } from '../../../core/model/verifier.ts'
import { readHeader, readJsonBody } from './proof.ts'

/** The answer to the first handshake that is due and that the request is: unsigned ones before the proof is checked, signed ones after it. */
export async function answerHandshake(
  handshakes: readonly Handshake[],
  request: VerifyRequest,
  { verified, ...tools }: HandshakeContext & Omit<HandshakeTools, 'readFields'>,
): Promise<HandshakeAnswer | undefined> {
  for (const { method, signed, isHandshakeHead, answer } of handshakes) {
    if (method !== request.method || signed !== verified || isHandshakeHead?.(request) === false) continue
    const found = toHandshakeAnswer(await answer(request, { ...tools, readFields: () => readFields(request) }))
    if (found !== undefined) return found
  }
  return undefined
}

/** The body as an object without a prototype; empty for anything else. */
function readFields(request: VerifyRequest): JsonObject {
  const body = readJsonBody(request.rawBody)
  return Object.assign(Object.create(null) as JsonObject, isJsonObject(body) ? body : {})
}

/** A text of limited length, without characters that have a meaning in HTML. */
const plain = /^[\w .:;,~+/=@!*|-]{1,1024}$/

/** The text if it may be sent back to the sender; otherwise undefined. */
function toEcho(word: unknown): string | undefined {
  return typeof word === 'string' && plain.test(word) ? word : undefined
}

const nosniff = { 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' }
const asText = { 'content-type': 'text/plain', ...nosniff }

/** Undefined if the reply has a text that may not be sent back. */
export function toHandshakeAnswer(reply: HandshakeReply | undefined): HandshakeAnswer | undefined {
  if (reply === undefined) return undefined
  if ('text' in reply) {
    const body = toEcho(reply.text)
    return body === undefined ? undefined : { status: 200, headers: asText, body }
  }
  if ('json' in reply) {
    const isPlain = (word: unknown): boolean => typeof word === 'number' || toEcho(word) !== undefined
    if (!Object.values(reply.json).every(isPlain)) return undefined
    const headers = { 'content-type': 'application/json', ...nosniff }
    return { status: 200, headers, body: JSON.stringify(reply.json) }
  }
  const { status, headers = {}, ...handed } = reply
  // 401 counts as a failed proof
  return { status, headers: status === 401 ? {} : { ...asText, ...headers }, body: '', ...handed }
}

/**
 * The sender of CloudEvents asks whether it may send, and at which rate.
 * https://github.com/cloudevents/spec/blob/main/cloudevents/http-webhook.md#4-abuse-protection
 */
export function answerOrigin({ headers }: RequestHead): HandshakeReply | undefined {
  const origin = toEcho(readHeader(headers, 'webhook-request-origin'))
  if (origin === undefined) return undefined
  const hasRate = readHeader(headers, 'webhook-request-rate') !== undefined
  const allowed = { 'webhook-allowed-origin': origin, ...(hasRate && { 'webhook-allowed-rate': '*' }), allow: 'POST' }
  return { status: 200, headers: allowed }
}

/** Event Grid, in its own format: `[{"eventType":"Microsoft.EventGrid.SubscriptionValidationEvent","data":{"validationCode":C}}]`. */
function answerValidation(request: VerifyRequest): HandshakeReply | undefined {
  if (readHeader(request.headers, 'aeg-event-type') !== 'SubscriptionValidation') return undefined
  const body = readJsonBody(request.rawBody)
  const event = Array.isArray(body) ? body[0] : undefined
  const data = isJsonObject(event) ? event['data'] : undefined
  return { json: { validationResponse: isJsonObject(data) ? data['validationCode'] : undefined } }
}

export const eventHandshakes: readonly Handshake[] = [
  { method: 'OPTIONS', signed: true, answer: answerOrigin },
  { method: 'POST', signed: true, answer: answerValidation },
]

export const urlHandshakes: readonly Handshake[] = [
  { method: 'HEAD', signed: true, answer: () => ({ status: 200 }) },
  { method: 'GET', signed: true, answer: () => ({ status: 200 }) },
  ...eventHandshakes,
]
