// Who may do what: the tokens of the configuration and those of the store, on both ports.
import { isRunPath } from '../../core/model/delivery.ts'
import type { AdminRight } from '../../model/api/rights.ts'
import { findAdminRight, maySend } from '../../model/config/tokens.ts'
import type { Generation } from '../generation/generation.ts'
import { createTokenSet, type Token, type TokenSet, toTokenDigest } from '../generation/tokens.ts'
import type { Clock } from '../../store/store.ts'

type Tokens = Pick<Generation, 'tokens'>
type TokenOperator = Pick<Token, 'name' | 'id' | 'expiresAt'> & { readonly right: AdminRight }

export type Access = {
  /**
   * The name of a token, even of one that has expired or that lacks a right; undefined for any other text. Only the operator sees the name: no
   * decision depends on it.
   */
  findName(given: string, live: Tokens): string | undefined
  /** The id, unless it is that of a hook token: see `Admitted.keyScope`. */
  findKeyScope(tokenId: string | undefined, live: Tokens): string | undefined
  /** The name of the token with this id. */
  findNameById(tokenId: string, live: Tokens): string | undefined
  /**
   * The id of the token, if it may be used for `path`, the part after `hooks.path`, which names a hook or a run. Undefined for any other text: a
   * token without the right is treated like an unknown one.
   */
  findTokenId(given: string, path: string, live: Tokens): string | undefined
  /**
   * Whether a token may see and cancel a run: it has not expired, it is a hook token or has the right `runs`, and it started the run or succeeds
   * the token that did. `startedBy`: the id of the token that started the run; undefined if no token did, and then nobody may.
   */
  mayUseRun(tokenId: string, startedBy: string | undefined, live: Tokens): boolean
  /** The tokens that may wait for runs now, as `findKeyScope` names them: an id, or undefined for all hook tokens. */
  listRunUsers(live: Tokens): readonly (string | undefined)[]
  /** The name of a token, and its right on the admin port. Undefined for any other text. */
  findOperator(given: string, live: Tokens): TokenOperator | undefined
  /** The same for the id of a token. */
  findOperatorById(tokenId: string, live: Tokens): TokenOperator | undefined
}

/** `stored`: the tokens of the store, as they were read last. Those of the configuration are searched first. */
export function createAccess({
  clock,
  stored = () => createTokenSet([]),
}: {
  clock: Clock
  stored?: () => TokenSet
}): Access {
  const omitExpired = (token: Token | undefined) =>
    token?.expiresAt !== undefined && clock() >= token.expiresAt ? undefined : token
  const findAny = (given: string, { tokens }: Tokens) => {
    const digest = toTokenDigest(given)
    return tokens.find(digest) ?? stored().find(digest)
  }
  const findById = (tokenId: string, { tokens }: Tokens) => tokens.findById(tokenId) ?? stored().findById(tokenId)
  const find = (given: string, live: Tokens) => omitExpired(findAny(given, live))
  return {
    findName: (given, live) => findAny(given, live)?.name,
    findKeyScope: (tokenId, live) =>
      tokenId === undefined || findById(tokenId, live)?.may === 'hook' ? undefined : tokenId,
    findNameById: (tokenId, live) => findById(tokenId, live)?.name,
    findTokenId(given, path, live) {
      const token = find(given, live)
      if (token === undefined) return undefined
      if (token.may === 'hook') return token.id
      return (isRunPath(path) ? token.may.includes('runs') : maySend(token.may, path)) ? token.id : undefined
    },
    mayUseRun(tokenId, startedBy, { tokens }) {
      const token = omitExpired(findById(tokenId, { tokens }))
      if (token === undefined || startedBy === undefined) return false
      if (!mayUseRuns(token)) return false
      return token.id === startedBy || token.succeeds?.includes(startedBy) === true
    },
    listRunUsers: ({ tokens }) =>
      [...tokens.all, ...stored().all]
        .filter((token) => omitExpired(token) !== undefined && mayUseRuns(token))
        .map(({ id, may }) => (may === 'hook' ? undefined : id)),
    findOperator: (given, live) => toOperator(find(given, live)),
    findOperatorById: (tokenId, live) => toOperator(omitExpired(findById(tokenId, live))),
  }
}

function toOperator(token: Token | undefined): TokenOperator | undefined {
  const right = token === undefined || token.may === 'hook' ? undefined : findAdminRight(token.may)
  return token && right && { name: token.name, id: token.id, expiresAt: token.expiresAt, right }
}

function mayUseRuns({ may }: Token): boolean {
  return may === 'hook' || may.includes('runs')
}
