// An access token that expires: one request at a time fetches a token, which is cached until shortly before it expires.

/** A token is renewed this long before it expires, because a provider would refuse a token that expires during the request. */
const marginMs = 60_000

/** `until`: when the token expires, in milliseconds since the epoch. */
export type AccessToken = { readonly kind: 'token'; readonly token: string; readonly until: number }

/** `Failed`: the result of a fetch that got no token and did not throw. */
export type TokenCache<Failed = never> = {
  /** The cached token, or a new one. Concurrent callers share one request; the signal of one caller does not stop it. */
  get(): Promise<AccessToken | Failed>
  /** Called when a token was refused: the next call fetches a new one. */
  drop(token: string): void
}

export function createTokenCache<Failed extends { readonly kind: 'failed' }>(
  clock: () => number,
  fetchToken: () => Promise<AccessToken | Failed>,
): TokenCache<Failed> {
  let kept: AccessToken | undefined
  let pending: Promise<AccessToken | Failed> | undefined

  async function renew(): Promise<AccessToken | Failed> {
    const fetched = await fetchToken()
    if (fetched.kind === 'token') kept = fetched
    return fetched
  }

  return {
    async get() {
      if (kept !== undefined && clock() < kept.until - marginMs) return kept
      pending ??= renew().finally(() => (pending = undefined))
      return pending
    },
    drop(token) {
      // a late refusal of an older token must not drop the new one
      if (kept?.token === token) kept = undefined
    },
  }
}
