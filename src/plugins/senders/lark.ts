// Feishu and Lark: their two proofs, and the encryption of their events.
// https://open.larkoffice.com/document/ukTMukTMukTM/uYDNxYjL2QTM24iN0EjN/event-subscription-configure-/encrypt-key-encryption-configuration-case
import { createCipheriv, createDecipheriv, createHash, hash, randomBytes } from 'node:crypto'
import type { Handshake, HandshakeTools, SenderCode, Verified } from '../../define.ts'
import { checkSecret, unmatched, refuse } from './proofs.ts'
import { isSame } from './shared.ts'

const ivBytes = 16

/** The text of an encrypted event. Undefined if it was encrypted with another key, or is no such text. */
export function decryptLark(encrypted: string, encryptKey: string): string | undefined {
  const bytes = Buffer.from(encrypted, 'base64')
  try {
    const key = createHash('sha256').update(encryptKey).digest()
    const decipher = createDecipheriv('aes-256-cbc', key, bytes.subarray(0, ivBytes))
    const text = Buffer.concat([decipher.update(bytes.subarray(ivBytes)), decipher.final()])
    return new TextDecoder('utf-8', { fatal: true }).decode(text)
  } catch {
    return undefined
  }
}

function encryptLark(text: string, encryptKey: string): string {
  const iv = randomBytes(ivBytes)
  const cipher = createCipheriv('aes-256-cbc', createHash('sha256').update(encryptKey).digest(), iv)
  return Buffer.concat([iv, cipher.update(text), cipher.final()]).toString('base64')
}

type Fields = Readonly<Record<string, unknown>>

function toFields(value: unknown): Fields {
  // own properties only: `constructor` is no field
  return typeof value === 'object' && value !== null ? Object.assign(Object.create(null), value) : {}
}

function parseFields(text: string | undefined): Fields | undefined {
  try {
    return text === undefined ? undefined : toFields(JSON.parse(text))
  } catch {
    return undefined
  }
}

/** The event of a request whose Encrypt Key is one of these secrets, and its text. */
function openEvent(encrypted: unknown, secrets: readonly string[]) {
  if (typeof encrypted !== 'string') return undefined
  for (const secret of secrets) {
    const text = decryptLark(encrypted, secret)
    const event = parseFields(text)
    if (text !== undefined && event !== undefined) return { text, event }
  }
  return undefined
}

const toText = (value: unknown): string => (typeof value === 'string' ? value : '')

/** Events of version 2.0 have their token and their id in `header`. */
const readToken = (event: Fields): string => toText(toFields(event['header'])['token'] ?? event['token'])
const readId = (event: Fields): string => toText(toFields(event['header'])['event_id'] ?? event['uuid'])

/**
 * SHA-256 of time, nonce, Encrypt Key and body. It is no HMAC, so somebody who captured a request can append bytes to its body; they begin
 * with the byte 0x80, which no JSON text has there, and only what is JSON and decrypts is accepted.
 */
export const larkProof: SenderCode = {
  headers: ['x-lark-signature'],
  covers: { id: true, body: true },
  check: checkSecret,
  verify({ headers, rawBody }, { secrets, settings, read, findTimeFault }): Verified {
    const names = ['x-lark-request-timestamp', 'x-lark-request-nonce', 'x-lark-signature']
    const [time = '', nonce = '', signature = ''] = names.map((name) => headers[name])
    const absent = names.find((name) => (headers[name] ?? '') === '')
    if (absent !== undefined) return refuse(`The header ${absent} is missing.`)
    // exactly ten digits: time and nonce are signed without a separator, so a digit could move from one to the other
    const timeFault = findTimeFault(time.length === 10 ? time : '', 's')
    if (timeFault !== undefined) return refuse(timeFault)
    const isSigned = secrets.some((secret) =>
      isSame(signature.toLowerCase(), hash('sha256', Buffer.concat([Buffer.from(time + nonce + secret), rawBody]))),
    )
    if (!isSigned) return unmatched
    const opened = openEvent(read('encrypt'), secrets)
    if (opened === undefined) return refuse('The body has no "encrypt" that this Encrypt Key decrypts.')
    const { text, event } = opened
    const { verifyToken } = settings
    if (verifyToken !== undefined && !isSame(verifyToken, readToken(event)))
      return refuse('The event has another Verification Token than verify.verifyToken.')
    const id = readId(event)
    const body = Buffer.from(text)
    return id === '' ? { ok: true, body } : { ok: true, id, body }
  },
  seal(json, { secrets: [key = ''] }) {
    const given = parseFields(json) ?? {}
    // a recorded request may be encrypted already
    return typeof given['encrypt'] === 'string' ? given : { encrypt: encryptLark(json, key) }
  },
  sign({ rawBody }, { secrets: [key = ''], now }) {
    const time = String(Math.floor(now / 1_000))
    const nonce = randomBytes(8).toString('hex')
    const signature = hash('sha256', Buffer.concat([Buffer.from(time + nonce + key), rawBody]))
    return { 'x-lark-request-timestamp': time, 'x-lark-request-nonce': nonce, 'x-lark-signature': signature }
  },
}

/** The Verification Token in an event that is not encrypted. */
export const larkTokenProof: SenderCode = {
  headers: [],
  covers: { id: false, body: false },
  check(settings) {
    if (settings.toleranceSeconds !== undefined)
      return 'does not sign a time, so verify.toleranceSeconds has no effect. Remove it.'
    return checkSecret(settings)
  },
  verify(_, { secrets, read }) {
    if (read('encrypt') !== '')
      return refuse('The event is encrypted: set verify.scheme to "lark", and verify.secret to the Encrypt Key.')
    const token = read('header', 'token') || read('token')
    return secrets.some((secret) => isSame(secret, token)) ? { ok: true } : refuse('The token of the event is wrong.')
  },
}

/** `{"type":"url_verification","challenge":C,"token":T}` → `{"challenge":C}`. */
function answerChallenge(event: Fields, isKnown: (token: string) => boolean): ReturnType<Handshake['answer']> {
  if (event['type'] !== 'url_verification') return undefined
  return isKnown(readToken(event)) ? { json: { challenge: event['challenge'] } } : { status: 401 }
}

const isJson: Handshake['isHandshakeHead'] = ({ headers }) =>
  (headers['content-type'] ?? '').toLowerCase().startsWith('application/json')

const onPost = (answer: (tools: HandshakeTools) => ReturnType<Handshake['answer']>): Handshake => ({
  method: 'POST',
  signed: false,
  isHandshakeHead: isJson,
  answer: (_, tools) => answer(tools),
})

/** The check of a URL is not signed, but only Lark can have encrypted it. */
export const larkUrl = onPost(({ settings: { verifyToken }, secrets, readFields }) => {
  const opened = openEvent(readFields()['encrypt'], secrets())
  return opened && answerChallenge(opened.event, (token) => verifyToken === undefined || isSame(verifyToken, token))
})

export const larkTokenUrl = onPost(({ secrets, readFields }) =>
  answerChallenge(readFields(), (token) => secrets().some((secret) => isSame(secret, token))),
)
