// GET /api/audit: who changed what. An entry shows less than `read` shows anyway: no payload, and of tokens only the names.
import type Router from '@koa/router'
import type { AuditPage } from '../../model/api/audit.ts'
import { Problem } from '../../model/problem.ts'
import { readAuditEntry } from '../audit.ts'
import type { ApiParts } from './parts.ts'
import { readLimit, readMoment, readParameter } from './query.ts'
import type { Guards } from '../operator.ts'
import { reply } from './reply.ts'

/** Answers with the newest entries first. */
export function addAuditRoute(router: Router, guards: Guards, { store }: Pick<ApiParts, 'store'>): void {
  router.get('/api/audit', guards.read, async (ctx) => {
    const limit = readLimit(ctx)
    const text = readParameter(ctx, 'before')
    if (text !== undefined && !/^\d{1,15}$/.test(text))
      throw new Problem('usage-invalid', 'before must be the "next" of the previous answer.')
    const before = text === undefined ? undefined : Number(text)
    const rows = (await store.auditLog({ limit, before, since: readMoment(ctx, 'since') })).toReversed()
    const entries = rows.map(readAuditEntry)
    const page: AuditPage = { entries, next: rows.length < limit ? null : (rows.at(-1)?.number ?? null) }
    reply(ctx, page)
  })
}
