// Signatures that senders published, each with the settings for its mapping. They are read from a file next to the folder of the corpus.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { type VerifyInput, VerifySettings } from '../../src/core/model/verify.ts'
import { findSecretFault } from '../../src/gateway/proofs/verifiers/secret-length.ts'
import type { Transport } from '../../src/gateway/proofs/verifiers/pinned-fetch.ts'
import { builtInSenders } from '../../src/gateway/built-in.ts'

const Vector = z.object({
  name: z.string(),
  scheme: z.string(),
  secret: z.string().optional(),
  publicKey: z.string().optional(),
  url: z.string().optional(),
  timestampHeader: z.string().optional(),
  headers: z.record(z.string(), z.string()),
  body: z.string(),
  method: z.string(),
  /** Seconds since the epoch. */
  now: z.number().optional(),
  valid: z.boolean(),
  /** Certificates in PEM form, by their URL. */
  certs: z.record(z.string(), z.string()).optional(),
  jwks: z.object({ keys: z.array(z.unknown()) }).optional(),
})
export type Vector = z.infer<typeof Vector>

const Handshake = z.object({
  name: z.string(),
  scheme: z.string(),
  method: z.string(),
  query: z.string().default(''),
  headers: z.record(z.string(), z.string()).default({}),
  body: z.string().default(''),
  needsSignature: z.boolean().default(false),
  expect: z.object({
    status: z.array(z.number()),
    body: z.string().optional(),
    header: z.record(z.string(), z.string()).default({}),
  }),
})
export type PublishedHandshake = z.infer<typeof Handshake>

export const missingVectors = 'HOOKLOOM_CORPUS names no folder with ../reference/vectors.json'

/** Their times are refused by the page of the sender, and are those of repetitions that the sender makes: it would never get them through. */
const repetitions: ReadonlySet<string> = new Set(['linear/stale', 'linear/future', 'revolut/stale'])

/** Undefined if there is no such file. */
export function readVectors(): { vectors: Vector[]; handshakes: PublishedHandshake[] } | undefined {
  const corpus = process.env['HOOKLOOM_CORPUS']
  const file = corpus === undefined ? undefined : join(corpus, '..', 'reference', 'vectors.json')
  if (file === undefined || !existsSync(file)) return undefined
  const content: unknown = JSON.parse(readFileSync(file, 'utf8'))
  const { vectors, handshakes } = z.object({ vectors: z.array(Vector), handshakes: z.array(Handshake) }).parse(content)
  return { vectors: vectors.filter(({ name }) => !repetitions.has(name)), handshakes }
}

/** Names of vectors that belong to one scheme of the gateway. */
const sameScheme: Record<string, string> = {
  'asana-new': 'asana',
  'github-octokit': 'github',
  'grafana-ts': 'grafana',
  'slack-events': 'slack',
  'twilio-json': 'twilio',
}

export function toSchemeId(name: string): string {
  return sameScheme[name] ?? name
}

export function toVerify(vector: Vector): VerifyInput {
  const verify: VerifyInput = { scheme: toSchemeId(vector.scheme) }
  const isPublic = vector.certs !== undefined || vector.jwks !== undefined
  if (vector.secret !== undefined && !isPublic) verify.secret = vector.secret
  if (vector.publicKey !== undefined) verify.publicKey = vector.publicKey
  if (vector.url !== undefined) verify.publicUrl = vector.url.replace(/\?.*$/s, '')
  if (vector.timestampHeader !== undefined) verify.timestamp = { header: vector.timestampHeader }
  // these vectors expect shorter time windows than the default
  if (verify.scheme === 'paddle') verify.toleranceSeconds = 5
  if (verify.scheme === 'zoom') verify.toleranceSeconds = 300
  if (verify.scheme === 'aws-sns') verify.topicArn = 'arn:aws:sns:us-west-2:123456789012:MyTopic'
  if (verify.scheme === 'plaid') verify.jwksUrl = plaidKeys
  if (verify.scheme === 'google-pubsub') {
    verify.audience = 'https://example.com/hooks/gmail'
    verify.email = 'gae-gcp@appspot.gserviceaccount.com'
  }
  return verify
}

/** Whether a gateway can have the mapping of a vector and get its request: a POST, with a secret that a configuration accepts. */
export function isForGateway(vector: Vector): boolean {
  const verify = VerifySettings.parse(toVerify(vector))
  return (
    vector.method === 'POST' &&
    (verify.secret === undefined || findSecretFault(verify.secret, verify, { senders: builtInSenders }) === undefined)
  )
}

const plaidKeys = 'https://keys.example/plaid'

/** A transport that serves the certificates and keys of these vectors, and answers every confirmation of a subscription. */
export function createTransport(vectors: readonly Vector[]): Transport {
  const certificates = Object.assign({}, ...vectors.map(({ certs }) => certs))
  const listKeys = (scheme: string) =>
    JSON.stringify(vectors.find((vector) => vector.scheme === scheme && vector.jwks)?.jwks)
  return async ({ href, hostname, searchParams }) => {
    if (searchParams.get('Action') === 'ConfirmSubscription') return { status: 200, body: '' }
    const pem = Object.hasOwn(certificates, href) ? String(certificates[href]) : undefined
    if (pem !== undefined) return { status: 200, body: pem }
    if (href === plaidKeys) return { status: 200, body: listKeys('plaid') }
    return hostname === 'www.googleapis.com'
      ? { status: 200, body: listKeys('google-pubsub') }
      : { status: 404, body: '' }
  }
}
