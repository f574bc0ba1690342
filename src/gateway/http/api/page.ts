// The exchange of the code of the page for a key, and the proof by which the page recognises its gateway.
import type { Context } from 'koa'
import { Problem } from '../../../core/model/problem.ts'
import { readToken } from '../admission.ts'
import { toIsoTime } from '../../deliveries/records.ts'
import type { OperatorCheck } from '../operator.ts'
import type { ApiParts } from './parts.ts'
import { nameKey, type PageKeys } from './page-keys.ts'
import type { Handlers } from './handlers.ts'

type PageParts = Pick<ApiParts, 'auditor'> & {
  readonly keys: PageKeys
  readonly operators: Pick<OperatorCheck, 'requireOwner'>
}

export function handlePage({ keys, auditor, operators }: PageParts) {
  /** A key for the owner of a token. The gateway token gives none: a page must not be able to keep it. */
  function exchangeToken({ req }: Context) {
    try {
      const owner = operators.requireOwner(req)
      return owner && { issued: keys.issueFor({ id: owner.id, until: owner.expiresAt }), name: owner.name }
    } catch (error) {
      if (error instanceof Problem && error.code === 'unauthorized') return undefined
      throw error
    }
  }

  return {
    'POST /api/page/code': () => {
      const { text, until } = keys.issueCode()
      return { code: text, until: toIsoTime(until) }
    },
    'POST /api/page/key': ({ ctx }) => {
      const given = readToken(ctx.req.rawHeaders)
      const byCode = given.kind === 'token' ? keys.exchange(given.token) : undefined
      const byToken = byCode === undefined ? exchangeToken(ctx) : undefined
      const issued = byCode ?? byToken?.issued
      if (issued === undefined) {
        throw new Problem(
          'unauthorized',
          'This link was used already, or is older than a minute. "hookloom open" makes another one. A token with the right "read" also opens the page.',
        )
      }
      const by = byToken
        ? ({ kind: 'token', name: byToken.name } as const)
        : ({ kind: 'code', name: 'hookloom open' } as const)
      auditor.note({ by, act: 'page.key', target: nameKey(issued.text), outcome: 'done' })
      return { key: issued.text, until: toIsoTime(issued.until) }
    },
    'POST /api/page/proof': async ({ body }) => {
      const { key, challenge } = await body()
      return { proof: keys.prove(Buffer.from(key, 'hex'), challenge) }
    },
  } satisfies Partial<Handlers>
}
