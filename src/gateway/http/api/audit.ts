// /api/audit: the log of all changes. An entry shows less than the right `read` allows anyway: no payload, and only the names of tokens.
// /api/writes: the changes that a tool on the machine of the gateway made to its files.
import { Problem } from '../../../core/model/problem.ts'
import { readAuditEntry } from '../audit.ts'
import type { ApiParts } from './parts.ts'
import { readLimit, readMoment, readParameter } from './query.ts'
import type { Handlers } from './handlers.ts'

export function handleAudit({ store }: Pick<ApiParts, 'store'>) {
  return {
    // the newest entries first
    'GET /api/audit': async ({ query }) => {
      const limit = readLimit(query)
      const text = readParameter(query, 'before')
      if (text !== undefined && !/^\d{1,15}$/.test(text))
        throw new Problem('usage-invalid', 'before must be the "next" of the previous answer.')
      const before = text === undefined ? undefined : Number(text)
      const rows = (await store.auditLog({ limit, before, since: readMoment(query, 'since') })).toReversed()
      const entries = rows.map(readAuditEntry)
      return { entries, next: rows.length < limit ? null : (rows.at(-1)?.number ?? null) }
    },
    // the only effect of this call is its entry in the audit log
    'POST /api/writes': async ({ body }) => {
      await body()
      return {}
    },
  } satisfies Partial<Handlers>
}
