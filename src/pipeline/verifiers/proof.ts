// What every kind of proof is made of and makes.
import { isJsonObject, type JsonValue } from '../../base/json.ts'
import { openBody, readPayload } from '../../model/parse-body.ts'
import type { VerifyRequest, Coverage, PinnedFetch, RequestHead, Verified, Verifier } from '../../model/verifier.ts'
import { parsePath, readPath } from '../path.ts'
import { hash, timingSafeEqual } from 'node:crypto'
import type { DigestEncoding, TimestampUnit, VerifySettings } from '../../model/verify.ts'
import { Problem } from '../../model/problem.ts'

/** One kind of proof, with its keys. The verifier adds handshakes and names. */
export type Proof = Pick<Verifier, 'secretHeaders' | 'covers' | 'isClaimed' | 'verify'> &
  Partial<Pick<Verifier, 'explain'>>

export type ProofTools = {
  readonly settings: VerifySettings
  /** The live secrets, checked at load; a scheme that hands its secret over may have none yet. */
  readonly secrets: () => readonly string[]
  readonly fetch: PinnedFetch
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Of a proof that is a secret, or that leaves out what a delivery says. */
export const coversNothing: Coverage = { id: false, body: false }

export const proven: Verified = { ok: true }

/** Of a proof that covers a delivery id. */
export function provenWithId(id: string): Verified {
  return { ok: true, id }
}

export function refused(reason: string): Verified {
  return { ok: false, fault: 'sender', reason }
}

/** Of a request that carries a well-formed signature of somebody else, or of other bytes. */
export const mismatch = refused(
  'No signature matches: the sender uses another secret, or the body was changed on the way.',
)

// own properties only: an operator can name any header, even `constructor`
export function readHeader(headers: RequestHead['headers'], name: string): string | undefined {
  return Object.hasOwn(headers, name) ? headers[name] : undefined
}

export function missingHeader(header: string): Verified {
  return refused(`The header ${header} is missing.`)
}

/** A setting that the scheme cannot do without. Throws `config-invalid` naming it and what it is. */
export function requireSetting(
  settings: VerifySettings,
  key: Exclude<keyof VerifySettings, 'timestamp'>,
  meaning: string,
): string {
  const value = settings[key]
  if (value === undefined) throw toSettingProblem(settings, `needs verify.${key}: ${meaning}.`)
  return String(value)
}

export function toSettingProblem(settings: VerifySettings, text: string): Problem {
  return new Problem('config-invalid', `The scheme "${settings.scheme}" ${text}`)
}

const zoned = /(?:Z|[+-]\d{2}:?\d{2})$/i

/** Milliseconds since the epoch, or undefined for anything but the whole text being a time: `1614265330abc` is none. */
export function parseTimestamp(text: string, unit: TimestampUnit): number | undefined {
  if (unit === 's') return /^\d{1,11}$/.test(text) ? Number(text) * 1000 : undefined
  if (unit === 'ms') return /^\d{1,14}$/.test(text) ? Number(text) : undefined
  if (!/^\d{4}-\d{2}-\d{2}T[\d:.]{5,20}(?:Z|[+-]\d{2}:?\d{2})?$/i.test(text)) return undefined
  // a time without a zone is UTC, and not the zone of this machine
  const time = Date.parse(zoned.test(text) ? text : `${text}Z`)
  return Number.isNaN(time) ? undefined : time
}

/** Why a time is too far from now, or undefined. The limit itself is allowed. */
export function findClockFault(time: number, now: number, toleranceSeconds: number): string | undefined {
  const seconds = (now - time) / 1000
  if (Math.abs(seconds) <= toleranceSeconds) return undefined
  const side = seconds > 0 ? 'behind' : 'ahead of'
  return `The signed time is ${Math.abs(Math.round(seconds))} s ${side} the clock of the gateway; ${toleranceSeconds} s are allowed.`
}

/**
 * Whether a signature is this digest, both as text. As text, because decoders forgive: they skip what is no hex, and two
 * base64 texts can be the same bytes. Only the case of hex digits is free.
 */
export function isDigest(presented: string, digest: string, encoding: DigestEncoding): boolean {
  // the length of a digest is no secret
  if (presented.length !== digest.length) return false
  const bytes = Buffer.from(encoding === 'hex' ? presented.toLowerCase() : presented)
  return bytes.length === digest.length && timingSafeEqual(bytes, Buffer.from(digest))
}

/** Whether a text is one of the secrets. The time depends neither on the secrets and their lengths, nor on which of them it is. */
export function createSecretSet(secrets: readonly string[]): (presented: string) => boolean {
  const known = secrets.map(toDigest)
  return (presented) => {
    const digest = toDigest(presented)
    let found = false
    for (const one of known) if (timingSafeEqual(one, digest)) found = true
    return found
  }
}

function toDigest(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}

/** The JSON in a body, read as the payload is read. Undefined: it is not JSON, or too deep. */
export function readJsonBody(bytes: Uint8Array): JsonValue | undefined {
  try {
    const body = openBody({ bytes, contentType: undefined, isProved: true }, { forms: true })
    return body.syntax === 'json' ? readPayload(body) : undefined
  } catch {
    return undefined
  }
}

/** The text or number at a path of the body; '' where there is none. */
export function readBodyTimestamp(request: VerifyRequest, path: string): string {
  const body = readJsonBody(request.rawBody)
  return body === undefined ? '' : toText(readPath(body, parsePath(path)))
}

/** Own text and numbers of an object by name; '' for anything else. */
export function readField(value: JsonValue | undefined, name: string): string {
  return isJsonObject(value) && Object.hasOwn(value, name) ? toText(value[name]) : ''
}

function toText(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : ''
}
