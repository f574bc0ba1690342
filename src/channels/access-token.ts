// An access token that expires: one request at a time fetches a token, which is cached until shortly before it expires.
import type { SendFailure } from './http.ts'

/** A token is renewed this long before it expires: a provider refuses one that expires during the request. */
const marginMs = 60_000

export type AccessToken =
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'failed'; readonly failed: SendFailure }

/** `until`: when the token expires, in milliseconds since the epoch. */
export type FetchedToken =
  | (AccessToken & { readonly kind: 'failed' })
  | { readonly kind: 'fetched'; readonly token: string; readonly until: number }

export type TokenCache = {
  /** The cached token, or a new one. Concurrent callers share one request; the signal of one caller does not stop it. */
  get(): Promise<AccessToken>
  /** Called when a token was refused: the next call fetches a new one. */
  drop(token: string): void
}

export function createTokenCache(clock: () => number, fetchToken: () => Promise<FetchedToken>): TokenCache {
  let kept: { readonly token: string; readonly until: number } | undefined
  let pending: Promise<AccessToken> | undefined

  async function renew(): Promise<AccessToken> {
    const fetched = await fetchToken()
    if (fetched.kind === 'failed') return fetched
    kept = { token: fetched.token, until: fetched.until - marginMs }
    return { kind: 'token', token: fetched.token }
  }

  return {
    async get() {
      if (kept !== undefined && clock() < kept.until) return { kind: 'token', token: kept.token }
      pending ??= renew().finally(() => (pending = undefined))
      return pending
    },
    drop(token) {
      // a late refusal of an older token must not drop the new one
      if (kept?.token === token) kept = undefined
    },
  }
}
