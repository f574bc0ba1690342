// /api/refusals: lists refusals, and runs or deletes the requests that are kept after a refusal.
import type { RefusalRecord } from '../../deliveries/refused/quarantine.ts'
import type { RefusedQuery } from '../../deliveries/refused/calls.ts'
import { Problem } from '../../../core/model/problem.ts'
import { toRefusalFields, type Refusal, toRefusedRequest } from '../refusals.ts'
import type { ApiParts } from './parts.ts'
import { type QueryTexts, readLimit, readMoment, readParameter } from './query.ts'
import type { Handlers } from './handlers.ts'

const maxListed = 500

export function handleRefusals({
  refusals,
  refused,
  generation,
}: Pick<ApiParts, 'refusals' | 'generation' | 'refused'>) {
  return {
    'GET /api/refusals': async ({ query }) => {
      const remembered = refusals.list().map(toListed)
      const hook = readParameter(query, 'hook')
      const all = merge(remembered, await refused.list(maxListed))
      const listed = all.filter((refusal) => hook === undefined || (refusal.hook ?? refusal.path) === hook)
      const shown = listed.slice(-readLimit(query, 2 * maxListed))
      return { refusals: shown.map((refusal) => toRefusalFields(refusal, generation())) }
    },
    'GET /api/refusals/{id}': async ({ params: { id } }) => {
      const remembered = refusals
        .list()
        .filter(({ requestId }) => requestId === id)
        .map(toListed)
      const kept = await refused.find(id)
      const [refusal] = merge(remembered, kept === undefined ? [] : [kept])
      if (refusal === undefined) {
        throw new Problem('not-found', 'No refusal has this request id. "hookloom list --refused" shows the ids.')
      }
      // only a request that `hookloom dev` remembers is shown, never a kept one
      const request = toRefusedRequest(refusals.findRequest(refusal.requestId))
      return { refusal: toRefusalFields(refusal, generation()), request }
    },
    'POST /api/refusals/retry': ({ query }) =>
      refused.retry(readQuery(query), { isDry: readParameter(query, 'dryRun') !== undefined }),
    'POST /api/refusals/drop': ({ query }) => refused.drop(readQuery(query)),
  } satisfies Partial<Handlers>

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
function readQuery(query: QueryTexts<'hook' | 'since' | 'after'>): RefusedQuery {
  for (const filter of ['hook', 'since'] as const) {
    // a blank filter must not select all requests
    if (query[filter] !== undefined && readParameter(query, filter) === undefined)
      throw new Problem('usage-invalid', `${filter} must not be blank. Leave it out to select all kept requests.`)
  }
  const after = readParameter(query, 'after')
  if (after !== undefined && !/^\d{1,15}$/.test(after)) {
    throw new Problem('usage-invalid', 'after must be the "next" of the previous answer.')
  }
  return {
    hook: readParameter(query, 'hook'),
    since: readMoment(query, 'since'),
    after: after === undefined ? undefined : Number(after),
  }
}
