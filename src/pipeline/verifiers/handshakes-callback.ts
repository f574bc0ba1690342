// Handshakes that ask with a POST: some signed like any delivery, some before there is a secret to sign with.
import { createHmac } from 'node:crypto'
import type { RequestHead, VerifyRequest } from '../../model/verifier.ts'
import { isJsonObject, type JsonObject } from '../../base/json.ts'
import { tryBody } from './body.ts'
import { answerJson, answerNothing, answerText, type Handshake } from './handshake.ts'
import { snsConfirmation } from './hosts.ts'
import { readHeader } from './proof.ts'
import { queryOf } from './url.ts'

function signed(answer: Handshake['answer']): Handshake {
  return { method: 'POST', signed: true, answer }
}

function unsigned(isGreeting: (head: RequestHead) => boolean, answer: Handshake['answer']): Handshake {
  return { method: 'POST', signed: false, isGreeting, answer }
}

/** The body as an object without a prototype; empty for anything else. */
function fieldsOf(request: VerifyRequest): JsonObject {
  const body = tryBody(request.rawBody)
  return Object.assign(Object.create(null) as JsonObject, isJsonObject(body) ? body : {})
}

const has = (head: RequestHead, name: string): boolean => Object.hasOwn(head.headers, name)
const isOfType = (head: RequestHead, type: string): boolean =>
  (readHeader(head.headers, 'content-type') ?? '').toLowerCase().startsWith(type)

export const callbackHandshakes = {
  'slack-url': signed((request) => {
    const { type, challenge } = fieldsOf(request)
    return type === 'url_verification' ? answerText(challenge) : undefined
  }),
  /** Type 1 is the ping of interactions, 0 that of webhook events. */
  'discord-ping': signed((request) => {
    const { type, event } = fieldsOf(request)
    // 1 is the ping of an interaction, and every event of a webhook; the ping of a webhook is 0
    if (type === 1 && event === undefined) return answerJson({ type: 1 })
    return type === 0 ? answerNothing(204) : undefined
  }),
  'zoom-url': signed((request, { secrets }) => {
    const { event, payload } = fieldsOf(request)
    const token = isJsonObject(payload) ? payload['plainToken'] : undefined
    const [secret] = secrets()
    if (event !== 'endpoint.url_validation' || typeof token !== 'string' || secret === undefined) return undefined
    return answerJson({ plainToken: token, encryptedToken: createHmac('sha256', secret).update(token).digest('hex') })
  }),
  'twitch-callback': signed((request) => {
    const type = readHeader(request.headers, 'twitch-eventsub-message-type')
    return type === 'webhook_callback_verification' ? answerText(fieldsOf(request)['challenge']) : undefined
  }),
  'front-header': signed((request) => answerText(readHeader(request.headers, 'x-front-challenge'))),
  'intercom-ping': signed((request) => (fieldsOf(request)['topic'] === 'ping' ? answerNothing() : undefined)),
  /** Xero asks whether the secret is known, Asana whether somebody is still there: events of which there are none. */
  'no-events': signed((request) => {
    const { events } = fieldsOf(request)
    return Array.isArray(events) && events.length === 0 ? answerNothing() : undefined
  }),
  'google-sync': signed((request) =>
    readHeader(request.headers, 'x-goog-resource-state') === 'sync' ? answerNothing() : undefined,
  ),
  /** Fetching SubscribeURL is the answer; an unsubscription is only taken note of. */
  'sns-confirmation': signed(async (request, { fetch }) => {
    const { Type: type, SubscribeURL: url } = fieldsOf(request)
    if (type === 'UnsubscribeConfirmation') return answerNothing()
    if (type !== 'SubscriptionConfirmation' || typeof url !== 'string') return undefined
    const confirmed = await fetch(url, snsConfirmation)
    // SNS asks again after a 5xx
    return confirmed.ok ? answerNothing() : answerNothing(503)
  }),

  'monday-challenge': unsigned(
    (head) => isOfType(head, 'application/json'),
    (request) => {
      const fields = fieldsOf(request)
      return Object.keys(fields).join() === 'challenge' ? answerJson({ challenge: fields['challenge'] }) : undefined
    },
  ),
  /** Graph sends its word in the URL, and wants it back as text. */
  'graph-token': unsigned(
    (head) => queryOf(head.url).has('validationToken'),
    (request) => answerText(queryOf(request.url).get('validationToken')),
  ),
  'woocommerce-ping': unsigned(
    (head) => isOfType(head, 'application/x-www-form-urlencoded'),
    (request) => (/^webhook_id=\d{1,20}$/.test(Buffer.from(request.rawBody).toString()) ? answerNothing() : undefined),
  ),
  'bitbucket-ping': unsigned(
    (head) => readHeader(head.headers, 'x-event-key') === 'diagnostics:ping',
    (request) => (fieldsOf(request)['test'] === true ? answerNothing() : undefined),
  ),
  'asana-secret': unsigned(
    (head) => has(head, 'x-hook-secret'),
    (request, { armed }) => {
      const secret = readHeader(request.headers, 'x-hook-secret') ?? ''
      if (!armed || !/^[\w-]{16,256}$/.test(secret)) return undefined
      const answer = answerNothing()
      return { ...answer, headers: { ...answer.headers, 'x-hook-secret': secret }, handedSecret: secret }
    },
  ),
  'notion-token': unsigned(
    (head) => !has(head, 'x-notion-signature'),
    (request, { armed }) => {
      const secret = fieldsOf(request)['verification_token']
      if (!armed || typeof secret !== 'string' || !/^[\w-]{8,256}$/.test(secret)) return undefined
      return { ...answerNothing(), handedSecret: secret }
    },
  ),
} as const satisfies Record<string, Handshake>
