// /api/state: the values that transforms have stored.
import { dropState, listModuleState } from '../../deliveries/module-state.ts'
import { toIsoTime } from '../../deliveries/records.ts'
import { Problem } from '../../../core/model/problem.ts'
import type { ApiParts } from './parts.ts'
import { readParameter } from './query.ts'
import type { Handlers } from './handlers.ts'

export function handleState({ store, clock }: Pick<ApiParts, 'store' | 'clock'>) {
  return {
    'GET /api/state': async ({ query }) => {
      const values = await listModuleState(store, clock(), readParameter(query, 'module'))
      const state = values.map(({ module, key, json, setAt, until }) => {
        const value: unknown = JSON.parse(json)
        return { module, key, value, setAt: toIsoTime(setAt), until: toIsoTime(until) }
      })
      return { state }
    },
    'POST /api/state/drop': async ({ query }) => {
      const module = readParameter(query, 'module')
      const key = readParameter(query, 'key')
      if (module === undefined) throw new Problem('usage-invalid', 'Name the module: ?module=<name>.')
      const values = await listModuleState(store, clock(), module)
      let dropped = 0
      for (const value of values) {
        if ((key === undefined || value.key === key) && (await dropState(store, value))) dropped += 1
      }
      return { dropped }
    },
  } satisfies Partial<Handlers>
}
