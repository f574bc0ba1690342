// Access to the admin API: the gateway token opens all calls, and other tokens open the calls that their rights include. Guesses are throttled
// like guesses of the hook token. The guards also write the audit log of the calls that change something.
import type { IncomingMessage } from 'node:http'
import type { Context } from 'koa'
import type { Call } from '../../model/api/call.ts'
import type { AdminRight } from '../../model/api/rights.ts'
import { includesRight } from '../../model/config/tokens.ts'
import { Problem } from '../../core/model/problem.ts'
import type { Generation } from '../generation/generation.ts'
import type { Clock } from '../../store/store.ts'
import type { Access } from './access.ts'
import type { ActRecorder } from './api/acts.ts'
import { createClientLookup } from './client.ts'
import { nameKey, type PageKeys } from './api/page-keys.ts'
import { createSecretSet } from '../proofs/verifiers/proof.ts'
import { readToken } from './admission.ts'
import { createThrottle } from './throttle.ts'

/** Who calls the admin port. `name`: a name for people, never the token itself. */
type Operator = { readonly kind: 'token' | 'page'; readonly name: string; readonly right: AdminRight }
/** The owner of a token with few rights. */
type TokenOwner = NonNullable<ReturnType<Access['findOperator']>>

/** What a guard must know of a call. */
type GuardedCall = Pick<Call, 'right' | 'rightWithBody' | 'isForTokens' | 'act' | 'query' | 'body'>
/** A route that is no call, for a token with the right `read`. */
export const anyReader: GuardedCall = { right: 'read', act: null, query: {} }
/** Runs a call if it needs no token, or if the token of its request has the right to it. */
export type Guard = (ctx: Context, call: GuardedCall, run: () => Promise<void>) => Promise<void>

export type OperatorCheck = {
  /**
   * Returns the operator whose token, or key of the page, includes the right; undefined without any token, or if `gateway.token` is not set. Any
   * other token counts as a failure and throws `unauthorized`, or `rate-limited` for a client that is locked out: a valid token without the right
   * is treated like a wrong one. A key of the page that is not valid throws `unauthorized` and does not count. An operator with the right is never
   * locked out. A request without a token does not count: a web page of another site in the operator's browser cannot send `Authorization`, so it
   * cannot lock the operator out.
   */
  require(req: IncomingMessage, needed: AdminRight): Operator | undefined
  /** Checks again the operator of a request that is still open. Undefined after the token was revoked or has expired. Counts no failure. */
  find(req: IncomingMessage, needed: AdminRight): Operator | undefined
  /** The owner of the token with few rights in a request. Undefined for any other token; a wrong one counts as in `require`. */
  requireOwner(req: IncomingMessage): TokenOwner | undefined
  /** The name of the token in a refused request; undefined if the gateway has no such token. */
  findRefused(req: IncomingMessage): Pick<Operator, 'kind' | 'name'> | undefined
}

export function createOperatorCheck({
  generation,
  access,
  keys,
  clock,
}: {
  generation: () => Generation
  access: Pick<Access, 'findOperator' | 'findOperatorById' | 'findName'>
  keys: Pick<PageKeys, 'hasKeyForm' | 'read'>
  clock: Clock
}): OperatorCheck {
  const throttle = createThrottle({ clock })
  const clientOf = createClientLookup([])
  let check: { token: string; matches: (given: string) => boolean } | undefined

  function find(req: IncomingMessage, needed: AdminRight): Operator | undefined {
    const given = readToken(req.rawHeaders)
    const expected = generation().config.gateway.token
    if (given.kind !== 'token' || expected === undefined) return undefined
    if (keys.hasKeyForm(given.token)) {
      const operator = findPage(given.token)
      return operator && includesRight(operator.right, needed) ? operator : undefined
    }
    if (check?.token !== expected) check = { token: expected, matches: createSecretSet([expected]) }
    if (check.matches(given.token)) return { kind: 'token', name: 'gateway.token', right: 'admin' }
    const found = access.findOperator(given.token, generation())
    return found && includesRight(found.right, needed) ? { kind: 'token', ...found } : undefined
  }

  /** The operator of a key of the page: the audit log names the owner of the token that the key was exchanged for. */
  function findPage(key: string): Operator | undefined {
    const page = keys.read(key)
    if (page === undefined) return undefined
    if (page.tokenId === undefined) return { kind: 'page', name: nameKey(key), right: 'admin' }
    const owner = access.findOperatorById(page.tokenId, generation())
    return owner && { kind: 'page', name: owner.name, right: owner.right }
  }

  function requireOperator(req: IncomingMessage, needed: AdminRight): Operator | undefined {
    const given = readToken(req.rawHeaders)
    if (given.kind === 'none' || generation().config.gateway.token === undefined) return undefined
    // before the throttle: another program on this machine must not lock the operator out with its guesses
    const operator = find(req, needed)
    if (operator !== undefined) return operator
    if (given.kind === 'token' && keys.hasKeyForm(given.token)) {
      // not counted: pages that stay open after their key has expired would lock out the operator, and nobody guesses 256 bits
      const owner = findPage(given.token)
      throw new Problem(
        'unauthorized',
        owner === undefined
          ? 'The key of this page is no longer valid. "hookloom open" opens it again.'
          : `The page was opened by "${owner.name}", which has not the right "${needed}".`,
      )
    }
    const client = clientOf(req)
    const retryAfterSeconds = throttle.readLockSeconds(client)
    if (retryAfterSeconds !== undefined) {
      throw new Problem('rate-limited', 'Too many wrong tokens. Try again later.', { retryAfterSeconds })
    }
    throttle.fail(client)
    throw new Problem(
      'unauthorized',
      'This is neither the gateway token nor a token with the right to this call. Commands send the gateway.token of their config directory.',
    )
  }

  return {
    find,
    require: requireOperator,
    requireOwner(req) {
      const given = readToken(req.rawHeaders)
      const owner = given.kind === 'token' ? access.findOperator(given.token, generation()) : undefined
      if (owner === undefined) requireOperator(req, 'read')
      return owner
    },
    findRefused(req) {
      const given = readToken(req.rawHeaders)
      if (given.kind !== 'token') return undefined
      if (keys.hasKeyForm(given.token)) return findPage(given.token)
      const name = access.findName(given.token, generation())
      return name === undefined ? undefined : { kind: 'token', name }
    },
  }
}

type GuardParts = {
  readonly operators: OperatorCheck
  /** The gateway token. */
  readonly token: () => string | undefined
  readonly acts: ActRecorder
}

export function createGuard({ operators, token, acts }: GuardParts): Guard {
  return async (ctx, call, run) => {
    if (call.right === 'none') return run()
    if (token() === undefined) throw new Problem('unauthorized', 'Set gateway.token to use the admin API.')
    const needed = (hasBody(ctx) ? call.rightWithBody : undefined) ?? call.right
    let operator: Operator | undefined
    try {
      operator = operators.require(ctx.req, needed)
    } catch (error) {
      // a client that is locked out must not fill the audit log
      const known =
        error instanceof Problem && error.code === 'unauthorized' ? operators.findRefused(ctx.req) : undefined
      if (known !== undefined) acts.refuse(ctx, call, known, `The token has expired, or has not the right "${needed}".`)
      throw error
    }
    if (operator === undefined) {
      throw new Problem(
        'unauthorized',
        'The gateway token is missing. Send it as "Authorization: Bearer <gateway.token>".',
      )
    }
    if (call.isForTokens === true && operator.kind !== 'token') {
      acts.refuse(ctx, call, operator, 'A key of the page may not do this.')
      throw new Problem('unauthorized', 'A key of the page may not do this. Send a token with the right "admin".')
    }
    await acts.perform(ctx, call, operator, run)
  }
}

/** A chunked body counts, even if it is empty. */
function hasBody({ req: { headers } }: Context): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}
