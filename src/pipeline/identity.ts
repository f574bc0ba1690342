// By what stored requests, handed-over secrets and rings find their mapping again: its id, or what its sender proves. Never a position.
import { hash, pbkdf2Sync } from 'node:crypto'
import type { Mapping } from '../model/mapping.ts'
import type { VerifySettings } from '../model/verify.ts'

export type Identity = {
  /** Stored with a request that proved its sender here: the id, or for each secret the scheme and a digest. */
  readonly proves: readonly string[]
  /** One of them, for the key of duplicates: of the oldest secret, so that it stays while the sender changes to a new one. */
  readonly signer: string
  /** A stored request opens the mapping with one of these. A mapping that gets an id still opens to what was stored before. */
  readonly openedBy: ReadonlySet<string>
  /** The name under which secrets of its sender are kept. */
  readonly handedAs: string
  /** The name of the ring of its kept requests. */
  readonly ring: string
}

type Named = Pick<Mapping, 'match' | 'verify'> & { readonly id: string; readonly isUnnamed?: boolean | undefined }

export function toIdentity(mapping: Named): Identity {
  const { id, match, verify, isUnnamed = false } = mapping
  const { secrets, ...open } = toParts(verify)
  const content = (what: unknown) => `content:${hash('sha256', JSON.stringify([what, open]), 'hex').slice(0, 24)}`
  const handedAs = content(match.path)
  const digests = secrets.length > 0 ? secrets.map((secret) => toDigest(open, secret)) : [handedAs]
  return {
    proves: isUnnamed ? digests : [id],
    signer: isUnnamed ? (digests.at(-1) ?? handedAs) : id,
    openedBy: new Set(isUnnamed ? digests : [id, ...digests]),
    handedAs: isUnnamed ? handedAs : id,
    ring: isUnnamed ? content(match) : id,
  }
}

type Open = { readonly scheme: string | undefined; readonly settings: object }

/** The settings that anybody may know, and the secrets. `also` is checked by itself; `verifyToken` is a secret of handshakes alone. */
function toParts(verify: VerifySettings | undefined): Open & { readonly secrets: readonly string[] } {
  if (verify === undefined) return { scheme: undefined, settings: {}, secrets: [] }
  const { scheme, secret, secrets, also: _also, verifyToken: _verifyToken, ...settings } = verify
  const inOrder = Object.fromEntries(Object.entries(settings).toSorted(([one], [other]) => (one < other ? -1 : 1)))
  return { scheme, settings: inOrder, secrets: secrets ?? (secret === undefined ? [] : [secret]) }
}

/** Slow enough that a copy of the store does not help to guess a secret. */
const rounds = 10_000
const digests = new Map<string, string>()

function toDigest(open: Open, secret: string): string {
  const salt = JSON.stringify(open)
  const value = JSON.stringify([salt, secret])
  const known = digests.get(value)
  if (known !== undefined) return known
  const digest = `${open.scheme}:${pbkdf2Sync(secret, salt, rounds, 12, 'sha256').toString('hex')}`
  digests.set(value, digest)
  return digest
}
