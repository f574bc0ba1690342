// `verify` of a mapping: by which scheme its sender proves itself, and with which keys.
import { z } from 'zod'
import { filled } from './values.ts'

/** RFC 9110 token: what a header name is made of. */
const headerName = z
  .string()
  .regex(/^[\w!#$%&'*+.^`|~-]+$/, 'must be the name of a header')
  .transform((name) => name.toLowerCase())

export const timestampUnits = ['s', 'ms', 'iso8601'] as const
export type TimestampUnit = (typeof timestampUnits)[number]
export const hmacAlgorithms = ['sha1', 'sha256', 'sha384', 'sha512'] as const
export type HmacAlgorithm = (typeof hmacAlgorithms)[number]
export const digestEncodings = ['hex', 'base64', 'base64url'] as const
export type DigestEncoding = (typeof digestEncodings)[number]
export const secretEncodings = ['utf8', 'base64', 'hex'] as const
export type SecretEncoding = (typeof secretEncodings)[number]

/** Which of these keys a scheme needs is checked by `createVerifier`, which knows the schemes. */
export const VerifySettings = z.strictObject({
  scheme: filled.describe(
    'How the sender signs: the name of a scheme, generic-hmac, or the name of a verifier of your own.',
  ),
  secret: filled.optional().describe('The secret shared with the sender. Of a basic scheme: user:password.'),
  secrets: z
    .array(filled)
    .min(1)
    .max(2)
    .optional()
    .describe('Two live secrets while one replaces the other. The first one answers handshakes.'),
  publicKey: filled.optional().describe('Public key of the sender, in the form in which the sender shows it.'),
  publicUrl: z
    .string()
    .regex(/^https?:\/\/[^\s/?#]+/i, 'must be an http or https URL')
    .optional()
    .describe('The URL as the sender knows it, where the URL is signed. Without a path, that of the request is added.'),
  toleranceSeconds: z
    .number()
    .positive()
    .max(86_400)
    .optional()
    .describe('How far the signed time may be from the clock, before or after. Default: that of the scheme.'),
  header: headerName.optional().describe('The header with the token or signature, where the operator names it.'),
  webhookId: filled.optional().describe('PayPal: the id of the webhook, which is signed.'),
  topicArn: filled
    .optional()
    .describe('SNS: the topic. Any AWS account has valid signatures, only one has this topic.'),
  audience: filled.optional().describe('JWT: the audience that the token must be made for.'),
  email: filled.optional().describe('JWT of Google: the service account that must have signed in.'),
  jwksUrl: z
    .string()
    .regex(/^https:\/\/[^\s/?#@:[\]]*[a-z][^\s/?#@:[\]]*(\/|$)/i, 'must be an https URL with a host name')
    .optional()
    .describe('JWT: where the public keys are, if they are not where the scheme has them.'),
  verifyToken: filled.optional().describe('Meta, Strava: the token that the sender repeats in its handshake.'),
  also: z.literal('token').optional().describe('"token": the request must carry the hook token as well.'),
  algorithm: z.enum(hmacAlgorithms).optional().describe('generic-hmac: the hash. Default: sha256.'),
  encoding: z.enum(digestEncodings).optional().describe('generic-hmac: how the signature is written. Default: hex.'),
  secretEncoding: z
    .enum(secretEncodings)
    .optional()
    .describe('generic-hmac: how the secret is written. Default: utf8.'),
  prefix: z.string().optional().describe('generic-hmac: what stands before the signature, such as "sha256=".'),
  template: filled
    .optional()
    .describe('generic-hmac: what is signed, of {body} {timestamp} {method} {url} {header:name}. Default: {body}.'),
  timestamp: z
    .strictObject({
      header: headerName.describe('The header with the time of signing.'),
      unit: z.enum(timestampUnits).default('s').describe('Seconds or milliseconds since the epoch, or ISO 8601.'),
    })
    .optional()
    .describe('generic-hmac, Grafana: the signed time.'),
})
export type VerifySettings = z.infer<typeof VerifySettings>
/** The settings as their author writes them, before defaults. */
export type VerifyInput = z.input<typeof VerifySettings>
