// /api/audit: the log of all changes. An entry shows less than the right `read` allows anyway: no payload, and only the names of tokens.
// /api/writes: the changes that a tool on the machine of the gateway made to its files.
import type Router from '@koa/router'
import { tryParseJson } from '../../base/json.ts'
import { type AuditPage, WrittenFile } from '../../model/api/audit.ts'
import { Problem } from '../../model/problem.ts'
import { readAuditEntry } from '../audit.ts'
import type { ApiParts } from './parts.ts'
import { readLimit, readMoment, readParameter, readRequestText } from './query.ts'
import type { Guards } from '../operator.ts'
import { answerJson } from './answer.ts'

const maxBytes = 10_000

export function addAuditRoutes(router: Router, guards: Guards, { store }: Pick<ApiParts, 'store'>): void {
  // the newest entries first
  router.get('/api/audit', guards.read, async (ctx) => {
    const limit = readLimit(ctx)
    const text = readParameter(ctx, 'before')
    if (text !== undefined && !/^\d{1,15}$/.test(text))
      throw new Problem('usage-invalid', 'before must be the "next" of the previous answer.')
    const before = text === undefined ? undefined : Number(text)
    const rows = (await store.auditLog({ limit, before, since: readMoment(ctx, 'since') })).toReversed()
    const entries = rows.map(readAuditEntry)
    const page: AuditPage = { entries, next: rows.length < limit ? null : (rows.at(-1)?.number ?? null) }
    answerJson(ctx, page)
  })
  // the only effect of this call is its entry in the audit log
  router.post('/api/writes', guards.admin, async (ctx) => {
    const { success } = WrittenFile.safeParse(tryParseJson((await readRequestText(ctx, maxBytes)) ?? ''))
    if (!success) throw new Problem('usage-invalid', 'The body must have "what" and "tool".')
    answerJson(ctx, {})
  })
}
