// /api/parked: runs all parked deliveries again, or drops them.
import type Router from '@koa/router'
import type { ParkedCalls, ParkedQuery } from '../../deliveries/parked-calls.ts'
import type { Guards } from '../operator.ts'
import { answerJson } from './answer.ts'
import { readParameter, type RouteContext } from './query.ts'

export function addParkedRoutes(router: Router, guards: Guards, { drain }: { readonly drain: ParkedCalls }): void {
  router.post('/api/parked/retry', guards.operate, async (ctx) =>
    answerJson(ctx, await drain.retryParked(readParkedQuery(ctx))),
  )
  router.post('/api/parked/drop', guards.operate, async (ctx) =>
    answerJson(ctx, await drain.dropParked(readParkedQuery(ctx))),
  )
}

/** `hook` selects one hook; `after` is the `next` of the previous answer. Throws `usage-invalid` for a parameter that came twice. */
function readParkedQuery(ctx: RouteContext): ParkedQuery {
  const { hook } = ctx.query
  // a blank name selects no delivery: it must not select all of them
  return { hook: typeof hook === 'string' ? hook : readParameter(ctx, 'hook'), after: readParameter(ctx, 'after') }
}
