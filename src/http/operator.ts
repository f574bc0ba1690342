// Access to the admin API: the gateway token opens it, and guesses are throttled like those of the hook token.
import type { IncomingMessage } from 'node:http'
import { Problem } from '../model/problem.ts'
import type { Clock } from '../store/store.ts'
import { createClientLookup } from './client.ts'
import type { PageKeys } from './api/page-keys.ts'
import { createSecretSet } from '../pipeline/verifiers/proof.ts'
import { readToken } from './admission.ts'
import { createThrottle } from './throttle.ts'

/**
 * Returns `token` for the gateway token, `page` for a key of the page, and undefined without any token. A wrong token counts as a
 * failure and throws `unauthorized`, or `rate-limited` for a client that is locked out. The right token is never locked out. A request
 * without a token does not count: a web page in the operator's browser cannot send `Authorization`, so it cannot lock the operator out.
 */
export type OperatorOf = (req: IncomingMessage) => 'token' | 'page' | undefined

export function createOperatorCheck({
  token,
  keys,
  clock,
}: {
  token: () => string | undefined
  keys: Pick<PageKeys, 'isForm' | 'isValid'>
  clock: Clock
}): OperatorOf {
  const throttle = createThrottle({ clock })
  const clientOf = createClientLookup([])
  let check: { token: string; matches: (given: string) => boolean } | undefined

  return (req) => {
    const given = readToken(req.rawHeaders)
    const expected = token()
    if (given.kind === 'none' || expected === undefined) return undefined
    if (given.kind === 'token' && keys.isForm(given.token)) {
      if (keys.isValid(given.token)) return 'page'
      // not counted: pages that stay open after their key ended would lock out the operator, and nobody guesses 256 bits
      throw new Problem('unauthorized', 'The key of this page is no longer valid. "hookloom open" opens it again.')
    }
    if (check?.token !== expected) check = { token: expected, matches: createSecretSet([expected]) }
    // before the throttle: another program on this machine must not lock the operator out with its guesses
    if (given.kind === 'token' && check.matches(given.token)) return 'token'
    const client = clientOf(req)
    const retryAfterSeconds = throttle.lockedFor(client)
    if (retryAfterSeconds !== undefined) {
      throw new Problem('rate-limited', 'Too many wrong gateway tokens. Try again later.', { retryAfterSeconds })
    }
    throttle.fail(client)
    throw new Problem('unauthorized', 'The gateway token is wrong. Send "Authorization: Bearer <gateway.token>".')
  }
}
