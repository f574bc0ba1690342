// /api/tokens: the tokens with few rights, of the configuration and of the store. Only the call that makes a token returns it.
import type { z } from 'zod'
import { toIsoTime } from '../../deliveries/records.ts'
import type { TokenFields } from '../../../model/api/operations.ts'
import type { newToken } from '../../../model/api/bodies.ts'
import { Problem } from '../../../core/model/problem.ts'
import type { Handlers } from './handlers.ts'
import type { StoredTokens } from '../stored-tokens.ts'
import type { ApiParts } from './parts.ts'

type TokenParts = Pick<ApiParts, 'generation' | 'clock' | 'log'> & { readonly tokens: StoredTokens }

export function handleTokens(parts: TokenParts) {
  const { tokens, log } = parts
  return {
    'GET /api/tokens': async () => ({ tokens: await listTokens(parts) }),
    'POST /api/tokens': async ({ body }) => {
      const asked = await body()
      checkNewToken(asked, parts)
      const { name, may, expiresAt } = asked
      const token = await tokens.add({
        name,
        may,
        expiresAt: expiresAt === undefined ? undefined : Date.parse(expiresAt),
      })
      log.info({ token: name, may }, `the token "${name}" was made`)
      const made = (await listTokens(parts)).findLast((each) => each.name === name)
      if (made === undefined) throw new Problem('conflict', `The token "${name}" was revoked at once.`)
      return { token, ...made }
    },
    'POST /api/tokens/{name}/revoke': async ({ params: { name } }) => {
      const isStored = (await tokens.list()).some((token) => token.name === name)
      if (!isStored && Object.hasOwn(parts.generation().config.tokens, name)) {
        throw new Problem('conflict', `The token "${name}" is in the configuration. Remove it from "tokens" there.`)
      }
      await tokens.revoke(name)
      log.info({ token: name }, `the token "${name}" was revoked`)
      return { name }
    },
  } satisfies Partial<Handlers>
}

/** The tokens of the configuration, then those that the API made, which are in the store. */
async function listTokens({ generation, tokens, clock }: TokenParts): Promise<TokenFields[]> {
  const now = clock()
  const configured = Object.entries(generation().config.tokens).map(([name, { may, expiresAt }]): TokenFields => {
    const end = expiresAt === undefined ? undefined : Date.parse(expiresAt)
    return { name, from: 'configuration', may, createdAt: null, ...describeExpiry(end, now) }
  })
  const stored = (await tokens.list()).map(({ name, may, createdAt, expiresAt }): TokenFields => ({
    name,
    from: 'store',
    may,
    createdAt: toIsoTime(createdAt),
    ...describeExpiry(expiresAt, now),
  }))
  return [...configured, ...stored]
}

function describeExpiry(end: number | undefined, now: number): Pick<TokenFields, 'expiresAt' | 'expired'> {
  return { expiresAt: end === undefined ? null : toIsoTime(end), expired: end !== undefined && now >= end }
}

function checkNewToken({ name, expiresAt }: z.output<typeof newToken.schema>, { generation, clock }: TokenParts): void {
  if (Object.hasOwn(generation().config.tokens, name)) {
    throw new Problem('conflict', `The configuration has a token "${name}". Choose another name.`)
  }
  if (expiresAt !== undefined && Date.parse(expiresAt) <= clock()) {
    throw new Problem('usage-invalid', 'expiresAt must be in the future.')
  }
}
