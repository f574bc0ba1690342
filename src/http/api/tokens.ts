// /api/tokens: the tokens with few rights, of the configuration and of the store. Only the call that makes a token returns it.
import type Router from '@koa/router'
import type { Context } from 'koa'
import { z } from 'zod'
import { tryParseJson } from '../../base/json.ts'
import { toIsoTime } from '../../deliveries/records.ts'
import type { TokenFields } from '../../model/api/operations.ts'
import { Rights, TokenName } from '../../model/config/tokens.ts'
import type { Log } from '../../model/log.ts'
import { Problem } from '../../model/problem.ts'
import type { Guards } from '../operator.ts'
import type { StoredTokens } from '../stored-tokens.ts'
import type { ApiParts } from './parts.ts'
import { readRequestText, type RouteContext } from './query.ts'
import { answerJson } from './answer.ts'

export type TokenParts = Pick<ApiParts, 'generation' | 'clock'> & { readonly tokens: StoredTokens; readonly log: Log }

export const NewToken = z.strictObject({
  name: TokenName,
  may: Rights,
  expiresAt: z.iso.datetime({ offset: true }).optional(),
})
const maxBytes = 65_536

export function addTokenRoutes(router: Router, guards: Guards, parts: TokenParts): void {
  const { tokens, log } = parts
  router.get('/api/tokens', guards.read, async (ctx) => answerJson(ctx, { tokens: await listTokens(parts) }))
  // a key of the page must not make a token that outlives it
  router.post('/api/tokens', guards.adminToken, async (ctx) => {
    const { name, may, expiresAt } = await readNewToken(ctx, parts)
    const token = await tokens.add({
      name,
      may,
      expiresAt: expiresAt === undefined ? undefined : Date.parse(expiresAt),
    })
    log.info({ token: name, may }, `the token "${name}" was made`)
    answerJson(ctx, { token, ...(await findToken(parts, name)) })
  })
  router.post('/api/tokens/:name/revoke', guards.admin, async (ctx: RouteContext) => {
    const name = ctx.params['name'] ?? ''
    const isStored = (await tokens.list()).some((token) => token.name === name)
    if (!isStored && Object.hasOwn(parts.generation().config.tokens, name)) {
      throw new Problem('conflict', `The token "${name}" is in the configuration. Remove it from "tokens" there.`)
    }
    await tokens.revoke(name)
    log.info({ token: name }, `the token "${name}" was revoked`)
    answerJson(ctx, { name })
  })
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

async function findToken(parts: TokenParts, name: string): Promise<TokenFields | undefined> {
  return (await listTokens(parts)).findLast((each) => each.name === name)
}

async function readNewToken(ctx: Context, { generation, clock }: TokenParts): Promise<z.infer<typeof NewToken>> {
  const parsed = NewToken.safeParse(tryParseJson((await readRequestText(ctx, maxBytes)) ?? ''))
  if (!parsed.success) {
    throw new Problem(
      'usage-invalid',
      'The body must be JSON such as {"name": "ci", "may": ["send:deploy", "runs"], "expiresAt": "2027-01-31T12:00:00Z"}. A right is read, operate, admin, runs, or send:<hook>.',
    )
  }
  const { name, expiresAt } = parsed.data
  if (Object.hasOwn(generation().config.tokens, name)) {
    throw new Problem('conflict', `The configuration has a token "${name}". Choose another name.`)
  }
  if (expiresAt !== undefined && Date.parse(expiresAt) <= clock()) {
    throw new Problem('usage-invalid', 'expiresAt must be in the future.')
  }
  return parsed.data
}
