// The schema of what `defineSender` declares. It is strict: a misspelt field of a scheme would weaken its proof.
import { types } from 'node:util'
import { z } from 'zod'
import { digestEncodings, hmacAlgorithms, secretEncodings, timestampUnits } from '../core/model/verify.ts'
import { plainName } from '../base/names.ts'
import { aFunction, nonBlank } from '../core/model/values.ts'

const headerNames = z.array(z.string().regex(/^[\w!#$%&'*+.^`|~-]+$/, 'must be the name of a header'))

/** What `verify` in own code is made of. */
export const CodeShape = z.looseObject({
  headers: headerNames,
  secretHeaders: headerNames.optional(),
  minSecretBytes: z.int().positive().optional(),
  verify: aFunction,
  sign: aFunction.optional(),
})

const lowerName = z.string().regex(/^[a-z\d!#$%&'*+.^_`|~-]+$/, 'must be the name of a header, in lower case')
// with these flags, a test begins where the last one ended
const pattern = z.custom<RegExp>(
  (value) => types.isRegExp(value) && !value.global && !value.sticky,
  'must be a regular expression without the flags g and y',
)
const path = z.array(z.union([z.string(), z.int().nonnegative()])).min(1)
const yes = z.literal(true).optional()

const Mark = z.strictObject({ header: lowerName, like: pattern.optional(), beside: lowerName.optional() })

const plainFacts = [
  z.strictObject({ in: z.literal('header'), name: lowerName }),
  z.strictObject({ in: z.literal('body'), path }),
  z.strictObject({ in: z.literal('key'), like: pattern }),
] as const
const PlainFact = z.discriminatedUnion('in', plainFacts, 'must be header, body or key')
const Fact = z.discriminatedUnion(
  'in',
  [...plainFacts, z.strictObject({ in: z.literal('all'), parts: z.array(PlainFact).min(1) })],
  'must be header, body, key or all',
)

const common = {
  id: plainName.optional(),
  variant: nonBlank.optional(),
  handshakes: z
    .array(
      z.strictObject({
        method: z.enum(['POST', 'GET', 'HEAD', 'OPTIONS']),
        signed: z.boolean(),
        isHandshakeHead: aFunction.optional(),
        signsWords: yes,
        answer: aFunction,
      }),
    )
    .optional(),
  acceptsEmpty: yes,
  secretHeaders: z.array(lowerName).optional(),
  minSecretBytes: z.int().positive().optional(),
  retries: z
    .discriminatedUnion(
      'time',
      [
        z.strictObject({ docs: nonBlank, time: z.enum(['anew', 'never', 'unsaid']) }),
        z.strictObject({ docs: nonBlank, time: z.enum(['limited', 'first']), seconds: z.int().positive() }),
      ],
      'must be anew, never, unsaid, limited or first',
    )
    .optional(),
  handsOver: yes,
  confidence: z.enum(['verified', 'medium']),
}

const header = lowerName
const unit = z.enum(timestampUnits)
const toleranceSeconds = z.int().positive()
const encoding = z.enum(digestEncodings)
const syntax = z.union([
  z.strictObject({ prefix: z.string(), isList: yes }),
  z.strictObject({ separator: z.enum([',', ';', ' ']), joint: z.enum(['=', ',']), field: nonBlank }),
])
const inHeader = z.strictObject({ in: z.literal('header'), name: lowerName, unit })
const timestamp = z.discriminatedUnion(
  'in',
  [
    inHeader,
    z.strictObject({ in: z.literal('field'), name: nonBlank, unit }),
    z.strictObject({ in: z.literal('body'), path: nonBlank, unit }),
  ],
  'must be header, field or body',
)

const SchemeShape = z.discriminatedUnion(
  'kind',
  [
    z
      .strictObject({
        ...common,
        kind: z.literal('hmac'),
        header,
        moreHeaders: pattern.optional(),
        algorithm: z.enum(hmacAlgorithms).optional(),
        encoding: encoding.optional(),
        syntax: syntax.optional(),
        template: nonBlank.optional(),
        idHeader: lowerName.optional(),
        timestamp: timestamp.optional(),
        toleranceSeconds: toleranceSeconds.optional(),
        secretEncoding: z.enum(secretEncodings).optional(),
        secretPrefix: z.string().optional(),
        alias: z.strictObject({ header, idHeader: lowerName, timestamp: lowerName }).optional(),
        timedTemplate: nonBlank.optional(),
        portVariants: yes,
        textIsId: yes,
      })
      .refine(
        (scheme) => (scheme.timestamp === undefined) === (scheme.toleranceSeconds === undefined),
        'must have both timestamp and toleranceSeconds, or neither of them',
      ),
    z.strictObject({ ...common, kind: z.literal('token'), header: header.optional() }),
    z.strictObject({ ...common, kind: z.literal('basic') }),
    z.strictObject({
      ...common,
      kind: z.enum(['ed25519', 'ecdsa']),
      header,
      encoding: z.enum(['hex', 'base64']),
      syntax: syntax.optional(),
      keyForm: z.enum(['raw-hex', 'raw-base64', 'spki-base64']),
      keyPrefix: z.string().optional(),
      template: nonBlank,
      idHeader: lowerName.optional(),
      timestamp: inHeader,
      toleranceSeconds,
      textIsId: yes,
    }),
    z.strictObject({
      ...common,
      kind: z.literal('jwt'),
      header,
      bearer: z.boolean(),
      algorithm: z.enum(['RS256', 'ES256', 'HS256']),
      issuers: z.array(nonBlank).optional(),
      jwksUrl: z.url().optional(),
      bodyHashClaim: nonBlank.optional(),
      bodyHashEncoding: encoding.optional(),
      subjectIsUrl: yes,
      maxAgeSeconds: z.int().positive().optional(),
      requires: z.array(z.enum(['exp', 'iat'])).optional(),
      forAccount: yes,
    }),
    z.strictObject({
      ...common,
      kind: z.literal('concat-hash'),
      header,
      versionHeader: lowerName,
      version: nonBlank,
      template: nonBlank,
    }),
    z.strictObject({ ...common, kind: z.literal('client-state'), list: nonBlank.optional(), field: nonBlank }),
    z.strictObject({
      ...common,
      kind: z.literal('code'),
      code: CodeShape.extend({
        covers: z.strictObject({ id: z.boolean(), body: z.boolean() }).optional(),
        check: aFunction.optional(),
      }),
      about: nonBlank.optional(),
      toleranceSeconds: toleranceSeconds.optional(),
      secretEncoding: z.enum(secretEncodings).optional(),
    }),
  ],
  'must be hmac, token, basic, ed25519, ecdsa, jwt, concat-hash, client-state or code',
)

export const SenderShape = z
  .strictObject({
    name: plainName,
    label: nonBlank,
    docs: nonBlank.optional(),
    marks: z.array(Mark).optional(),
    event: z.array(Fact).optional(),
    deliveryId: z.array(Fact).optional(),
    hasNumbersAsTexts: yes,
    jsonFields: z.array(nonBlank).optional(),
    from: path.optional(),
    subject: path.optional(),
    answers: z
      .strictObject({
        place: aFunction,
        commit: aFunction.optional(),
        commentText: aFunction.optional(),
        commentId: aFunction.optional(),
      })
      .optional(),
    scheme: SchemeShape.optional(),
    schemes: z.array(SchemeShape).min(1).optional(),
  })
  .refine(({ scheme, schemes }) => scheme === undefined || schemes === undefined, 'must not have scheme and schemes')
  .refine(
    ({ docs, scheme, schemes }) => (docs === undefined) === (scheme === undefined && schemes === undefined),
    'must have docs and a scheme, or neither of them',
  )
  .refine(({ schemes = [] }) => schemes.every(({ id }) => id !== undefined), 'must have an id in each of its schemes')
