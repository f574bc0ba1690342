// The tokens that `hookloom token new` makes: hashed in the store, and so shared by all its gateways. Each gateway reads them once a second.
import { randomBytes } from 'node:crypto'
import type { Log } from '../../base/log.ts'
import { Problem } from '../../core/model/problem.ts'
import { createTokenSet, type Token, type TokenSet, toTokenDigest, toTokenId } from '../generation/tokens.ts'
import type { Clock, Store } from '../../store/store.ts'
import { type Access, createAccess } from './access.ts'
import { createSharedCursors, startPolling } from './shared.ts'

/** A stored row of the list. `digest`: SHA-256 of the token in hex. Times are milliseconds since the epoch. */
type StoredToken = {
  readonly name: string
  readonly id: string
  readonly digest: string
  readonly may: readonly string[]
  readonly createdAt: number
  readonly expiresAt?: number | undefined
}

export type StoredTokens = {
  /** The tokens as they were read last. */
  set(): TokenSet
  list(): Promise<readonly StoredToken[]>
  /** Returns the token, which nobody can read again. Throws `conflict` if the name is taken, or if the store has the maximum of tokens. */
  add(token: Pick<StoredToken, 'name' | 'may' | 'expiresAt'>): Promise<string>
  /** Throws `not-found`. */
  revoke(name: string): Promise<void>
  stop(): Promise<void>
}

const maxTokens = 1_000

type StoredTokenParts = {
  readonly store: Pick<Store, 'cursor' | 'appendAll'>
  readonly clock: Clock
  readonly log: Log
}

export type StoredAccess = Access & { readonly tokens: StoredTokens }

/** Reads the tokens of the store, then creates the access. */
export async function openAccess(parts: StoredTokenParts): Promise<StoredAccess> {
  const tokens = await createStoredTokens(parts)
  return { ...createAccess({ clock: parts.clock, stored: tokens.set }), tokens }
}

async function createStoredTokens({ store, clock, log }: StoredTokenParts): Promise<StoredTokens> {
  let rows: readonly StoredToken[] = []
  let set = createTokenSet([])
  const cursors = createSharedCursors<readonly StoredToken[]>({
    store,
    toName: () => 'tokens',
    // as: only this file writes the cursor
    parse: (text = '[]') => JSON.parse(text) as StoredToken[],
  })
  const read = () => cursors.read('')
  const update = (change: (now: readonly StoredToken[]) => readonly StoredToken[]) => cursors.update('', change)

  const polling = startPolling(async () => void (await read()), log)
  await read().catch(() =>
    log.warn({}, 'The tokens of the store cannot be read yet. Until they are, none of them is valid.'),
  )

  return {
    set() {
      const newest = cursors.known('') ?? rows
      if (newest !== rows) set = createTokenSet(newest.map(toToken))
      rows = newest
      return set
    },
    list: read,
    async add({ name, may, expiresAt }) {
      const token = `hookloom_${randomBytes(32).toString('base64url')}`
      const digest = toTokenDigest(token).toString('hex')
      const row = { name, id: toTokenId(token), digest, may, createdAt: clock(), expiresAt }
      await update((now) => {
        if (now.some((each) => each.name === name)) {
          throw new Problem('conflict', `The token "${name}" exists already. Revoke it first, or choose another name.`)
        }
        if (now.length >= maxTokens)
          throw new Problem('conflict', `The store has ${maxTokens} tokens. Revoke some first.`)
        return [...now, row]
      })
      return token
    },
    async revoke(name) {
      await update((now) => {
        const rest = now.filter((each) => each.name !== name)
        if (rest.length < now.length) return rest
        throw new Problem('not-found', 'The store has no such token. "hookloom token list" lists them.')
      })
    },
    stop: polling.stop,
  }
}

function toToken({ name, id, digest, may, expiresAt }: StoredToken): Token {
  return { name: `token ${name}`, id, digest: Buffer.from(digest, 'hex'), may, expiresAt }
}
