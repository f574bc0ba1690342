// The names by which stored requests, secrets from handshakes and kept requests find their mapping again: its id, or else hashes of its conditions
// and its proof, but never its position, which an edit moves.
import { hash, pbkdf2Sync } from 'node:crypto'
import type { Mapping } from '../model/mapping.ts'
import type { VerifySettings } from '../model/verify.ts'

export type Identity = {
  /**
   * The names that are stored with a request that proved its sender to this mapping: the id, or for each secret the scheme and a digest. Without an id
   * and without secrets: a hash of the path and of the settings of the proof.
   */
  readonly proves: readonly string[]
  /**
   * The one of `proves` that is part of the key of duplicates: that of the oldest secret, so that the key stays the same while the sender
   * changes to a new secret.
   */
  readonly signer: string
  /** Whether a stored request with this proof opens the mapping. A mapping that got an id later also opens for the requests stored before. */
  isOpenedBy(proof: string): boolean
  /** The name under which secrets from handshakes of its sender are stored. */
  readonly secretsName: string
  /** The name of the ring of its kept requests. */
  readonly ring: string
}

type IdentityInput = Pick<Mapping, 'match' | 'verify'> & {
  readonly id: string
  readonly isUnnamed?: boolean | undefined
}

/** The digests are computed when they are first needed: each takes 10 ms, and a save must be live sooner. */
export function toIdentity(mapping: IdentityInput): Identity {
  const { id, match, verify, isUnnamed = false } = mapping
  const { secrets, ...publicParts } = readParts(verify)
  const toContentName = (what: unknown) =>
    `content:${hash('sha256', JSON.stringify([what, publicParts]), 'hex').slice(0, 24)}`
  const contentName = toContentName(match.path)
  let names: readonly string[] | undefined
  const readDigests = () =>
    (names ??= secrets.length > 0 ? secrets.map((secret) => toDigest(publicParts, secret)) : [contentName])
  return {
    get proves() {
      return isUnnamed ? readDigests() : [id]
    },
    get signer() {
      return isUnnamed ? (readDigests().at(-1) ?? contentName) : id
    },
    isOpenedBy(proof) {
      if (!isUnnamed && proof === id) return true
      const mayBeDigest = proof.startsWith(secrets.length > 0 ? `${publicParts.scheme}:` : 'content:')
      return mayBeDigest && readDigests().includes(proof)
    },
    secretsName: isUnnamed ? contentName : id,
    ring: isUnnamed ? toContentName(match) : id,
  }
}

type PublicParts = { readonly scheme: string | undefined; readonly settings: object }

/** The public settings, and the secrets. `also` is checked separately; `verifyToken` is only a secret of handshakes. */
function readParts(verify: VerifySettings | undefined): PublicParts & { readonly secrets: readonly string[] } {
  if (verify === undefined) return { scheme: undefined, settings: {}, secrets: [] }
  const { scheme, secret, secrets, also: _also, verifyToken: _verifyToken, ...settings } = verify
  const inOrder = Object.fromEntries(Object.entries(settings).toSorted(([one], [other]) => (one < other ? -1 : 1)))
  return { scheme, settings: inOrder, secrets: secrets ?? (secret === undefined ? [] : [secret]) }
}

/** The rounds make it slow to guess a weak secret from a copy of the store. */
const rounds = 10_000
const digests = new Map<string, string>()

function toDigest(publicParts: PublicParts, secret: string): string {
  const salt = JSON.stringify(publicParts)
  const value = JSON.stringify([salt, secret])
  const known = digests.get(value)
  if (known !== undefined) return known
  const digest = `${publicParts.scheme}:${pbkdf2Sync(secret, salt, rounds, 12, 'sha256').toString('hex')}`
  digests.set(value, digest)
  return digest
}
