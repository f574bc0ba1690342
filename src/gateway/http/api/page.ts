// The exchange of the code of the page for a key, and the proof by which the page recognises its gateway.
import { Problem } from '../../../core/model/problem.ts'
import { readToken } from '../admission.ts'
import { toIsoTime } from '../../deliveries/records.ts'
import type { ApiParts } from './parts.ts'
import { nameKey, type PageKeys } from './page-keys.ts'
import type { Handlers } from './handlers.ts'

type PageParts = Pick<ApiParts, 'auditor'> & { readonly keys: PageKeys }

export function handlePage({ keys, auditor }: PageParts) {
  return {
    'POST /api/page/code': () => {
      const { text, until } = keys.issueCode()
      return { code: text, until: toIsoTime(until) }
    },
    'POST /api/page/key': ({ ctx }) => {
      const given = readToken(ctx.req.rawHeaders)
      const issued = given.kind === 'token' ? keys.exchange(given.token) : undefined
      if (issued === undefined) {
        throw new Problem(
          'unauthorized',
          'This link was used already, or is older than a minute. "hookloom open" makes another one.',
        )
      }
      const by = { kind: 'code', name: 'hookloom open' } as const
      auditor.note({ by, act: 'page.key', target: nameKey(issued.text), outcome: 'done' })
      return { key: issued.text, until: toIsoTime(issued.until) }
    },
    'POST /api/page/proof': async ({ body }) => {
      const { key, challenge } = await body()
      return { proof: keys.prove(Buffer.from(key, 'hex'), challenge) }
    },
  } satisfies Partial<Handlers>
}
