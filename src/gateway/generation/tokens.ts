// The tokens of both ports as digests, and their rights.
import { createHash, hash, timingSafeEqual } from 'node:crypto'
import type { TokensConfig } from '../../model/config/tokens.ts'

export type Token = {
  /** The name for people: the path of its key in the configuration, or the name of a token of the store. */
  readonly name: string
  /** The id that jobs and kept requests store. It is a part of another digest, so it neither is nor reveals the token. */
  readonly id: string
  /** The SHA-256 of the token. */
  readonly digest: Buffer
  /** `hook`: one of the hook tokens, which may send to every hook. */
  readonly may: 'hook' | readonly string[]
  /** Milliseconds since the epoch. */
  readonly expiresAt?: number | undefined
  /** The ids of the tokens whose runs it also sees. */
  readonly succeeds?: readonly string[]
}

export type TokenSet = {
  readonly all: readonly Token[]
  find(digest: Buffer): Token | undefined
  findById(id: string): Token | undefined
}

export function toTokenDigest(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}

export function toTokenId(token: string): string {
  return createHash('sha256').update(`hookloom token\0${token}`).digest('base64url').slice(0, 16)
}

/**
 * The time of a search reveals at most which digests begin with the same four bytes as the digest of the given text, and nobody can find a text
 * for a given digest. The first of two equal tokens counts.
 */
export function createTokenSet(tokens: readonly Token[]): TokenSet {
  const byPrefix = new Map<number, Token[]>()
  for (const token of tokens) {
    const prefix = token.digest.readUInt32BE()
    byPrefix.set(prefix, [...(byPrefix.get(prefix) ?? []), token])
  }
  const byId = new Map(tokens.toReversed().map((token) => [token.id, token]))
  return {
    all: tokens,
    find: (digest) => byPrefix.get(digest.readUInt32BE())?.find((token) => timingSafeEqual(token.digest, digest)),
    findById: (id) => byId.get(id),
  }
}

/**
 * The tokens of a configuration. The first of two hook tokens is the successor: it also sees the runs that the second one started. The second may
 * have leaked, so it sees no runs of the first.
 */
export function listConfigTokens(hookTokens: readonly string[], scoped: TokensConfig): Token[] {
  const ids = hookTokens.map(toTokenId)
  return [
    ...hookTokens.map((token, index): Token => {
      const name = hookTokens.length === 1 ? 'hooks.token' : `hooks.tokens[${index}]`
      return { name, id: toTokenId(token), digest: toTokenDigest(token), may: 'hook', succeeds: ids.slice(index + 1) }
    }),
    ...Object.entries(scoped).map(([name, { token, may, expiresAt }]): Token => {
      const end = expiresAt === undefined ? undefined : Date.parse(expiresAt)
      return { name: `tokens.${name}`, id: toTokenId(token), digest: toTokenDigest(token), may, expiresAt: end }
    }),
  ]
}
