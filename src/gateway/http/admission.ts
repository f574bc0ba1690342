// The checks of a request that need only its head, and the refusals without a valid credential.
import type { IncomingMessage } from 'node:http'
import type { Config } from '../../model/config/config.ts'
import { isCrossSite } from '../../base/http.ts'
import { hopsHeader, maxHops, readHops } from '../../core/model/hops.ts'
import { Problem } from '../../core/model/problem.ts'
import type { RefusalRecord } from '../deliveries/refused/quarantine.ts'
import type { CheckedHead } from '../../core/mapping/delivery.ts'
import type { Generation } from '../generation/generation.ts'
import { createSecretSet } from '../proofs/verifiers/proof.ts'
import { createClientLookup, type UnnamedProxies } from './client.ts'
import type { Access } from './access.ts'
import { readHookName } from './target.ts'
import type { Throttle } from './throttle.ts'

/** The client of a request and its credential, for the operator. No decision depends on it. */
type Caller = {
  readonly client: string
  /** `repeated`: the request has a credential header twice. `gateway-token`: the token of the admin port, which opens no hook. */
  readonly credential: RefusalRecord['credential']
}

export type Admission = Pick<Access, 'findTokenId'> & {
  findCaller(req: IncomingMessage, generation: Generation): Caller
  /**
   * Throws `hook-unknown` outside the prefix or while hooks are disabled, `origin-denied` for a page of another site, `token-in-query`, and `loop-detected` for a
   * request that passed too many gateways.
   */
  checkHead(req: IncomingMessage, generation: Generation): CheckedHead
  /**
   * Throws `rate-limited` for a client that is locked out. For any other request without a valid token, counts a failure and throws
   * `unauthorized`.
   */
  checkToken(head: CheckedHead): void
  /** Throws `rate-limited` for a client that is locked out for its failed tokens. */
  requireUnlocked(head: Pick<CheckedHead, 'client'>): void
  /** Counts a failed token, and throws `unauthorized`. */
  refuseToken(head: Pick<CheckedHead, 'client'>): never
  /** Counts a wrong token. Never throws. */
  noteToken(head: CheckedHead): void
  /**
   * Refuses a request whose proof failed. Throws `unauthorized`, or `rate-limited` above the limit, and counts one failure unless the client
   * has the hook token. With a wrong token, or without any proof in its headers, the request counts as a failed token: a forged signature must
   * not be a way to guess tokens. Throws `proof-unavailable` if the proof could not be checked; then only a wrong token counts.
   */
  refuseUnproved(head: CheckedHead, proof?: FailedProof): never
}

/** `isProofShown`: the request has headers of a scheme that some mapping uses. */
type FailedProof = { readonly isGatewaysFault: boolean; readonly isProofShown: boolean }

/** All clients without a valid credential get the same message: it must not show whether a hook exists, or which credential opens it. */
const noCredential =
  'The request has no valid credential. Send the hook token as "Authorization: Bearer <token>", or the signature that the hook asks for.'

/**
 * `tokens` counts failed tokens. A client that it locks out is refused even with the right token. `signers` counts failed
 * signatures separately: one address of a sender serves many people, so a valid signature always passes.
 */
export function createAdmission({
  access,
  tokens,
  signers,
  unnamedProxies,
}: {
  access: Pick<Access, 'findTokenId' | 'findName' | 'findKeyScope'>
  tokens: Throttle
  signers: Throttle
  unnamedProxies?: UnnamedProxies
}): Admission {
  let lookup: { readonly proxies: readonly string[]; readonly find: (req: IncomingMessage) => string } | undefined

  function findClient(req: IncomingMessage, { server: { trustedProxies: proxies } }: Config): string {
    if (lookup?.proxies !== proxies) lookup = { proxies, find: createClientLookup(proxies, unnamedProxies) }
    return lookup.find(req)
  }

  function refuseToken({ client }: Pick<CheckedHead, 'client'>): never {
    tokens.fail(client)
    throw new Problem('unauthorized', noCredential)
  }

  return {
    findTokenId: access.findTokenId,
    findCaller(req, generation) {
      const { config } = generation
      return { client: findClient(req, config), credential: findCredential(readToken(req.rawHeaders)) }

      function findCredential(given: SentToken): Caller['credential'] {
        if (given.kind === 'ambiguous') return 'repeated'
        if (given.kind === 'none' && req.headers['x-openclaw-token'] !== undefined) return 'openclaw-header'
        if (given.kind === 'none') return req.headers.authorization === undefined ? 'none' : 'not-bearer'
        const path = readHookName(req.url ?? '/', config.hooks.path) ?? ''
        if (access.findTokenId(given.token, path, generation) !== undefined) return 'hook-token'
        if (access.findName(given.token, generation) !== undefined) return 'denied-token'
        const isGatewayToken = createSecretSet([config.gateway.token ?? []].flat())
        return isGatewayToken(given.token) ? 'gateway-token' : 'wrong-token'
      }
    },
    checkHead(req, generation) {
      const { config } = generation
      const url = req.url ?? '/'
      const path = readHookName(url, config.hooks.path)
      if (!config.hooks.enabled || path === undefined) throw new Problem('hook-unknown', 'Nothing is here.')
      if (isCrossSite(req.headers)) {
        throw new Problem(
          'origin-denied',
          'A web page of another site sent this request. Hooks answer only senders of webhooks.',
        )
      }
      if (hasTokenInQuery(url)) {
        throw new Problem(
          'token-in-query',
          'Send the hook token as "Authorization: Bearer <token>" or "x-service-token: <token>", not in the query string.',
        )
      }
      const headers = toHeaders(req.rawHeaders)
      const passed = headers[hopsHeader]
      if (passed !== undefined && readHops(passed) > maxHops) {
        throw new Problem(
          'loop-detected',
          `The request is the consequence of ${maxHops + 1} replies of gateways, one after the other (${hopsHeader}). Find out which receiver of a reply calls a hook.`,
        )
      }
      const given = readToken(req.rawHeaders)
      const client = findClient(req, config)
      const knownId = given.kind === 'token' ? access.findTokenId(given.token, path, generation) : undefined
      const tokenId = knownId !== undefined && tokens.readLockSeconds(client) === undefined ? knownId : undefined
      return {
        method: req.method ?? 'GET',
        url,
        path,
        headers,
        client,
        token: tokenId !== undefined ? 'valid' : given.kind === 'none' ? 'none' : 'wrong',
        tokenId,
        keyScope: access.findKeyScope(tokenId, generation),
      }
    },
    checkToken({ client, token }) {
      requireUnlocked(tokens, client)
      if (token !== 'valid') refuseToken({ client })
    },
    requireUnlocked: ({ client }) => requireUnlocked(tokens, client),
    refuseToken,
    noteToken({ client, token }) {
      if (token === 'wrong') tokens.fail(client)
    },
    refuseUnproved(
      { client, token },
      { isGatewaysFault, isProofShown } = { isGatewaysFault: false, isProofShown: true },
    ) {
      const throttle = token === 'wrong' || !isProofShown ? tokens : signers
      if (token === 'wrong' || (token === 'none' && !isGatewaysFault)) {
        requireUnlocked(throttle, client)
        throttle.fail(client)
      }
      if (isGatewaysFault) {
        throw new Problem(
          'proof-unavailable',
          'The proof of the sender cannot be checked at the moment. Send the request again later.',
          {
            retryAfterSeconds: 30,
          },
        )
      }
      if (token === 'valid') {
        throw new Problem('unauthorized', 'This hook takes only signed requests. The hook token does not open it.')
      }
      // the operator finds the reason in the list of refusals; an attacker must not learn it
      throw new Problem('unauthorized', noCredential)
    },
  }
}

/** Throws `rate-limited` while a client is locked out. */
function requireUnlocked(throttle: Throttle, client: string): void {
  const lockedFor = throttle.readLockSeconds(client)
  if (lockedFor === undefined) return
  throw new Problem('rate-limited', 'Too many failed authentications from this address. Try again later.', {
    retryAfterSeconds: lockedFor,
  })
}

type SentToken = { kind: 'none' } | { kind: 'token'; token: string } | { kind: 'ambiguous' }

/**
 * The token of a request: `Authorization: Bearer`, else `x-service-token`. An Authorization header of another scheme, or without a token, says nothing about the
 * hook token: a proxy may have added it. The token is read from `rawHeaders`, because Node's header map hides a second Authorization line. A
 * repeated header is `ambiguous`: a proxy might read the other line.
 */
export function readToken(rawHeaders: readonly string[]): SentToken {
  const authorization: string[] = []
  const serviceToken: string[] = []
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]?.toLowerCase()
    if (name === 'authorization') authorization.push(rawHeaders[index + 1] ?? '')
    else if (name === 'x-service-token') serviceToken.push(rawHeaders[index + 1] ?? '')
  }
  if (authorization.length > 1 || serviceToken.length > 1) return { kind: 'ambiguous' }
  const [bearer] = authorization
  const isBearer = bearer !== undefined && /^bearer +[^ ]/i.test(bearer)
  const sent = isBearer ? bearer.slice('bearer'.length).replace(/^ +/, '') : serviceToken[0]
  if (sent === undefined || sent === '') return { kind: 'none' }
  // Node decodes headers as latin1; a token with non-ASCII characters was sent as UTF-8
  const isAscii = !/[\u0080-\uffff]/.test(sent)
  return { kind: 'token', token: isAscii ? sent : Buffer.from(sent, 'latin1').toString('utf8') }
}

/**
 * All headers, with lower-case names, with repeated headers joined by ", ", and without a prototype. A Content-Type that is sent twice is one: it is no list, and no reader
 * can take equal lines for different ones.
 */
export function toHeaders(rawHeaders: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = Object.create(null)
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = (rawHeaders[index] ?? '').toLowerCase()
    const value = rawHeaders[index + 1] ?? ''
    const earlier = headers[name]
    if (name === 'content-type' && earlier === value) continue
    headers[name] = earlier === undefined ? value : `${earlier}, ${value}`
  }
  return headers
}

/** Whether the URL has a query parameter `token`, with or without a value. The name may be percent-encoded. */
export function hasTokenInQuery(url: string): boolean {
  const mark = url.indexOf('?')
  return mark >= 0 && new URLSearchParams(url.slice(mark)).has('token')
}
