// Signs requests like a sender, so that the verifier of its scheme accepts them.
import { createHash, createHmac } from 'node:crypto'
import { z } from 'zod'
import { isJsonObject, type SentValue } from '../../../base/json.ts'
import { stringify, tryParseSentJson } from '../../../base/sent-json.ts'
import { Problem } from '../../../core/model/problem.ts'
import type { VerifyRequest } from '../../../core/model/verifier.ts'
import type { TimestampUnit, VerifySettings } from '../../../core/model/verify.ts'
import { toCodeScheme } from './defined.ts'
import { applyHeaderSettings, findUnlistedScheme } from './generic.ts'
import { parseSecretKey, readSecrets } from './keys.ts'
import { toSettingProblem, requirePublicUrl, requireSetting, readHeader } from './proof.ts'
import type { CodeScheme, ConcatHashScheme, HmacScheme, JwtScheme, Scheme } from '../../../model/scheme.ts'
import type { KnownSchemes } from '../senders.ts'
import { compileSignedText, type SignedParts, collectSignedPieces } from './signed.ts'
import { toFormText } from './form.ts'
import { toPublicUrl } from './url.ts'

const Headers = z.record(z.string(), z.string())

type SignInput = {
  readonly body: Uint8Array
  /** Milliseconds since the epoch. */
  readonly now: number
  readonly method: string
  /** Path and query. */
  readonly url: string
  /** Lower-case names. The signed text may have some of them, such as an id. */
  readonly headers?: Readonly<Record<string, string>>
}

/**
 * The headers of a proof, with lower-case names, made with the first secret. Throws `config-invalid` if a setting is missing or in the wrong form.
 * Throws `usage-invalid` if the proof cannot be made here: only the sender has the key, the proof is in the body, the request lacks a signed part, or
 * a scheme in code has no `sign`. Throws `verifier-failed` if a scheme in code does not load, or if its `sign` fails.
 */
export function signRequest(settings: VerifySettings, given: SignInput, known: KnownSchemes): Record<string, string> {
  const scheme = findScheme(settings, known)
  const headers = { ...given.headers }
  const request: VerifyRequest = { method: given.method, url: given.url, headers, rawBody: given.body }
  switch (scheme?.kind) {
    case 'hmac':
      return signHmac(applyHeaderSettings(scheme, settings), settings, { request, now: given.now })
    case 'token': {
      const header =
        settings.header ?? scheme.header ?? requireSetting(settings, 'header', 'the header with the secret')
      const secret = readFirstSecret(settings)
      return { [header]: header === 'authorization' ? `Bearer ${secret}` : secret }
    }
    case 'basic':
      return {
        [settings.header ?? 'authorization']: `Basic ${Buffer.from(readFirstSecret(settings)).toString('base64')}`,
      }
    case 'concat-hash':
      return signConcatHash(scheme, settings, request)
    case 'code':
      // the author of a module in hooks/verifiers can add sign(); the proof of a sender may be in the body
      if (scheme.code.sign === undefined && scheme.label !== undefined) break
      return signByCode(scheme, settings, { request, now: given.now })
    case 'jwt':
      if (scheme.algorithm === 'HS256') return signToken(scheme, settings, given)
      break
  }
  throw new Problem(
    'usage-invalid',
    `Requests of the scheme "${settings.scheme}" cannot be signed here: only the sender has the key, or the proof is in the body.`,
  )
}

/**
 * The payload as the sender would send it: with the time of signing, if the scheme signs a time in the payload; encrypted, if the sender encrypts; otherwise
 * the same payload. Throws as `signRequest`.
 */
export function stampPayload(
  settings: VerifySettings,
  payload: SentValue,
  now: number,
  known: KnownSchemes,
): SentValue {
  const scheme = findScheme(settings, known)
  if (scheme?.kind === 'code' && scheme.code.seal !== undefined) return sealByCode(scheme, settings, { payload, now })
  const timestamp = scheme?.kind === 'hmac' ? scheme.timestamp : undefined
  if (timestamp?.in !== 'body' || !isJsonObject(payload)) return payload
  const time = toTimeText(now, timestamp.unit)
  return { ...payload, [timestamp.path]: timestamp.unit === 'iso8601' ? time : Number(time) }
}

/** Throws `verifier-failed` if the scheme is in code that does not load. */
function findScheme(settings: VerifySettings, { senders, verifiers = [] }: KnownSchemes): Scheme | undefined {
  const listed = findUnlistedScheme(settings) ?? senders.findScheme(settings.scheme)
  if (listed !== undefined) return listed
  const own = verifiers.find(({ scheme }) => scheme === settings.scheme)
  if (own?.kind === 'broken') throw new Problem('verifier-failed', own.problem.detail)
  return own && toCodeScheme(own)
}

function readFirstSecret(settings: VerifySettings): string {
  const [first] = readSecrets(settings)
  if (first === undefined) throw toSettingProblem(settings, 'needs verify.secret to sign with.')
  return first
}

function signByCode(
  { id: scheme, code, describeThrown = () => 'an exception' }: CodeScheme,
  settings: VerifySettings,
  { request, now }: { request: VerifyRequest; now: number },
): Record<string, string> {
  if (code.sign === undefined) {
    throw new Problem(
      'usage-invalid',
      `The verifier "${scheme}" has no sign(). Add one to send signed requests from here.`,
    )
  }
  let headers: unknown
  try {
    headers = code.sign(request, { secrets: readSecrets(settings, true), settings, now })
  } catch (thrown) {
    throw new Problem('verifier-failed', `sign() of the verifier "${scheme}" threw ${describeThrown(thrown)}.`)
  }
  const parsed = Headers.safeParse(headers)
  if (parsed.success) return lowerCaseNames(parsed.data)
  throw new Problem('verifier-failed', `sign() of the verifier "${scheme}" must return headers: { "x-name": "value" }.`)
}

function sealByCode(
  { id: scheme, code, describeThrown = () => 'an exception' }: CodeScheme,
  settings: VerifySettings,
  { payload, now }: { payload: SentValue; now: number },
): SentValue {
  try {
    const sealed = code.seal?.(stringify(payload), { secrets: readSecrets(settings, true), settings, now })
    return tryParseSentJson(JSON.stringify(sealed)) ?? payload
  } catch (thrown) {
    throw new Problem('verifier-failed', `seal() of the verifier "${scheme}" threw ${describeThrown(thrown)}.`)
  }
}

function lowerCaseNames(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

function signHmac(
  scheme: HmacScheme,
  settings: VerifySettings,
  { request, now }: { request: VerifyRequest; now: number },
): Record<string, string> {
  const { algorithm = 'sha256', encoding = 'hex', syntax, timestamp, template = '{body}', idHeader } = scheme
  const time = timestamp === undefined ? '' : toTimeText(now, timestamp.unit)
  const id = (idHeader === undefined ? undefined : readHeader(request.headers, idHeader)) ?? `msg_${now}`
  const proof = {
    ...(idHeader === undefined ? {} : { [idHeader]: id }),
    ...(timestamp?.in === 'header' ? { [timestamp.name]: time } : {}),
  }
  const pieces = buildSignedPieces(template, settings, {
    request: { ...request, headers: { ...request.headers, ...proof } },
    timestamp: time,
    id,
  })
  const key = parseSecretKey(readFirstSecret(settings), settings, {
    encoding: scheme.secretEncoding,
    prefix: scheme.secretPrefix,
  })
  const hmac = createHmac(algorithm, key)
  for (const piece of pieces) hmac.update(piece)
  const signature = hmac.digest(encoding)
  if (syntax === undefined) return { ...proof, [scheme.header]: signature }
  if ('prefix' in syntax) return { ...proof, [scheme.header]: syntax.prefix + signature }
  const entries = timestamp?.in === 'field' ? [[timestamp.name, time]] : []
  const list = [...entries, [syntax.field, signature]].map((entry) => entry.join(syntax.joint)).join(syntax.separator)
  return { ...proof, [scheme.header]: list }
}

function signConcatHash(
  scheme: ConcatHashScheme,
  settings: VerifySettings,
  request: VerifyRequest,
): Record<string, string> {
  const hash = createHash('sha256').update(readFirstSecret(settings))
  for (const piece of buildSignedPieces(scheme.template, settings, { request, timestamp: '', id: '' }))
    hash.update(piece)
  return { [scheme.header]: hash.digest('hex'), [scheme.versionHeader]: scheme.version }
}

function signToken(scheme: JwtScheme, settings: VerifySettings, { body, now, url }: SignInput): Record<string, string> {
  const iat = Math.floor(now / 1000)
  const claims = {
    iat,
    exp: iat + 300,
    ...(scheme.issuers === undefined ? {} : { iss: scheme.issuers[0] }),
    ...(settings.audience === undefined ? {} : { aud: settings.audience }),
    ...(scheme.subjectIsUrl === true && settings.publicUrl !== undefined
      ? { sub: toPublicUrl(settings.publicUrl, url) }
      : {}),
    ...(scheme.bodyHashClaim === undefined
      ? {}
      : {
          [scheme.bodyHashClaim]: createHash('sha256')
            .update(body)
            .digest(scheme.bodyHashEncoding ?? 'hex'),
        }),
  }
  const signed = [{ alg: 'HS256', typ: 'JWT' }, claims].map(toTokenPart).join('.')
  const signature = createHmac('sha256', readFirstSecret(settings)).update(signed).digest('base64url')
  return { [scheme.header]: `${scheme.bearer ? 'Bearer ' : ''}${signed}.${signature}` }
}

function toTokenPart(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url')
}

function buildSignedPieces(
  template: string,
  settings: VerifySettings,
  values: Omit<SignedParts, 'url' | 'form'>,
): readonly (string | Uint8Array)[] {
  const { parts, unknown } = compileSignedText(template)
  if (unknown !== undefined) throw toSettingProblem(settings, `has an unknown placeholder in its template: ${unknown}.`)
  const url = toPublicUrl(requirePublicUrl(settings, template), values.request.url)
  const form = template.includes('{form}') ? toFormText(values.request, url) : undefined
  const pieces = collectSignedPieces(parts, { ...values, url, form })
  if (pieces !== undefined) return pieces
  throw new Problem(
    'usage-invalid',
    `The request does not have a header or a form that the scheme "${settings.scheme}" signs.`,
  )
}

function toTimeText(now: number, unit: TimestampUnit): string {
  if (unit === 'iso8601') return new Date(now).toISOString()
  return String(unit === 's' ? Math.floor(now / 1000) : now)
}
