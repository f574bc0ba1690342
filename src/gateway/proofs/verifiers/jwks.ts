// Public keys for tokens: the key set of the issuer, or the one key in the settings of the mapping.
import { createPublicKey, type KeyObject } from 'node:crypto'
import { createLocalJWKSet, type CryptoKey, type JSONWebKeySet } from 'jose'
import { isJsonObject, type JsonObject, tryParseJson } from '../../../base/json.ts'
import type { PinRule } from '../../../model/proof.ts'
import type { VerifySettings } from '../../../core/model/verify.ts'
import { type ProofTools, toSettingProblem } from './proof.ts'
import type { JwtScheme } from '../../../model/scheme.ts'

const hour = 3_600_000
/** For an unknown key, a key set is fetched again if it is older than this: strangers must not cause a fetch with every request. */
const refetchAfterMs = 60_000

type FoundKey =
  | { readonly ok: true; readonly key: KeyObject | CryptoKey }
  | { readonly ok: false; readonly fault: 'sender' | 'gateway'; readonly reason: string }

type FindKey = (kid: unknown) => FoundKey | Promise<FoundKey>

/** Throws `config-invalid` if neither the scheme nor the mapping has a source of keys. */
export function createKeySet(scheme: JwtScheme, { settings, fetch }: Pick<ProofTools, 'settings' | 'fetch'>): FindKey {
  if (settings.publicKey !== undefined) return createSingleKey(settings.publicKey, scheme, settings)
  const url = settings.jwksUrl ?? scheme.jwksUrl
  if (url === undefined) {
    throw toSettingProblem(
      settings,
      'needs verify.publicKey (a JSON Web Key, or PEM) or verify.jwksUrl, to check the tokens.',
    )
  }
  const { hostname } = new URL(url)
  // keys come only from the host that the operator or the table names
  const rule: PinRule = { host: new RegExp(`^${hostname.replaceAll('.', String.raw`\.`)}$`), maxAgeMs: hour }

  return async (kid) => {
    if (typeof kid !== 'string') return senderFault('The token does not name its key.')
    const known = await fetch(url, rule)
    if (!known.ok) return gatewayFault(known.reason)
    const key = await findInSet(known.body, kid, scheme)
    if (key !== undefined) return { ok: true, key }
    const fresh = await fetch(url, { ...rule, maxAgeMs: refetchAfterMs })
    if (!fresh.ok) return gatewayFault(fresh.reason)
    const found = await findInSet(fresh.body, kid, scheme)
    return found === undefined
      ? senderFault('The key that the token names is not among the keys of the issuer.')
      : { ok: true, key: found }
  }
}

/** A fault of the gateway: the sender did not choose this URL. */
function gatewayFault(reason: string): FoundKey {
  return { ok: false, fault: 'gateway', reason }
}

function senderFault(reason: string): FoundKey {
  return { ok: false, fault: 'sender', reason }
}

function createSingleKey(text: string, scheme: JwtScheme, settings: VerifySettings): FindKey {
  const jwk = tryParseJson(text)
  const key = isJsonObject(jwk) ? readJwk(jwk, scheme) : readPem(text, scheme)
  if (key === undefined)
    throw toSettingProblem(settings, `needs verify.publicKey as a JSON Web Key or PEM for ${scheme.algorithm}.`)
  const named = isJsonObject(jwk) && typeof jwk['kid'] === 'string' ? jwk['kid'] : undefined
  return (kid) =>
    named === undefined || kid === named ? { ok: true, key } : senderFault('The token is signed with another key.')
}

/** The key of the set with this id, if it is for signatures with the algorithm of the scheme. */
async function findInSet(text: string, kid: string, { algorithm }: JwtScheme): Promise<CryptoKey | undefined> {
  try {
    // as: `createLocalJWKSet` throws if the value is not a key set
    const set = JSON.parse(text) as JSONWebKeySet
    return await createLocalJWKSet(set)({ alg: algorithm, kid })
  } catch {
    return undefined
  }
}

/** The key, if it is for signatures with the algorithm of the scheme. It is checked here, because jose imports keys only later. */
function readJwk(jwk: JsonObject, { algorithm }: JwtScheme): KeyObject | undefined {
  if (jwk['kty'] !== (algorithm === 'RS256' ? 'RSA' : 'EC')) return undefined
  if (jwk['alg'] !== undefined && jwk['alg'] !== algorithm) return undefined
  if (jwk['use'] !== undefined && jwk['use'] !== 'sig') return undefined
  try {
    return checkKey(createPublicKey({ key: jwk, format: 'jwk' }), algorithm)
  } catch {
    return undefined
  }
}

function readPem(text: string, { algorithm }: JwtScheme): KeyObject | undefined {
  try {
    return checkKey(createPublicKey(text), algorithm)
  } catch {
    return undefined
  }
}

function checkKey(key: KeyObject, algorithm: JwtScheme['algorithm']): KeyObject | undefined {
  const { asymmetricKeyType, asymmetricKeyDetails } = key
  const fits =
    algorithm === 'RS256'
      ? // RFC 7518 requires 2048 bits, and jose takes no shorter key
        asymmetricKeyType === 'rsa' && (asymmetricKeyDetails?.modulusLength ?? 0) >= 2048
      : asymmetricKeyDetails?.namedCurve === 'prime256v1'
  return fits ? key : undefined
}
