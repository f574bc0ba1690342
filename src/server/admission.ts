// Who may come in, decided before a byte of the body is read.
import type { IncomingMessage } from 'node:http'
import type { Config } from '../model/config.ts'
import type { DeliveryHead } from '../model/delivery.ts'
import { Problem } from '../model/problem.ts'
import { createClientOf } from './client.ts'
import { createTokenCheck, isTokenInQuery, readToken } from './credentials.ts'
import { toHead } from './delivery.ts'
import type { Throttle } from './throttle.ts'

export type Admission = {
  /** The head of an admitted request. Throws what refuses it: 404, 400, 405, 429 or 401, in this order. */
  admit(req: IncomingMessage, config: Config): DeliveryHead
}

/** What is made of a configuration once, and used for each of its requests. */
type Gate = { readonly isToken: (given: string) => boolean; readonly clientOf: (req: IncomingMessage) => string }

export function createAdmission(throttle: Throttle): Admission {
  const gates = new WeakMap<Config, Gate>()

  function gateOf(config: Config): Gate {
    const known = gates.get(config)
    if (known !== undefined) return known
    const { token } = config.hooks
    const gate: Gate = {
      isToken: token === undefined ? () => false : createTokenCheck(token),
      clientOf: createClientOf(config.server.trustedProxies),
    }
    gates.set(config, gate)
    return gate
  }

  return {
    admit(req, config) {
      const url = req.url ?? '/'
      const path = toHookName(url, config.hooks.path)
      if (!config.hooks.enabled || path === undefined) throw new Problem('hook-unknown', 'Nothing is here.')
      if (isTokenInQuery(url)) {
        throw new Problem(
          'token-in-query',
          'The hook token must come as "Authorization: Bearer <token>" or "x-service-token: <token>", never in the query string.',
        )
      }
      if (req.method !== 'POST') throw new Problem('method-not-allowed', 'Hooks take POST.')
      authenticate(req, gateOf(config))
      return toHead(req, url, path)
    },
  }

  function authenticate(req: IncomingMessage, gate: Gate): void {
    const client = gate.clientOf(req)
    const lockedFor = throttle.lockedFor(client)
    if (lockedFor !== undefined) {
      throw new Problem('rate-limited', 'Too many failed authentications from this address. Try again later.', {
        retryAfterSeconds: lockedFor,
      })
    }
    const given = readToken(req.rawHeaders)
    if (given.kind === 'token' && gate.isToken(given.token)) return
    throttle.fail(client)
    throw new Problem('unauthorized', 'A valid hook token is required: "Authorization: Bearer <token>".')
  }
}

/** The name behind the prefix, slashes trimmed and undecoded; undefined outside the prefix. */
export function toHookName(url: string, prefix: string): string | undefined {
  const mark = url.indexOf('?')
  const path = mark < 0 ? url : url.slice(0, mark)
  if (path !== prefix && !path.startsWith(`${prefix}/`)) return undefined
  return path.slice(prefix.length).replace(/^\/+|\/+$/g, '')
}
