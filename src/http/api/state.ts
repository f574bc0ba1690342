// /api/state: the values that transforms have stored.
import type Router from '@koa/router'
import { dropState, listModuleState } from '../../deliveries/module-state.ts'
import { toIsoTime } from '../../deliveries/records.ts'
import { Problem } from '../../model/problem.ts'
import type { ApiParts } from './parts.ts'
import { readParameter } from './query.ts'
import type { Guards } from '../operator.ts'
import { answerJson } from './answer.ts'

export function addStateRoutes(
  router: Router,
  guards: Guards,
  { store, clock }: Pick<ApiParts, 'store' | 'clock'>,
): void {
  router.get('/api/state', guards.read, async (ctx) => {
    const values = await listModuleState(store, clock(), readParameter(ctx, 'module'))
    const shown = values.map(({ module, key, json, setAt, until }) => {
      const value: unknown = JSON.parse(json)
      return { module, key, value, setAt: toIsoTime(setAt), until: toIsoTime(until) }
    })
    answerJson(ctx, { state: shown })
  })
  router.post('/api/state/drop', guards.operate, async (ctx) => {
    const [module, key] = [readParameter(ctx, 'module'), readParameter(ctx, 'key')]
    if (module === undefined) throw new Problem('usage-invalid', 'Name the module: ?module=<name>.')
    const values = await listModuleState(store, clock(), module)
    let dropped = 0
    for (const value of values) {
      if ((key === undefined || value.key === key) && (await dropState(store, value))) dropped += 1
    }
    answerJson(ctx, { dropped })
  })
}
