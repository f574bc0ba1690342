// The tokens that `hookloom token new` makes: hashed in the store, and so shared by all its gateways. Each gateway reads them once a second.
import { randomBytes } from 'node:crypto'
import type { Log } from '../model/log.ts'
import { Problem } from '../model/problem.ts'
import { createTokenSet, type TokenSet, toTokenDigest, toTokenId } from '../pipeline/tokens.ts'
import type { Clock, Store } from '../store/store.ts'
import { type Access, createAccess } from './access.ts'
import { startPolling } from './shared.ts'

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
  set(): TokenSet
  list(): Promise<readonly StoredToken[]>
  /** Returns the token, which nobody can read again. Throws `conflict` if the name is taken. */
  add(token: Pick<StoredToken, 'name' | 'may' | 'expiresAt'>): Promise<string>
  /** Throws `not-found`. */
  revoke(name: string): Promise<void>
  stop(): Promise<void>
}

const cursorName = 'tokens'
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
  let known: { readonly text: string | undefined; readonly list: readonly StoredToken[] } = {
    text: undefined,
    list: [],
  }
  let set = createTokenSet([])
  let begun = 0
  /** The number of the read that `known` comes from. */
  let newest = 0

  /** The list, with its text: another read may replace `known` before the caller continues. */
  async function read(): Promise<typeof known> {
    const number = (begun += 1)
    const text = await store.cursor(cursorName)
    // a read that began earlier and ends later must not restore an old list, with tokens that were revoked since
    if (number < newest) return known
    newest = number
    if (text === known.text) return known
    // as: only this file writes the cursor
    const list = JSON.parse(text ?? '[]') as StoredToken[]
    known = { text, list }
    set = createTokenSet(
      list.map(({ name, id, digest, may, expiresAt }) => ({
        name: `token ${name}`,
        id,
        digest: Buffer.from(digest, 'hex'),
        may,
        expiresAt,
      })),
    )
    return known
  }

  /** Applies a change to the newest list. Tries again if another gateway wrote in between. */
  async function update(change: (now: readonly StoredToken[]) => readonly StoredToken[]): Promise<void> {
    for (;;) {
      const { text, list } = await read()
      const move = { name: cursorName, from: text, to: JSON.stringify(change(list)) }
      if ((await store.appendAll([], move)) !== 'moved') break
    }
    await read()
  }

  const polling = startPolling(async () => void (await read()), log)
  await read().catch(() =>
    log.warn({}, 'The tokens of the store cannot be read yet. Until they are, none of them is valid.'),
  )

  return {
    set: () => set,
    list: async () => (await read()).list,
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
