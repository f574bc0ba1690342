// Proofs that no kind of scheme describes: with a certificate that the sender publishes, or inside the body.
import { createHash, createHmac, verify, X509Certificate } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { PinRule, SenderCode, SenderContext, Verified } from '../../define.ts'
import { isSame } from './shared.ts'

export const refuse = (reason: string): Verified => ({ ok: false, fault: 'sender', reason })
export const unmatched = refuse(
  'No signature matches: the sender uses another secret, or the body was changed on the way.',
)

/** The signed fields of each type of message. Subject is signed only if it is present. */
const snsFields = new Map([
  ['Notification', ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type']],
  ['SubscriptionConfirmation', ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type']],
  ['UnsubscribeConfirmation', ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type']],
])

/** https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html */
export const snsProof = (certificate: PinRule): SenderCode => ({
  headers: ['x-amz-sns-message-type'],
  covers: { id: true, body: false },
  check: ({ topicArn }) =>
    topicArn === undefined
      ? 'needs verify.topicArn: the ARN of the topic, because the signature proves only that SNS sent it.'
      : undefined,
  async verify(_, context) {
    const { settings, read, findTimeFault } = context
    const fields = snsFields.get(read('Type'))
    if (fields === undefined) return refuse('The body is not an SNS message.')
    // each field is signed as two lines, its name and its value: with a line break, a part of one field could pass for another field
    if (fields.some((name) => name !== 'Message' && read(name).includes('\n')))
      return refuse('A field of the message has more than one line.')
    if (read('TopicArn') !== settings.topicArn) return refuse('The message belongs to another topic.')
    const timeFault = findTimeFault(read('Timestamp'), 'iso8601')
    if (timeFault !== undefined) return refuse(timeFault)
    const version = read('SignatureVersion')
    if (version !== '1' && version !== '2') return refuse('The signature has an unknown version.')
    const signed = fields
      .map((name) => [name, read(name)])
      .filter(([name, value]) => name !== 'Subject' || value !== '')
      .map(([name, value]) => `${name}\n${value}\n`)
      .join('')
    const hash = version === '1' ? 'sha1' : 'sha256'
    const id = read('MessageId')
    return checkSignature(context, {
      url: read('SigningCertURL'),
      certificate,
      hash,
      signed,
      signature: read('Signature'),
      id,
    })
  },
})

/**
 * The signed text contains only a checksum of the body, and anybody can make a body with the same checksum. So somebody who
 * captured a request can replace its body. Therefore each id is accepted once, and only for a limited time.
 * https://developer.paypal.com/api/rest/webhooks/rest/
 */
export const paypalProof = (certificate: PinRule): SenderCode => ({
  headers: ['paypal-transmission-sig'],
  covers: { id: true, body: false },
  check: ({ webhookId }) =>
    webhookId === undefined ? 'needs verify.webhookId: the id of the webhook, because it is signed.' : undefined,
  async verify({ headers, rawBody }, context) {
    const names = ['paypal-transmission-id', 'paypal-transmission-time', 'paypal-cert-url', 'paypal-transmission-sig']
    const [id = '', time = '', url = '', signature = ''] = names.map((name) => headers[name])
    const absent = names.find((name) => (headers[name] ?? '') === '')
    if (absent !== undefined) return refuse(`The header ${absent} is missing.`)
    if (headers['paypal-auth-algo'] !== 'SHA256withRSA') return refuse('paypal-auth-algo is not SHA256withRSA.')
    const timeFault = context.findTimeFault(time, 'iso8601')
    if (timeFault !== undefined) return refuse(timeFault)
    const signed = `${id}|${time}|${context.settings.webhookId}|${crc32(rawBody)}`
    return checkSignature(context, { url, certificate, hash: 'sha256', signed, signature, id })
  },
})

type Claim = {
  readonly url: string
  readonly certificate: PinRule
  readonly hash: 'sha1' | 'sha256'
  readonly signed: string
  readonly signature: string
  /** The delivery id, which is in the signed text. */
  readonly id: string
}

async function checkSignature({ fetch }: SenderContext, claim: Claim): Promise<Verified> {
  const fetched = await fetch(claim.url, claim.certificate)
  if (!fetched.ok) return fetched
  const key = readCertificateKey(fetched.body)
  if (key === undefined) return refuse('The certificate cannot be read.')
  const isValid = verify(claim.hash, Buffer.from(claim.signed), key, Buffer.from(claim.signature, 'base64'))
  return isValid ? { ok: true, id: claim.id } : unmatched
}

/** PayPal sends a chain, and signs with the first certificate. It is trusted because of the host that it came from. */
function readCertificateKey(pem: string) {
  try {
    const key = new X509Certificate(pem).publicKey
    return key.asymmetricKeyType === 'rsa' ? key : undefined
  } catch {
    return undefined
  }
}

export const checkSecret: NonNullable<SenderCode['check']> = ({ secret, secrets }) =>
  secret === undefined && secrets === undefined
    ? 'needs verify.secret: the secret that you share with the sender.'
    : undefined

/**
 * Timestamp and token are signed, but not the event: an attacker who sees one delivery can forge its event. So the token is the
 * delivery id and counts once. https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks
 */
export const mailgunProof: SenderCode = {
  headers: [],
  covers: { id: true, body: false },
  check: checkSecret,
  verify(_, { secrets, read, findTimeFault }) {
    const timestamp = read('signature', 'timestamp')
    const token = read('signature', 'token')
    const signature = read('signature', 'signature')
    if (timestamp === '' || token === '' || signature === '')
      return refuse('The body has no complete "signature" object.')
    // exactly ten digits: if one could move into the token, an old proof would get a new delivery id
    const timeFault = findTimeFault(timestamp.length === 10 ? timestamp : '', 's')
    if (timeFault !== undefined) return refuse(timeFault)
    const isValid = secrets.some((secret) => {
      const digest = createHmac('sha256', secret)
        .update(timestamp + token)
        .digest('hex')
      return isSame(signature.toLowerCase(), digest)
    })
    return isValid ? { ok: true, id: token } : unmatched
  },
}

/** https://docs.adyen.com/development-resources/webhooks/verify-hmac-signatures/ */
export const adyenProof: SenderCode = {
  headers: [],
  covers: { id: false, body: false },
  check(settings) {
    const { secret, secrets = [secret ?? ''], toleranceSeconds } = settings
    if (toleranceSeconds !== undefined)
      return 'does not sign a time, so verify.toleranceSeconds has no effect. Remove it.'
    return checkSecret(settings) ?? (secrets.every(isHex) ? undefined : 'needs a secret in hex.')
  },
  verify(_, { secrets, read }) {
    const count = Number(read('notificationItems', 'length'))
    if (!(count > 0)) return refuse('The body has no "notificationItems".')
    const isSigned = (index: number): boolean => {
      const readItem = (...path: string[]) => read('notificationItems', index, 'NotificationRequestItem', ...path)
      const signature = readItem('additionalData', 'hmacSignature')
      const text = [
        readItem('pspReference'),
        readItem('originalReference'),
        readItem('merchantAccountCode'),
        readItem('merchantReference'),
        readItem('amount', 'value'),
        readItem('amount', 'currency'),
        readItem('eventCode'),
        readItem('success'),
      ].join(':')
      return secrets.some((secret) =>
        isSame(signature, createHmac('sha256', Buffer.from(secret, 'hex')).update(text).digest('base64')),
      )
    }
    for (let index = 0; index < count; index += 1) if (!isSigned(index)) return unmatched
    return { ok: true }
  },
}

/**
 * The robot signs its time and not its message: a captured proof opens the path for an hour, for any message.
 * https://open.dingtalk.com/document/orgapp/receive-message
 */
export const dingtalkProof: SenderCode = {
  headers: ['sign'],
  covers: { id: false, body: false },
  check: checkSecret,
  verify({ headers }, { secrets, findTimeFault }) {
    const { timestamp: time = '', sign = '' } = headers
    const timeFault = findTimeFault(time, 'ms')
    if (timeFault !== undefined) return refuse(timeFault)
    const isValid = secrets.some((secret) =>
      isSame(sign, createHmac('sha256', secret).update(`${time}\n${secret}`).digest('base64')),
    )
    return isValid ? { ok: true } : unmatched
  },
}

/** https://cloudinary.com/documentation/notification_signatures: the account decides about SHA-1 or SHA-256. */
export const cloudinaryProof: SenderCode = {
  headers: ['x-cld-signature'],
  covers: { id: false, body: true },
  check: checkSecret,
  verify({ headers, rawBody }, { secrets, findTimeFault }) {
    const { 'x-cld-timestamp': time = '', 'x-cld-signature': signature = '' } = headers
    const timeFault = findTimeFault(time, 's')
    if (timeFault !== undefined) return refuse(timeFault)
    const isValid = ['sha1', 'sha256'].some((algorithm) =>
      secrets.some((secret) => {
        const digest = createHash(algorithm)
          .update(rawBody)
          .update(time + secret)
          .digest('hex')
        return isSame(signature.toLowerCase(), digest)
      }),
    )
    return isValid ? { ok: true } : unmatched
  },
}

const isHex = (text: string) => text.length % 2 === 0 && /^[\da-f]+$/i.test(text)
