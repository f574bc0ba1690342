// Routes of the admin API for the payloads of hooks: their learnt shapes, and the paths that templates can read.
import type Router from '@koa/router'
import { normalizeHookName } from '../../model/config/mapping-rules.ts'
import { Problem } from '../../model/problem.ts'
import type { Guards } from '../operator.ts'
import type { AdminBench } from './bench.ts'
import { readMoment, readParameter } from './query.ts'
import { answerJson, answerText } from './answer.ts'

export function addShapeRoutes(
  router: Router,
  guards: Guards,
  { bench }: { readonly bench: Pick<AdminBench, 'shapes' | 'paths'> },
): void {
  router.get('/api/shapes', guards.read, async (ctx) => {
    const hook = readParameter(ctx, 'hook')
    const rows: string[] = []
    // one at a time: all of them together may be tens of megabytes
    for await (const row of bench.shapes({ hook, since: readMoment(ctx, 'since') })) rows.push(JSON.stringify(row))
    answerText(ctx, `{"ok":true,"shapes":[${rows.join(',')}]}`)
  })
  router.get('/api/paths', guards.read, async (ctx) => {
    const hook = readParameter(ctx, 'hook')
    if (hook === undefined) throw new Problem('usage-invalid', 'hook must be the name of a hook.')
    answerJson(ctx, await bench.paths({ hook: normalizeHookName(hook), mappingId: readParameter(ctx, 'mappingId') }))
  })
}
