// JSON Web Tokens. The scheme, and not the token, decides the algorithm.
import { createHash, createSecretKey, type KeyObject } from 'node:crypto'
import { compactVerify, type CryptoKey, decodeProtectedHeader } from 'jose'
import { isJsonObject, type JsonObject, type JsonValue, tryParseJson } from '../../../base/json.ts'
import type { VerifyRequest } from '../../../core/model/verifier.ts'
import {
  isDigest,
  toSettingProblem,
  mismatch,
  refuseMissingHeader,
  requireSetting,
  type Proof,
  type ProofTools,
  validProof,
  readHeader,
  refuseProof,
} from './proof.ts'
import { createKeySet } from './jwks.ts'
import type { JwtScheme } from '../../../model/scheme.ts'
import { toPublicUrl } from './url.ts'

/** How far the clocks of sender and gateway may differ. */
const leewaySeconds = 60

/** The largest age, in seconds, of a token with an issue time and no expiry time. */
const maxAgeWithoutExpirySeconds = 300

export function createJwtProof(scheme: JwtScheme, { settings, secrets, fetch, now }: ProofTools): Proof {
  const { audience = scheme.forAccount === true ? settings.publicUrl : undefined } = settings
  if (scheme.forAccount === true) {
    // any account can get valid tokens of this issuer for any audience: only the account distinguishes them
    requireSetting(settings, 'email', 'the service account that sends the pushes')
    if (audience === undefined) requireSetting(settings, 'audience', 'the audience that the token must name')
  }
  const live = scheme.algorithm === 'HS256' ? secrets().map((secret) => createSecretKey(secret, 'utf8')) : []
  const findKey = scheme.algorithm === 'HS256' ? undefined : createKeySet(scheme, { settings, fetch })
  if (scheme.requires?.includes('exp') === true && settings.toleranceSeconds !== undefined) {
    throw toSettingProblem(
      settings,
      'has tokens with an expiry time, so verify.toleranceSeconds has no effect. Remove it.',
    )
  }
  const { maxAgeSeconds } = scheme

  const readToken = (headers: VerifyRequest['headers']): string | undefined => {
    const value = readHeader(headers, scheme.header) ?? ''
    const token = scheme.bearer ? /^bearer +(\S+)$/i.exec(value)?.[1] : value
    return token !== undefined && /^[\w-]+\.[\w-]+\.[\w-]*$/.test(token) ? token : undefined
  }

  return {
    secretHeaders: [scheme.header],
    covers: { id: false, body: scheme.bodyHashClaim !== undefined },
    isClaimed: (headers) => readToken(headers) !== undefined,
    async verify(request, at = now()) {
      const token = readToken(request.headers)
      if (token === undefined) return refuseMissingHeader(`${scheme.header} with a token`)
      const header = readTokenHeader(token)
      if (header === undefined) return refuseProof('The token is not a valid JWT.')
      // the token must not choose its algorithm: `none`, or HS256 with the public key as the secret
      if (header.alg !== scheme.algorithm) return refuseProof(`The token is not signed with ${scheme.algorithm}.`)
      const found = findKey === undefined ? undefined : await findKey(header.kid)
      if (found?.ok === false) return found
      const payload = await verifyToken(token, found === undefined ? live : [found.key], scheme)
      if (payload === undefined) return mismatch
      const claims = readClaims(payload)
      if (claims === undefined) return refuseProof('The token is not a valid JWT.')
      const wrong = findClaimFault(claims, request, at)
      return wrong === undefined ? validProof : refuseProof(wrong)
    },
  }

  function findClaimFault(claims: JsonObject, request: VerifyRequest, at: number): string | undefined {
    const seconds = at / 1000
    const [exp, iat, nbf] = [claims['exp'], claims['iat'], claims['nbf']]
    for (const name of ['exp', 'iat', 'nbf'] as const) {
      const value = claims[name]
      if (value === undefined ? scheme.requires?.some((required) => required === name) : typeof value !== 'number') {
        return `The token has no ${name}.`
      }
    }
    if (exp === undefined && iat === undefined && scheme.bodyHashClaim === undefined) {
      // it would prove any body, as long as the secret lives, for anybody who sees it once
      return 'The token has neither exp nor iat.'
    }
    if (typeof exp === 'number' && seconds > exp + leewaySeconds) return 'The token has expired.'
    if (typeof nbf === 'number' && seconds < nbf - leewaySeconds) return 'The token is not valid yet.'
    if (typeof iat === 'number' && seconds < iat - leewaySeconds) return 'The token was issued in the future.'
    // without an expiry time in the token, this limit ends it
    const maxAge =
      settings.toleranceSeconds ?? maxAgeSeconds ?? (exp === undefined ? maxAgeWithoutExpirySeconds : undefined)
    if (maxAge !== undefined && typeof iat === 'number' && seconds - iat > maxAge)
      return `The token is ${Math.round(seconds - iat)} s old; ${maxAge} s are allowed (verify.toleranceSeconds).`
    const { issuers, bodyHashClaim, bodyHashEncoding = 'hex', forAccount } = scheme
    if (issuers !== undefined && !issuers.some((issuer) => issuer === claims['iss']))
      return 'The token has another issuer.'
    if (audience !== undefined && !isAudience(claims['aud'], audience)) return 'The token has another audience.'
    if (scheme.subjectIsUrl === true && settings.publicUrl !== undefined) {
      if (claims['sub'] !== toPublicUrl(settings.publicUrl, request.url)) return 'The token is for another URL.'
    }
    if (forAccount === true && (claims['email'] !== settings.email || claims['email_verified'] !== true)) {
      return 'The token belongs to another account, or its e-mail address is not verified.'
    }
    if (bodyHashClaim === undefined) return undefined
    const hash = trimPadding(createHash('sha256').update(request.rawBody).digest(bodyHashEncoding))
    const claimed = claims[bodyHashClaim]
    if (typeof claimed === 'string' && isDigest(trimPadding(claimed), hash, bodyHashEncoding)) return undefined
    return 'The token has the hash of another body.'
  }
}

function trimPadding(text: string): string {
  return text.replace(/={1,2}$/, '')
}

function isAudience(claimed: JsonValue | undefined, audience: string): boolean {
  return Array.isArray(claimed) ? claimed.includes(audience) : claimed === audience
}

function readTokenHeader(token: string): ReturnType<typeof decodeProtectedHeader> | undefined {
  try {
    return decodeProtectedHeader(token)
  } catch {
    return undefined
  }
}

/** The payload, if one of the keys signed the token with the algorithm of the scheme. */
async function verifyToken(
  token: string,
  keys: readonly (KeyObject | CryptoKey)[],
  { algorithm }: JwtScheme,
): Promise<Uint8Array | undefined> {
  for (const key of keys) {
    try {
      return (await compactVerify(token, key, { algorithms: [algorithm] })).payload
    } catch {
      // another secret may match
    }
  }
  return undefined
}

function readClaims(payload: Uint8Array): JsonObject | undefined {
  const value = tryParseJson(Buffer.from(payload).toString())
  // without a prototype, so that a missing claim is missing
  return isJsonObject(value) ? Object.assign(Object.create(null) as JsonObject, value) : undefined
}
