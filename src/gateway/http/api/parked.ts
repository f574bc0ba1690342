// /api/parked: runs all parked deliveries again, or drops them.
import type { ParkedQuery } from '../../deliveries/parked-calls.ts'
import type { ApiParts } from './parts.ts'
import type { Handlers } from './handlers.ts'
import { type QueryTexts, readParameter } from './query.ts'

export function handleParked({ drain }: Pick<ApiParts, 'drain'>) {
  return {
    'POST /api/parked/retry': ({ query }) => drain.retryParked(readParkedQuery(query)),
    'POST /api/parked/drop': ({ query }) => drain.dropParked(readParkedQuery(query)),
  } satisfies Partial<Handlers>
}

/** `hook` selects one hook; `after` is the `next` of the previous answer. Throws `usage-invalid` for a parameter that came twice. */
function readParkedQuery(query: QueryTexts<'hook' | 'after'>): ParkedQuery {
  const { hook } = query
  // a blank name selects no delivery: it must not select all of them
  return { hook: typeof hook === 'string' ? hook : readParameter(query, 'hook'), after: readParameter(query, 'after') }
}
