// How a sender asks whether somebody is there. What is sent back of its words is bounded in length and in characters.
import type {
  HandshakeAnswer,
  HandshakeContext,
  PinnedFetch,
  RequestHead,
  VerifyRequest,
} from '../../model/verifier.ts'
import type { VerifySettings } from '../../model/verify.ts'

export type HandshakeTools = {
  readonly settings: VerifySettings
  readonly secrets: () => readonly string[]
  readonly fetch: PinnedFetch
  readonly armed: boolean
}

type Answered = HandshakeAnswer | undefined

export type Handshake = {
  readonly method: 'POST' | 'GET' | 'HEAD'
  /** True: it carries the scheme's proof, and is answered only where that holds. */
  readonly signed: boolean
  /** For unsigned POSTs: whether the head can be that of a handshake. */
  readonly isGreeting?: (head: RequestHead) => boolean
  readonly answer: (request: VerifyRequest, tools: HandshakeTools) => Answered | Promise<Answered>
}

/** Whether a handshake is due at this point: unsigned ones before the proof, signed ones after it. */
export function isDue(handshake: Handshake, request: VerifyRequest, context: HandshakeContext): boolean {
  if (handshake.method !== request.method || handshake.signed !== context.verified) return false
  return handshake.isGreeting === undefined || handshake.isGreeting(request)
}

/** No character that means something to a browser, and no more than a sender has use for. */
const plain = /^[\w .:;,~+/=@!*|-]{1,1024}$/

/** The sender's word if it may be sent back; undefined otherwise. */
export function toEcho(word: unknown): string | undefined {
  return typeof word === 'string' && plain.test(word) ? word : undefined
}

const nosniff = { 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' }
const asText = { 'content-type': 'text/plain', ...nosniff }

export function answerText(word: unknown): Answered {
  const body = toEcho(word)
  return body === undefined ? undefined : { status: 200, headers: asText, body }
}

/** Fields whose values are numbers, or words that may be sent back. */
export function answerJson(fields: Record<string, unknown>): Answered {
  const isPlain = (word: unknown): boolean => typeof word === 'number' || toEcho(word) !== undefined
  if (!Object.values(fields).every(isPlain)) return undefined
  return { status: 200, headers: { 'content-type': 'application/json', ...nosniff }, body: JSON.stringify(fields) }
}

/** It asked with a wrong word: that counts as a failed proof, and is answered as one. */
export const denied: HandshakeAnswer = { status: 401, headers: {}, body: '' }

export function answerNothing(status: 200 | 204 | 503 = 200): HandshakeAnswer {
  return { status, headers: asText, body: '' }
}
