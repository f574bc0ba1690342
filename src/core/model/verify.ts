// `verify` of a mapping: the scheme of its sender, and its keys.
import { z } from 'zod'
import { nonBlank } from './values.ts'

/** RFC 9110 token: the characters of a header name. */
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

/** `createVerifier` knows the schemes, and checks which of these keys a scheme needs. */
export const VerifySettings = z.strictObject({
  scheme: nonBlank.describe(
    'How the sender signs: the name of a scheme, generic-hmac, token, basic, url-secret, or the file name of your own verifier.',
  ),
  secret: nonBlank
    .optional()
    .describe(
      'The secret that you and the sender share, of at least 16 bytes. For basic and other schemes with user and password: user:password.',
    ),
  secrets: z
    .array(nonBlank)
    .min(1)
    .max(2)
    .optional()
    .describe(
      'Two valid secrets, in place of `secret`, while you change one for the other. The first one answers handshakes.',
    ),
  publicKey: nonBlank.optional().describe('Public key of the sender, in the format in which the sender shows it.'),
  publicUrl: z
    .string()
    .regex(/^https?:\/\/[^\s/?#]+/i, 'must be an http or https URL')
    .optional()
    .describe(
      'The URL of the hook as the sender knows it. Set it if the scheme signs the URL. Without a path, the path of the request is added.',
    ),
  toleranceSeconds: z
    .number()
    .positive()
    .max(604_800)
    .optional()
    .describe(
      'Seconds by which the signed time may be earlier than the gateway’s clock; it may be later by as much, but by 300 at most. Without it, the value of the scheme, which covers the repetitions of its sender. Increase it for senders that deliver late.',
    ),
  header: headerName
    .optional()
    .describe('Name of the header with the token or the signature, for schemes where you choose it.'),
  webhookId: nonBlank.optional().describe('PayPal: the id of the webhook, which is part of the signed text.'),
  topicArn: nonBlank
    .optional()
    .describe('SNS: the ARN of your topic. Any AWS account can make valid signatures, but not for your topic.'),
  audience: nonBlank.optional().describe('JWT: the audience that the token must name.'),
  email: nonBlank
    .optional()
    .describe('JWT of Google: the e-mail address of the service account that sends the pushes.'),
  jwksUrl: z
    .string()
    .regex(/^https:\/\/[^\s/?#@:[\]]*[a-z][^\s/?#@:[\]]*(\/|$)/i, 'must be an https URL with a host name')
    .optional()
    .describe('JWT: the URL of the public keys. Set it if the scheme has no URL, or another one.'),
  verifyToken: nonBlank
    .optional()
    .describe('Meta and Strava: the token that you set at the sender, and that it repeats in its handshake.'),
  get: z
    .literal(true)
    .optional()
    .describe(
      'url-secret: true: GET requests are deliveries too, with the payload null. Templates read {{query.<name>}}.',
    ),
  also: z.literal('token').optional().describe('"token": the request must also carry the hook token.'),
  algorithm: z.enum(hmacAlgorithms).optional().describe('generic-hmac: the hash algorithm. Default: sha256.'),
  encoding: z.enum(digestEncodings).optional().describe('generic-hmac: the encoding of the signature. Default: hex.'),
  secretEncoding: z
    .enum(secretEncodings)
    .optional()
    .describe('generic-hmac: the encoding of the secret. Default: utf8.'),
  prefix: z
    .string()
    .optional()
    .describe('generic-hmac: the text before the signature in the header, such as "sha256=".'),
  template: nonBlank
    .optional()
    .describe(
      'generic-hmac: the signed text, made of {body} {timestamp} {method} {url} {header:name}. Default: {body}.',
    ),
  decompressed: z
    .literal(true)
    .optional()
    .describe(
      'generic-hmac: true: a gzip body of at most 1 MiB may also be signed before it is compressed. Default: only the bytes that are sent may be signed.',
    ),
  timestamp: z
    .strictObject({
      header: headerName.describe('Name of the header with the time of signing.'),
      unit: z
        .enum(timestampUnits)
        .default('s')
        .describe('Format of the time. s or ms: seconds or milliseconds since 1970. iso8601: text.'),
    })
    .optional()
    .describe('generic-hmac and Grafana: where the signed time is.'),
})
export type VerifySettings = z.infer<typeof VerifySettings>
/** The settings as written in the configuration, before defaults. */
export type VerifyInput = z.input<typeof VerifySettings>
