// What every kind of proof is made of and makes.
import { Problem } from '../../model/problem.ts'
import type { Coverage, PinnedFetch, RequestHead, Verified, Verifier } from '../../model/verifier.ts'
import type { VerifySettings } from '../../model/verify.ts'

/** One kind of proof, with its keys. Handshakes and names stand around it. */
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
export function provenAs(id: string): Verified {
  return { ok: true, id }
}

export function refused(reason: string): Verified {
  return { ok: false, fault: 'sender', reason }
}

/** Of a request that carries a well-formed signature of somebody else, or of other bytes. */
export const mismatch = refused(
  'No signature matches: the sender signs with another secret, or the body changed on its way.',
)

// own properties only: an operator can name any header, `constructor` too
export function readHeader(headers: RequestHead['headers'], name: string): string | undefined {
  return Object.hasOwn(headers, name) ? headers[name] : undefined
}

export function missing(header: string): Verified {
  return refused(`The header ${header} is missing.`)
}

/** A setting that the scheme cannot do without. Throws `config-invalid` naming it and what it is. */
export function need(
  settings: VerifySettings,
  key: Exclude<keyof VerifySettings, 'timestamp'>,
  meaning: string,
): string {
  const value = settings[key]
  if (value === undefined) throw fault(settings, `needs verify.${key}: ${meaning}.`)
  return String(value)
}

export function fault(settings: VerifySettings, text: string): Problem {
  return new Problem('config-invalid', `The scheme "${settings.scheme}" ${text}`)
}
