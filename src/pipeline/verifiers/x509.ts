// Verifies signatures with a certificate that the sender publishes: Amazon SNS and PayPal.
import { type KeyObject, verify, X509Certificate } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { PinnedFetch, PinRule, Verified, VerifyRequest } from '../../model/verifier.ts'
import {
  readField,
  readJsonBody,
  findTimeFault,
  mismatch,
  refuseMissingHeader,
  requireSetting,
  type Proof,
  type ProofTools,
  acceptProof,
  readHeader,
  refuseProof,
} from './proof.ts'
import { markUseful } from './pinned-fetch.ts'
import type { X509Scheme } from '../../model/scheme.ts'

export function createX509Proof(scheme: X509Scheme, tools: ProofTools): Proof {
  return scheme.signs === 'checksum' ? createPaypalProof(scheme, tools) : createSnsProof(scheme, tools)
}

/** The signed fields of each type of message. Subject is signed only if it is present. */
const snsFields = new Map([
  ['Notification', ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type']],
  ['SubscriptionConfirmation', ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type']],
  ['UnsubscribeConfirmation', ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type']],
])

/** https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html */
function createSnsProof(scheme: X509Scheme, { settings, fetch, now }: ProofTools): Proof {
  const topic = requireSetting(
    settings,
    'topicArn',
    'the ARN of the topic, because the signature proves only that SNS sent it',
  )
  const toleranceSeconds = settings.toleranceSeconds ?? scheme.toleranceSeconds
  return {
    secretHeaders: [],
    covers: { id: true, body: false },
    isClaimed: (headers) => Object.hasOwn(headers, scheme.header),
    async verify(request, at = now()) {
      const body = readJsonBody(request.rawBody)
      const fields = snsFields.get(readField(body, 'Type'))
      if (fields === undefined) return refuseProof('The body is not an SNS message.')
      // each field is signed as two lines, its name and its value: with a line break, a part of one field could pass for another field
      if (fields.some((name) => name !== 'Message' && readField(body, name).includes('\n')))
        return refuseProof('A field of the message has more than one line.')
      if (readField(body, 'TopicArn') !== topic) return refuseProof('The message belongs to another topic.')
      const timeFault = findTimeFault(readField(body, 'Timestamp'), { unit: 'iso8601', now: at, toleranceSeconds })
      if (timeFault !== undefined) return refuseProof(timeFault)
      const version = readField(body, 'SignatureVersion')
      if (version !== '1' && version !== '2') return refuseProof('The signature has an unknown version.')
      const signed = fields
        .map((name) => [name, readField(body, name)])
        .filter(([name, value]) => name !== 'Subject' || value !== '')
        .map(([name, value]) => `${name}\n${value}\n`)
        .join('')
      return checkSignature(fetch, {
        certificateUrl: readField(body, 'SigningCertURL'),
        rule: scheme.certificate,
        hash: version === '1' ? 'sha1' : 'sha256',
        signed,
        signature: readField(body, 'Signature'),
        id: readField(body, 'MessageId'),
      })
    },
  }
}

/**
 * The signed text contains only a checksum of the body, and anybody can make a body with the same checksum. So somebody who
 * captured a request can replace its body. Therefore each id is accepted once, and only for a limited time.
 * https://developer.paypal.com/api/rest/webhooks/rest/
 */
function createPaypalProof(scheme: X509Scheme, { settings, fetch, now }: ProofTools): Proof {
  const webhookId = requireSetting(settings, 'webhookId', 'the id of the webhook, because it is signed')
  const names = ['paypal-transmission-id', 'paypal-transmission-time', 'paypal-cert-url', scheme.header] as const
  const toleranceSeconds = settings.toleranceSeconds ?? scheme.toleranceSeconds
  return {
    secretHeaders: [],
    covers: { id: true, body: false },
    isClaimed: (headers) => Object.hasOwn(headers, scheme.header),
    async verify(request, at = now()) {
      const [id = '', time = '', certificateUrl = '', signature = ''] = names.map((name) => read(request, name))
      const absent = names.find((name) => read(request, name) === '')
      if (absent !== undefined) return refuseMissingHeader(absent)
      const algorithm = read(request, 'paypal-auth-algo')
      if (algorithm !== 'SHA256withRSA') return refuseProof('paypal-auth-algo is not SHA256withRSA.')
      const timeFault = findTimeFault(time, { unit: 'iso8601', now: at, toleranceSeconds })
      if (timeFault !== undefined) return refuseProof(timeFault)
      const signed = `${id}|${time}|${webhookId}|${crc32(request.rawBody)}`
      return checkSignature(fetch, { certificateUrl, rule: scheme.certificate, hash: 'sha256', signed, signature, id })
    },
  }
}

function read(request: VerifyRequest, name: string): string {
  return readHeader(request.headers, name) ?? ''
}

type Claim = {
  certificateUrl: string
  rule: PinRule
  hash: 'sha1' | 'sha256'
  signed: string
  signature: string
  /** The delivery id, which is in the signed text. */
  id: string
}

async function checkSignature(fetch: PinnedFetch, claim: Claim): Promise<Verified> {
  const fetched = await fetch(claim.certificateUrl, claim.rule)
  if (!fetched.ok) return fetched
  const key = readCertificateKey(fetched.body)
  if (key === undefined) return refuseProof('The certificate cannot be read.')
  const isValid = verify(claim.hash, Buffer.from(claim.signed), key, Buffer.from(claim.signature, 'base64'))
  if (!isValid) return mismatch
  markUseful(fetched)
  return acceptProof(claim.id)
}

/** PayPal sends a chain, and signs with the first certificate. It is trusted because of the host that it came from. */
function readCertificateKey(pem: string): KeyObject | undefined {
  try {
    const key = new X509Certificate(pem).publicKey
    return key.asymmetricKeyType === 'rsa' ? key : undefined
  } catch {
    return undefined
  }
}
