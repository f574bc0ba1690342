// Requests by which senders check a URL, as their documentation describes them.
import { createHmac } from 'node:crypto'
import type { Handshake, HandshakeReply, RequestHead, VerifyRequest } from '../../define.ts'
import { snsConfirmation } from './certificates.ts'
import { isSame } from './shared.ts'

type Answer = Handshake['answer']

const onGet = (answer: Answer): Handshake => ({ method: 'GET', signed: false, answer })
const onSigned = (answer: Answer): Handshake => ({ method: 'POST', signed: true, answer })
const onUnsigned = (isHandshakeHead: (head: RequestHead) => boolean, answer: Answer): Handshake => ({
  method: 'POST',
  signed: false,
  isHandshakeHead,
  answer,
})

const readQuery = ({ url }: RequestHead) => new URLSearchParams(/\?(.*)/s.exec(url)?.[1] ?? '')
const isOfType = ({ headers }: RequestHead, type: string) =>
  (headers['content-type'] ?? '').toLowerCase().startsWith(type)

/** Trello and Intercom only check that the URL answers. */
export const anyHead: Handshake = { method: 'HEAD', signed: false, answer: () => ({ status: 200 }) }

/** Dropbox, Nylas: `?challenge=C` → C. */
export const getChallenge = onGet((request) => ({ text: readQuery(request).get('challenge') }))

/** The challenge is sent back if the token of the request matches `verify.verifyToken`. If `verify.verifyToken` is not set, no token matches. */
function onHub(answer: (word: unknown) => HandshakeReply): Handshake {
  return onGet((request, { settings: { verifyToken } }) => {
    const query = readQuery(request)
    if (query.get('hub.mode') !== 'subscribe') return undefined
    const isKnown = verifyToken !== undefined && isSame(verifyToken, query.get('hub.verify_token') ?? '')
    return isKnown ? answer(query.get('hub.challenge')) : { status: 401 }
  })
}

export const metaHub = onHub((text) => ({ text }))
export const stravaHub = onHub((word) => ({ json: { 'hub.challenge': word } }))

export const oktaHeader = onGet(({ headers }) => ({
  json: { verification: headers['x-okta-verification-challenge'] },
}))

/** The answer signs a text for anybody who asks, so only short words are accepted, which cannot be a body. */
export const xCrc: Handshake = {
  ...onGet((request, { secrets }) => {
    const word = readQuery(request).get('crc_token') ?? ''
    const [secret] = secrets()
    if (secret === undefined || !/^[\w-]{1,128}$/.test(word)) return undefined
    return { json: { response_token: `sha256=${createHmac('sha256', secret).update(word).digest('base64')}` } }
  }),
  signsWords: true,
}

export const slackUrl = onSigned((_, { readFields }) => {
  const { type, challenge } = readFields()
  return type === 'url_verification' ? { text: challenge } : undefined
})

function answerSslCheck({ rawBody }: VerifyRequest): HandshakeReply | undefined {
  if (rawBody.byteLength > 1_024) return undefined
  return new URLSearchParams(Buffer.from(rawBody).toString()).get('ssl_check') === '1' ? { status: 200 } : undefined
}

/** Slack checks the certificate with a form, which it does not always sign. */
export const slackSslCheck = onSigned(answerSslCheck)
export const slackSslCheckUnsigned = onUnsigned(
  (head) => isOfType(head, 'application/x-www-form-urlencoded') && head.headers['x-slack-signature'] === undefined,
  answerSslCheck,
)

/** MCP Events: the answer repeats the challenge of a signed request. */
export const mcpVerification = onSigned((_, { readFields }) => {
  const { type, challenge } = readFields()
  return type === 'verification' ? { json: { challenge } } : undefined
})

export const discordPing = onSigned((_, { readFields }) => {
  const { type, event } = readFields()
  // type 1 is the ping of an interaction, and also the type of every webhook event; the ping of a webhook has type 0
  if (type === 1 && event === undefined) return { json: { type: 1 } }
  return type === 0 ? { status: 204 } : undefined
})

export const zoomUrl = onSigned((_, { secrets, readFields }) => {
  const { event, payload } = readFields()
  const isObject = typeof payload === 'object' && payload !== null && !Array.isArray(payload)
  const token = isObject ? payload['plainToken'] : undefined
  const [secret] = secrets()
  if (event !== 'endpoint.url_validation' || typeof token !== 'string' || secret === undefined) return undefined
  return { json: { plainToken: token, encryptedToken: createHmac('sha256', secret).update(token).digest('hex') } }
})

export const twitchCallback = onSigned(({ headers }, { readFields }) =>
  headers['twitch-eventsub-message-type'] === 'webhook_callback_verification'
    ? { text: readFields()['challenge'] }
    : undefined,
)

export const frontHeader = onSigned(({ headers }) => ({ text: headers['x-front-challenge'] }))

export const intercomPing = onSigned((_, { readFields }) =>
  readFields()['topic'] === 'ping' ? { status: 200 } : undefined,
)

/** With an empty list of events, Xero checks that the secret is known, and Asana that the URL still answers. */
export const noEvents = onSigned((_, { readFields }) => {
  const { events } = readFields()
  return Array.isArray(events) && events.length === 0 ? { status: 200 } : undefined
})

export const googleSync = onSigned(({ headers }) =>
  headers['x-goog-resource-state'] === 'sync' ? { status: 200 } : undefined,
)

/** The subscription is confirmed by fetching SubscribeURL. The end of a subscription is only acknowledged. */
export const snsSubscription = onSigned(async (_, { fetch, readFields }) => {
  const { Type: type, SubscribeURL: url } = readFields()
  if (type === 'UnsubscribeConfirmation') return { status: 200 }
  if (type !== 'SubscriptionConfirmation' || typeof url !== 'string') return undefined
  const confirmed = await fetch(url, snsConfirmation)
  // SNS repeats the request after a 5xx
  return { status: confirmed.ok ? 200 : 503 }
})

export const mondayChallenge = onUnsigned(
  (head) => isOfType(head, 'application/json'),
  (_, { readFields }) => {
    const fields = readFields()
    return Object.keys(fields).join() === 'challenge' ? { json: { challenge: fields['challenge'] } } : undefined
  },
)

/** Graph sends a token in the URL and expects it back as text. */
export const graphToken = onUnsigned(
  (head) => readQuery(head).has('validationToken'),
  (request) => ({ text: readQuery(request).get('validationToken') }),
)

export const woocommercePing = onUnsigned(
  (head) => isOfType(head, 'application/x-www-form-urlencoded'),
  ({ rawBody }) => (/^webhook_id=\d{1,20}$/.test(Buffer.from(rawBody).toString()) ? { status: 200 } : undefined),
)

export const bitbucketPing = onUnsigned(
  ({ headers }) => headers['x-event-key'] === 'diagnostics:ping',
  (_, { readFields }) => (readFields()['test'] === true ? { status: 200 } : undefined),
)

export const asanaSecret = onUnsigned(
  ({ headers }) => headers['x-hook-secret'] !== undefined,
  ({ headers }, { armed }) => {
    const secret = headers['x-hook-secret'] ?? ''
    if (!armed || !/^[\w-]{16,256}$/.test(secret)) return undefined
    return { status: 200, headers: { 'x-hook-secret': secret }, handedSecret: secret }
  },
)

export const notionToken = onUnsigned(
  ({ headers }) => headers['x-notion-signature'] === undefined,
  (_, { armed, readFields }) => {
    const secret = readFields()['verification_token']
    if (!armed || typeof secret !== 'string' || !/^[\w-]{8,256}$/.test(secret)) return undefined
    return { status: 200, handedSecret: secret }
  },
)
