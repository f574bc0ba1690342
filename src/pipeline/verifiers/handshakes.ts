// Handshakes: requests by which senders check a URL, as their documentation describes them. A text that is sent back is limited in length and
// characters.
import { createHmac } from 'node:crypto'
import type {
  RequestHead,
  VerifyRequest,
  HandshakeAnswer,
  HandshakeContext,
  PinnedFetch,
} from '../../model/verifier.ts'
import { isJsonObject, type JsonObject } from '../../base/json.ts'
import { readJsonBody, readHeader, createSecretSet } from './proof.ts'
import { snsConfirmation } from './pinned-fetch.ts'
import { readQuery } from './url.ts'
import type { HandshakeName } from '../../model/scheme.ts'
import type { VerifySettings } from '../../model/config/verify.ts'

type HandshakeTools = {
  readonly settings: VerifySettings
  readonly secrets: () => readonly string[]
  readonly fetch: PinnedFetch
  /** As in `HandshakeContext`: the operator allowed a new secret. */
  readonly armed: boolean
}

type HandshakeResult = HandshakeAnswer | undefined

type Handshake = {
  readonly method: 'POST' | 'GET' | 'HEAD' | 'OPTIONS'
  /** True: the handshake has the proof of the scheme, and is answered only if the proof is valid. */
  readonly signed: boolean
  /** Only for unsigned POSTs: whether the head may belong to a handshake. */
  readonly isHandshakeHead?: (head: RequestHead) => boolean
  readonly answer: (request: VerifyRequest, tools: HandshakeTools) => HandshakeResult | Promise<HandshakeResult>
}

/** Whether the handshake may be answered now: unsigned ones before the proof is checked, signed ones after it. */
export function isHandshakeDue(handshake: Handshake, request: VerifyRequest, context: HandshakeContext): boolean {
  if (handshake.method !== request.method || handshake.signed !== context.verified) return false
  return handshake.isHandshakeHead === undefined || handshake.isHandshakeHead(request)
}

/** A text of limited length, without characters that have a meaning in HTML. */
const plain = /^[\w .:;,~+/=@!*|-]{1,1024}$/

/** The text if it may be sent back to the sender; otherwise undefined. */
function toEcho(word: unknown): string | undefined {
  return typeof word === 'string' && plain.test(word) ? word : undefined
}

const nosniff = { 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' }
const asText = { 'content-type': 'text/plain', ...nosniff }

function answerText(word: unknown): HandshakeResult {
  const body = toEcho(word)
  return body === undefined ? undefined : { status: 200, headers: asText, body }
}

/** The fields as an answer; undefined unless all values are numbers or texts that may be sent back. */
function answerJson(fields: Record<string, unknown>): HandshakeResult {
  const isPlain = (word: unknown): boolean => typeof word === 'number' || toEcho(word) !== undefined
  if (!Object.values(fields).every(isPlain)) return undefined
  return { status: 200, headers: { 'content-type': 'application/json', ...nosniff }, body: JSON.stringify(fields) }
}

/** The answer to a wrong token, which counts as a failed proof. */
const denied: HandshakeAnswer = { status: 401, headers: {}, body: '' }

function answerNothing(status: 200 | 204 | 503 = 200): HandshakeAnswer {
  return { status, headers: asText, body: '' }
}

function getHandshake(answer: Handshake['answer']): Handshake {
  return { method: 'GET', signed: false, answer }
}

/** The challenge is sent back if the token of the request matches `verify.verifyToken`. If `verify.verifyToken` is not set, no token matches. */
function hubHandshake(answer: (word: unknown) => ReturnType<Handshake['answer']>): Handshake {
  return getHandshake(({ url }, { settings: { verifyToken } }) => {
    const query = readQuery(url)
    if (query.get('hub.mode') !== 'subscribe') return undefined
    const isKnown = verifyToken !== undefined && createSecretSet([verifyToken])(query.get('hub.verify_token') ?? '')
    return isKnown ? answer(query.get('hub.challenge')) : denied
  })
}

const queryHandshakes = {
  /** Trello and Intercom only check that the URL answers. */
  head: { method: 'HEAD', signed: false, answer: () => answerNothing() },
  /** Dropbox, Nylas: `?challenge=C` → C. */
  'get-challenge': getHandshake(({ url }) => answerText(readQuery(url).get('challenge'))),
  'meta-hub': hubHandshake(answerText),
  'strava-hub': hubHandshake((word) => answerJson({ 'hub.challenge': word })),
  'okta-header': getHandshake(({ headers }) =>
    answerJson({ verification: readHeader(headers, 'x-okta-verification-challenge') }),
  ),
  /** The answer signs a text for anybody who asks, so only short words are accepted, which cannot be a body. */
  'x-crc': getHandshake(({ url }, { secrets }) => {
    const word = readQuery(url).get('crc_token') ?? ''
    const [secret] = secrets()
    if (secret === undefined || !/^[\w-]{1,128}$/.test(word)) return undefined
    return answerJson({ response_token: `sha256=${createHmac('sha256', secret).update(word).digest('base64')}` })
  }),
} as const satisfies Record<string, Handshake>

/** Senders that only have the URL, or a word in a header, prove with it that they may ask. */
const provedHandshakes = {
  'proved-head': { method: 'HEAD', signed: true, answer: () => answerNothing() },
  'proved-get': { method: 'GET', signed: true, answer: () => answerNothing() },
  'webhook-origin': { method: 'OPTIONS', signed: true, answer: answerOrigin },
  /** Event Grid, in its own format: `[{"eventType":"Microsoft.EventGrid.SubscriptionValidationEvent","data":{"validationCode":C}}]`. */
  'event-grid': signedHandshake((request) => {
    if (readHeader(request.headers, 'aeg-event-type') !== 'SubscriptionValidation') return undefined
    const body = readJsonBody(request.rawBody)
    const event = Array.isArray(body) ? body[0] : undefined
    const data = isJsonObject(event) ? event['data'] : undefined
    return answerJson({ validationResponse: isJsonObject(data) ? data['validationCode'] : undefined })
  }),
} as const satisfies Record<string, Handshake>

/**
 * The sender of CloudEvents asks whether it may send, and at which rate.
 * https://github.com/cloudevents/spec/blob/main/cloudevents/http-webhook.md#4-abuse-protection
 */
export function answerOrigin({ headers }: RequestHead): HandshakeResult {
  const origin = toEcho(readHeader(headers, 'webhook-request-origin'))
  if (origin === undefined) return undefined
  const hasRate = readHeader(headers, 'webhook-request-rate') !== undefined
  const allowed = { 'webhook-allowed-origin': origin, ...(hasRate && { 'webhook-allowed-rate': '*' }), allow: 'POST' }
  return { status: 200, headers: { ...asText, ...allowed }, body: '' }
}

function signedHandshake(answer: Handshake['answer']): Handshake {
  return { method: 'POST', signed: true, answer }
}

function unsignedHandshake(isHandshakeHead: (head: RequestHead) => boolean, answer: Handshake['answer']): Handshake {
  return { method: 'POST', signed: false, isHandshakeHead, answer }
}

/** The body as an object without a prototype; empty for anything else. */
function readFields(request: VerifyRequest): JsonObject {
  const body = readJsonBody(request.rawBody)
  return Object.assign(Object.create(null) as JsonObject, isJsonObject(body) ? body : {})
}

const has = (head: RequestHead, name: string): boolean => Object.hasOwn(head.headers, name)
const isOfType = (head: RequestHead, type: string): boolean =>
  (readHeader(head.headers, 'content-type') ?? '').toLowerCase().startsWith(type)

function answerSslCheck({ rawBody }: VerifyRequest): HandshakeResult {
  if (rawBody.byteLength > 1_024) return undefined
  return new URLSearchParams(Buffer.from(rawBody).toString()).get('ssl_check') === '1' ? answerNothing() : undefined
}

const callbackHandshakes = {
  'slack-url': signedHandshake((request) => {
    const { type, challenge } = readFields(request)
    return type === 'url_verification' ? answerText(challenge) : undefined
  }),
  /** Slack checks the certificate with a form, which it does not always sign. */
  'slack-ssl-check': signedHandshake(answerSslCheck),
  'slack-ssl-check-unsigned': unsignedHandshake(
    (head) => isOfType(head, 'application/x-www-form-urlencoded') && !has(head, 'x-slack-signature'),
    answerSslCheck,
  ),
  /** MCP Events: the answer repeats the challenge of a signed request. */
  'mcp-verification': signedHandshake((request) => {
    const { type, challenge } = readFields(request)
    return type === 'verification' ? answerJson({ challenge }) : undefined
  }),
  'discord-ping': signedHandshake((request) => {
    const { type, event } = readFields(request)
    // type 1 is the ping of an interaction, and also the type of every webhook event; the ping of a webhook has type 0
    if (type === 1 && event === undefined) return answerJson({ type: 1 })
    return type === 0 ? answerNothing(204) : undefined
  }),
  'zoom-url': signedHandshake((request, { secrets }) => {
    const { event, payload } = readFields(request)
    const token = isJsonObject(payload) ? payload['plainToken'] : undefined
    const [secret] = secrets()
    if (event !== 'endpoint.url_validation' || typeof token !== 'string' || secret === undefined) return undefined
    return answerJson({ plainToken: token, encryptedToken: createHmac('sha256', secret).update(token).digest('hex') })
  }),
  'twitch-callback': signedHandshake((request) => {
    const type = readHeader(request.headers, 'twitch-eventsub-message-type')
    return type === 'webhook_callback_verification' ? answerText(readFields(request)['challenge']) : undefined
  }),
  'front-header': signedHandshake((request) => answerText(readHeader(request.headers, 'x-front-challenge'))),
  'intercom-ping': signedHandshake((request) =>
    readFields(request)['topic'] === 'ping' ? answerNothing() : undefined,
  ),
  /** With an empty list of events, Xero checks that the secret is known, and Asana that the URL still answers. */
  'no-events': signedHandshake((request) => {
    const { events } = readFields(request)
    return Array.isArray(events) && events.length === 0 ? answerNothing() : undefined
  }),
  'google-sync': signedHandshake((request) =>
    readHeader(request.headers, 'x-goog-resource-state') === 'sync' ? answerNothing() : undefined,
  ),
  /** The subscription is confirmed by fetching SubscribeURL. The end of a subscription is only acknowledged. */
  'sns-confirmation': signedHandshake(async (request, { fetch }) => {
    const { Type: type, SubscribeURL: url } = readFields(request)
    if (type === 'UnsubscribeConfirmation') return answerNothing()
    if (type !== 'SubscriptionConfirmation' || typeof url !== 'string') return undefined
    const confirmed = await fetch(url, snsConfirmation)
    // SNS repeats the request after a 5xx
    return confirmed.ok ? answerNothing() : answerNothing(503)
  }),

  'monday-challenge': unsignedHandshake(
    (head) => isOfType(head, 'application/json'),
    (request) => {
      const fields = readFields(request)
      return Object.keys(fields).join() === 'challenge' ? answerJson({ challenge: fields['challenge'] }) : undefined
    },
  ),
  /** Graph sends a token in the URL and expects it back as text. */
  'graph-token': unsignedHandshake(
    (head) => readQuery(head.url).has('validationToken'),
    (request) => answerText(readQuery(request.url).get('validationToken')),
  ),
  'woocommerce-ping': unsignedHandshake(
    (head) => isOfType(head, 'application/x-www-form-urlencoded'),
    (request) => (/^webhook_id=\d{1,20}$/.test(Buffer.from(request.rawBody).toString()) ? answerNothing() : undefined),
  ),
  'bitbucket-ping': unsignedHandshake(
    (head) => readHeader(head.headers, 'x-event-key') === 'diagnostics:ping',
    (request) => (readFields(request)['test'] === true ? answerNothing() : undefined),
  ),
  'asana-secret': unsignedHandshake(
    (head) => has(head, 'x-hook-secret'),
    (request, { armed }) => {
      const secret = readHeader(request.headers, 'x-hook-secret') ?? ''
      if (!armed || !/^[\w-]{16,256}$/.test(secret)) return undefined
      const answer = answerNothing()
      return { ...answer, headers: { ...answer.headers, 'x-hook-secret': secret }, handedSecret: secret }
    },
  ),
  'notion-token': unsignedHandshake(
    (head) => !has(head, 'x-notion-signature'),
    (request, { armed }) => {
      const secret = readFields(request)['verification_token']
      if (!armed || typeof secret !== 'string' || !/^[\w-]{8,256}$/.test(secret)) return undefined
      return { ...answerNothing(), handedSecret: secret }
    },
  ),
} as const satisfies Record<string, Handshake>

export const handshakes: Readonly<Record<HandshakeName, Handshake>> = {
  ...queryHandshakes,
  ...provedHandshakes,
  ...callbackHandshakes,
}
