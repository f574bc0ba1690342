// Routes of the admin API for the payloads of hooks: their learnt shapes, and the paths that templates can read.
import { normalizeHookName } from '../../../core/model/mapping-rules.ts'
import { Problem } from '../../../core/model/problem.ts'
import type { Handlers } from './handlers.ts'
import type { ApiParts } from './parts.ts'
import { readMoment, readParameter } from './query.ts'
import { answerText } from './answer.ts'

export function handleShapes({ bench }: Pick<ApiParts, 'bench'>) {
  return {
    'GET /api/shapes': async ({ query, ctx }) => {
      const hook = readParameter(query, 'hook')
      const rows: string[] = []
      // one at a time: all of them together may be tens of megabytes
      for await (const row of bench.shapes({ hook, since: readMoment(query, 'since') })) rows.push(JSON.stringify(row))
      answerText(ctx, `{"ok":true,"shapes":[${rows.join(',')}]}`)
      return undefined
    },
    'GET /api/paths': ({ query }) => {
      const hook = readParameter(query, 'hook')
      if (hook === undefined) throw new Problem('usage-invalid', 'hook must be the name of a hook.')
      return bench.paths({ hook: normalizeHookName(hook), mappingId: readParameter(query, 'mappingId') })
    },
  } satisfies Partial<Handlers>
}
