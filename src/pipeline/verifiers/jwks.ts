// Public keys for tokens: from the issuer's key set, or the one key that the mapping holds.
import { createPublicKey, type KeyObject } from 'node:crypto'
import { isJsonObject, type JsonValue, toJson } from '../../base/json.ts'
import type { PinnedFetch, PinRule } from '../../model/verifier.ts'
import type { VerifySettings } from '../../model/verify.ts'
import { fault } from './proof.ts'
import type { JwtScheme } from './scheme.ts'

const hour = 3_600_000
/** A key set is fetched again for an unknown key, but not at every stranger's whim. */
const soonestMs = 60_000

export type FoundKey =
  | { readonly ok: true; readonly key: KeyObject | undefined }
  | { readonly ok: false; readonly fault: 'sender' | 'gateway'; readonly reason: string }

export type FindKey = (kid: JsonValue | undefined) => FoundKey | Promise<FoundKey>

/** Throws `config-invalid` where neither the scheme nor the mapping says where keys come from. */
export function createKeySet(scheme: JwtScheme, settings: VerifySettings, fetch: PinnedFetch): FindKey {
  if (settings.publicKey !== undefined) return createSingleKey(settings.publicKey, scheme, settings)
  const url = settings.jwksUrl ?? scheme.jwksUrl
  if (url === undefined) {
    throw fault(settings, 'needs verify.publicKey (a JSON Web Key, or PEM) or verify.jwksUrl: who signs the tokens.')
  }
  const { hostname } = new URL(url)
  // exactly the host that the operator or the table names
  const rule: PinRule = { host: new RegExp(`^${hostname.replaceAll('.', String.raw`\.`)}$`), maxAgeMs: hour }
  return async (kid) => {
    if (typeof kid !== 'string') return refusal('The token names no key.')
    const known = await fetch(url, rule)
    if (!known.ok) return toOurs(known.reason)
    const key = findIn(known.body, kid, scheme)
    if (key !== undefined) return { ok: true, key }
    const fresh = await fetch(url, { ...rule, maxAgeMs: soonestMs })
    if (!fresh.ok) return toOurs(fresh.reason)
    const found = findIn(fresh.body, kid, scheme)
    return found === undefined
      ? refusal('The token names a key that its issuer does not have.')
      : { ok: true, key: found }
  }
}

/** The sender did not choose this URL. */
function toOurs(reason: string): FoundKey {
  return { ok: false, fault: 'gateway', reason }
}

function refusal(reason: string): FoundKey {
  return { ok: false, fault: 'sender', reason }
}

function createSingleKey(text: string, scheme: JwtScheme, settings: VerifySettings): FindKey {
  const jwk = toJson(text)
  const key = isJsonObject(jwk) ? toKey(jwk, scheme) : tryPem(text, scheme)
  if (key === undefined)
    throw fault(settings, `needs verify.publicKey as a JSON Web Key or PEM for ${scheme.algorithm}.`)
  const named = isJsonObject(jwk) && typeof jwk['kid'] === 'string' ? jwk['kid'] : undefined
  return (kid) =>
    named === undefined || kid === named ? { ok: true, key } : refusal('The token is signed with another key.')
}

function findIn(text: string, kid: string, scheme: JwtScheme): KeyObject | undefined {
  const set = toJson(text)
  const keys = isJsonObject(set) && Array.isArray(set['keys']) ? set['keys'] : []
  const jwk = keys.find((entry) => isJsonObject(entry) && entry['kid'] === kid)
  return isJsonObject(jwk) ? toKey(jwk, scheme) : undefined
}

/** The key, if it is one of the scheme's algorithm and meant for signatures. */
function toKey(jwk: Record<string, JsonValue>, { algorithm }: JwtScheme): KeyObject | undefined {
  if (jwk['kty'] !== (algorithm === 'RS256' ? 'RSA' : 'EC')) return undefined
  if (jwk['alg'] !== undefined && jwk['alg'] !== algorithm) return undefined
  if (jwk['use'] !== undefined && jwk['use'] !== 'sig') return undefined
  try {
    return toFitting(createPublicKey({ key: jwk, format: 'jwk' }), algorithm)
  } catch {
    return undefined
  }
}

function tryPem(text: string, { algorithm }: JwtScheme): KeyObject | undefined {
  try {
    return toFitting(createPublicKey(text), algorithm)
  } catch {
    return undefined
  }
}

function toFitting(key: KeyObject, algorithm: JwtScheme['algorithm']): KeyObject | undefined {
  const fits =
    algorithm === 'RS256' ? key.asymmetricKeyType === 'rsa' : key.asymmetricKeyDetails?.namedCurve === 'prime256v1'
  return fits ? key : undefined
}
