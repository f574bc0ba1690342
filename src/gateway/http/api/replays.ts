// Routes of the admin API for kept requests: replays, and fixtures made from them.
import type { KeptQuery } from '../../../store/queries.ts'
import { Problem } from '../../../core/model/problem.ts'
import { maxReplays, defaultReplays } from '../../../model/api/limits.ts'
import { findDelivery, findRequest } from './deliveries.ts'
import { type QueryTexts, readParameter } from './query.ts'
import type { Handlers } from './handlers.ts'
import type { ApiParts } from './parts.ts'

/** The maximum number of ids in one request for the decisions of the live code, and of requests in one page of a replay. */
const maxIds = 100
const maxReplayed = 25

export function handleReplays({ store, replayer }: Pick<ApiParts, 'store' | 'replayer'>) {
  return {
    'POST /api/replay': ({ query, ctx }) => {
      const ids = readIds(query, maxReplayed)
      const kept = ids.length === 0 ? readKeptQuery(query) : { limit: ids.length, ids }
      return replayer.replay(kept, () => !ctx.res.destroyed)
    },
    'POST /api/fixtures/update': async ({ body }) => {
      const { module } = await body('{}')
      if (module === undefined) throw new Problem('usage-invalid', 'The body must be {"module": "<module>"}.')
      return replayer.updateFixtures(module)
    },
    'POST /api/coverage': ({ query, ctx }) => {
      const module = readParameter(query, 'module')
      if (module === undefined) throw new Problem('usage-invalid', 'module must be a module that a mapping names.')
      return replayer.coverage(module, () => !ctx.res.destroyed)
    },
    'GET /api/shadows': () => ({ shadows: replayer.shadows() }),
    'POST /api/publish': () => replayer.publish(),
    'POST /api/deliveries/{id}/capture': async ({ params, body }) => {
      const options = await body()
      const record = await findDelivery(store, params)
      return replayer.capture({ record, request: await findRequest(store, record) }, options)
    },
    'POST /api/replay/live': async ({ query }) => ({ outcomes: await replayer.decideLive(readIds(query, maxIds)) }),
  } satisfies Partial<Handlers>
}

/** Reads the ids in `?ids=`, separated by commas. Throws `usage-invalid` for more than `max` ids. */
function readIds(query: QueryTexts<'ids'>, max: number): string[] {
  const ids = readParameter(query, 'ids')?.split(',') ?? []
  if (ids.length <= max) return ids
  throw new Problem('usage-invalid', `ids: expected at most ${max} ids, found ${ids.length}.`)
}

/** `last`, `hook`, `source`, and `since`: milliseconds since the epoch, or ISO 8601. Throws `usage-invalid`. */
function readKeptQuery(query: QueryTexts<'last' | 'hook' | 'source' | 'since'>): KeptQuery {
  const last = Number(readParameter(query, 'last') ?? defaultReplays)
  if (!Number.isInteger(last) || last < 1 || last > maxReplays) {
    throw new Problem('usage-invalid', `last: expected a whole number from 1 to ${maxReplays}.`)
  }
  return {
    limit: last,
    hook: readParameter(query, 'hook'),
    source: readParameter(query, 'source'),
    since: readSince(readParameter(query, 'since')),
  }
}

function readSince(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const moment = /^\d{10,16}$/.test(text) ? Number(text) : Date.parse(text)
  if (!Number.isNaN(moment)) return moment
  throw new Problem(
    'usage-invalid',
    'since: expected milliseconds since the epoch, or a time such as 2026-01-02T03:04:05Z.',
  )
}
