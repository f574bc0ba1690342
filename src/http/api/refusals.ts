// /api/refusals: lists refusals, and runs or deletes the requests that are kept after a refusal.
import type Router from '@koa/router'
import type { RefusalRecord } from '../../deliveries/refused/quarantine.ts'
import type { RefusedCalls, RefusedQuery } from '../../deliveries/refused/calls.ts'
import { Problem } from '../../model/problem.ts'
import { toRefusalFields, type Refusal, toRefusedRequest } from '../refusals.ts'
import type { ApiParts } from './parts.ts'
import { readLimit, readMoment, readParameter, type RouteContext } from './query.ts'
import type { Guards } from '../operator.ts'
import { answerJson } from './answer.ts'

type RefusalParts = Pick<ApiParts, 'refusals' | 'generation'> & { readonly refused: RefusedCalls }

const maxListed = 500

export function addRefusalRoutes(router: Router, guards: Guards, parts: RefusalParts): void {
  const { refusals, refused, generation } = parts
  router.get('/api/refusals', guards.read, async (ctx) => {
    const remembered = refusals.list().map(toListed)
    const hook = readParameter(ctx, 'hook')
    const all = merge(remembered, await refused.list(maxListed))
    const listed = all.filter((refusal) => hook === undefined || (refusal.hook ?? refusal.path) === hook)
    answerJson(ctx, {
      refusals: listed.slice(-readLimit(ctx, 2 * maxListed)).map((refusal) => toRefusalFields(refusal, generation())),
    })
  })
  router.get('/api/refusals/:id', guards.read, async (ctx) => {
    const { id } = ctx.params
    const remembered = refusals
      .list()
      .filter(({ requestId }) => requestId === id)
      .map(toListed)
    const kept = await refused.find(id ?? '')
    const [refusal] = merge(remembered, kept === undefined ? [] : [kept])
    if (refusal === undefined) {
      throw new Problem('not-found', 'No refusal has this request id. "hookloom list --refused" shows the ids.')
    }
    // only a request that `hookloom dev` remembers is shown, never a kept one
    const request = toRefusedRequest(refusals.findRequest(refusal.requestId))
    answerJson(ctx, { refusal: toRefusalFields(refusal, generation()), request })
  })
  router.post('/api/refusals/retry', guards.operate, async (ctx) => {
    const isDry = readParameter(ctx, 'dryRun') !== undefined
    answerJson(ctx, await refused.retry(readQuery(ctx), { isDry }))
  })
  router.post('/api/refusals/drop', guards.operate, async (ctx) => answerJson(ctx, await refused.drop(readQuery(ctx))))

  /** Call it before the store is read: a request that waits to be stored now may be in the store a moment later. */
  function toListed(refusal: Refusal): Refusal {
    return { ...refusal, isKept: refused.isWaiting(refusal.requestId) }
  }

  /** In order of arrival. A kept refusal has the reason of its last retry, and may be older than the gateway. */
  function merge(remembered: readonly Refusal[], kept: readonly RefusalRecord[]): Refusal[] {
    const merged = new Map<string, Refusal>()
    for (const refusal of kept) merged.set(refusal.requestId, { ...refusal, isKept: true })
    for (const refusal of remembered) if (!merged.has(refusal.requestId)) merged.set(refusal.requestId, refusal)
    return [...merged.values()].toSorted((one, other) => one.receivedAt - other.receivedAt)
  }
}

/** `hook` and `since` are filters; `after` is the `next` of the previous answer. Throws `usage-invalid`. */
function readQuery(ctx: RouteContext): RefusedQuery {
  for (const filter of ['hook', 'since']) {
    // a blank filter must not select all requests
    if (ctx.query[filter] !== undefined && readParameter(ctx, filter) === undefined)
      throw new Problem('usage-invalid', `${filter} must not be blank. Leave it out to select all kept requests.`)
  }
  const after = readParameter(ctx, 'after')
  if (after !== undefined && !/^\d{1,15}$/.test(after)) {
    throw new Problem('usage-invalid', 'after must be the "next" of the previous answer.')
  }
  return {
    hook: readParameter(ctx, 'hook'),
    since: readMoment(ctx, 'since'),
    after: after === undefined ? undefined : Number(after),
  }
}
