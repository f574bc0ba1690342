// Types and functions that all kinds of proof share.
import { isJsonObject, type SentValue } from '../../../base/json.ts'
import { isNumber } from '../../../base/sent-number.ts'
import { openBody, readPayload } from '../../../core/model/body.ts'
import type { VerifyRequest, Coverage, RequestHead, Verified, Verifier } from '../../../core/model/verifier.ts'
import type { PinnedFetch } from '../../../model/proof.ts'
import { parsePath, readPath } from '../../../core/model/path.ts'
import { hash, timingSafeEqual } from 'node:crypto'
import type { DigestEncoding, TimestampUnit, VerifySettings } from '../../../core/model/verify.ts'
import { Problem } from '../../../core/model/problem.ts'

/** One kind of proof with its keys. The verifier adds names and handshakes. */
export type Proof = Pick<Verifier, 'secretHeaders' | 'covers' | 'isClaimed' | 'verify'> &
  Partial<Pick<Verifier, 'explain'>>

export type ProofTools = {
  readonly settings: VerifySettings
  /** The current secrets, checked when they are loaded. A scheme whose sender gives the secret may have none yet. */
  readonly secrets: () => readonly string[]
  readonly fetch: PinnedFetch
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** The coverage of a proof that is only a secret, or that does not cover the event. */
export const coversNothing: Coverage = { id: false, body: false }

export const validProof: Verified = { ok: true }

/** The result of a valid proof that covers this delivery id. */
export function acceptProof(id: string): Verified {
  return { ok: true, id }
}

export function refuseProof(reason: string): Verified {
  return { ok: false, fault: 'sender', reason }
}

/** The result for a well-formed signature under another key or of other bytes. */
export const mismatch = refuseProof(
  'No signature matches: the sender uses another secret, or the body was changed on the way.',
)

// own properties only: an operator can name any header, even `constructor`
export function readHeader(headers: RequestHead['headers'], name: string): string | undefined {
  return Object.hasOwn(headers, name) ? headers[name] : undefined
}

export function refuseMissingHeader(header: string): Verified {
  return refuseProof(`The header ${header} is missing.`)
}

/** The value of a setting that the scheme requires. Throws `config-invalid` with its name and its meaning. */
export function requireSetting(
  settings: VerifySettings,
  key: Exclude<keyof VerifySettings, 'timestamp'>,
  meaning: string,
): string {
  const value = settings[key]
  if (value === undefined) throw toSettingProblem(settings, `needs verify.${key}: ${meaning}.`)
  return String(value)
}

/** The setting `publicUrl`, which a template that signs the URL needs. Undefined if the template does not sign it. */
export function requirePublicUrl(settings: VerifySettings, template: string): string | undefined {
  if (!/\{(?:url|decodedUrl)\}/.test(template)) return undefined
  return requireSetting(settings, 'publicUrl', 'the URL that the sender calls, because the sender signs it')
}

export function toSettingProblem(settings: VerifySettings, text: string): Problem {
  return new Problem('config-invalid', `The scheme "${settings.scheme}" ${text}`)
}

const zoned = /(?:Z|[+-]\d{2}:?\d{2})$/i

/**
 * Why a signed time is not accepted: it is not in this unit, or too far from now. Undefined if it is accepted. Without a tolerance, any
 * time is.
 */
export function findTimeFault(
  text: string,
  { unit, now, toleranceSeconds }: { unit: TimestampUnit; now: number; toleranceSeconds: number | undefined },
): string | undefined {
  const time = readTimestamp(text, unit)
  if (time === undefined) return 'The signed time is not in the format of the scheme.'
  return toleranceSeconds === undefined ? undefined : findClockFault(time, now, toleranceSeconds)
}

/** The time of a text in milliseconds since the epoch. Undefined if the whole text is not a time, such as `1614265330abc`. */
function readTimestamp(text: string, unit: TimestampUnit): number | undefined {
  if (unit === 's') return /^\d{1,11}$/.test(text) ? Number(text) * 1000 : undefined
  if (unit === 'ms') return /^\d{1,14}$/.test(text) ? Number(text) : undefined
  if (!/^\d{4}-\d{2}-\d{2}T[\d:.]{5,20}(?:Z|[+-]\d{2}:?\d{2})?$/i.test(text)) return undefined
  // a time without a zone is UTC, and not the zone of this machine
  const time = Date.parse(zoned.test(text) ? text : `${text}Z`)
  return Number.isNaN(time) ? undefined : time
}

/** A repeated request is old, and never from the future: only clocks differ. So no sender, and no setting, has more. */
const maxAheadSeconds = 300

/** The reason why a time is too far from now; undefined if it is not. The limit itself is allowed. */
function findClockFault(time: number, now: number, toleranceSeconds: number): string | undefined {
  const seconds = (now - time) / 1000
  const aheadSeconds = Math.min(toleranceSeconds, maxAheadSeconds)
  if (seconds <= toleranceSeconds && -seconds <= aheadSeconds) return undefined
  if (seconds > 0) {
    return `The signed time is ${Math.round(seconds)} s behind the clock of the gateway; ${toleranceSeconds} s are allowed (verify.toleranceSeconds).`
  }
  const next =
    toleranceSeconds < maxAheadSeconds ? ' (verify.toleranceSeconds)' : ', whatever verify.toleranceSeconds is'
  return `The signed time is ${Math.round(-seconds)} s ahead of the clock of the gateway; ${aheadSeconds} s are allowed${next}. Check the clocks.`
}

/**
 * Whether a signature equals a digest, both as text. Decoded bytes are not compared: decoders skip invalid digits, and two base64
 * texts can have the same bytes. Only the case of hex digits is ignored.
 */
export function isDigest(presented: string, digest: string, encoding: DigestEncoding): boolean {
  // the length of a digest is public
  if (presented.length !== digest.length) return false
  const bytes = Buffer.from(encoding === 'hex' ? presented.toLowerCase() : presented)
  return bytes.length === digest.length && timingSafeEqual(bytes, Buffer.from(digest))
}

/** Whether a text is one of the secrets. The time depends neither on the secrets and their lengths, nor on which secret it is. */
export function createSecretSet(secrets: readonly string[]): (presented: string) => boolean {
  const known = secrets.map(toDigest)
  return (presented) => {
    const digest = toDigest(presented)
    let isFound = false
    for (const one of known) if (timingSafeEqual(one, digest)) isFound = true
    return isFound
  }
}

function toDigest(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}

/** The JSON of a body, read like a payload. Undefined if it is not JSON, or nested too deeply. */
export function readJsonBody(bytes: Uint8Array): SentValue | undefined {
  try {
    const body = openBody({ bytes, contentType: undefined, isProved: true }, { forms: true })
    return body.syntax === 'json' ? readPayload(body) : undefined
  } catch {
    return undefined
  }
}

/** The text or number at a path of the body; '' if there is none. */
export function readBodyTimestamp(request: VerifyRequest, path: string): string {
  const body = readJsonBody(request.rawBody)
  return body === undefined ? '' : toText(readPath(body, parsePath(path)))
}

/** The text or number in an own property of an object; '' for any other value. */
export function readField(value: SentValue | undefined, name: string): string {
  return isJsonObject(value) && Object.hasOwn(value, name) ? toText(value[name]) : ''
}

export function toText(value: SentValue | undefined): string {
  return typeof value === 'string' ? value : isNumber(value) ? String(value) : ''
}
