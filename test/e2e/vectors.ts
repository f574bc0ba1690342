// Signatures as senders publish them, each with the settings that its mapping would have. They lie beside the corpus.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import type { VerifyInput } from '../../src/model/verify.ts'

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
  certs: z.unknown().optional(),
  jwks: z.unknown().optional(),
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

/** Undefined: there is no such file. */
export function readVectors(): { vectors: Vector[]; handshakes: PublishedHandshake[] } | undefined {
  const corpus = process.env['HOOKLOOM_CORPUS']
  const file = corpus === undefined ? undefined : join(corpus, '..', 'reference', 'vectors.json')
  if (file === undefined || !existsSync(file)) return undefined
  const content: unknown = JSON.parse(readFileSync(file, 'utf8'))
  return z.object({ vectors: z.array(Vector), handshakes: z.array(Handshake) }).parse(content)
}

/** Names by which the vectors tell apart what is one scheme here. */
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
  if (vector.secret !== undefined) verify.secret = vector.secret
  if (vector.publicKey !== undefined) verify.publicKey = vector.publicKey
  if (vector.url !== undefined) verify.publicUrl = vector.url.replace(/\?.*$/s, '')
  if (vector.timestampHeader !== undefined) verify.timestamp = { header: vector.timestampHeader }
  // the vectors are after the sender's own library, which is stricter than the default
  if (verify.scheme === 'paddle') verify.toleranceSeconds = 5
  return verify
}
