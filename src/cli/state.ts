// The values that transforms store with `context.state`: lists them, shows one, or deletes some.
import { formatQuantity } from '../base/text.ts'
import { listModuleState, measureState, type StateValue } from '../gateway/deliveries/module-state.ts'
import { toIsoTime } from '../gateway/deliveries/records.ts'
import { Problem } from '../core/model/problem.ts'
import { askAdmin } from './gateway/gateway.ts'
import { readStore } from './gateway/stored.ts'
import type { Context } from './terminal/context.ts'
import { cutLine, formatTime, printTable, renderTable } from './terminal/print.ts'

type Chosen = { readonly module: string | undefined; readonly key: string | undefined }

/** Lists the modules with values; with a module, its values; with a key, prints the whole value. `--json` without a module: the values of all
 * modules. */
export async function state(context: Context, { module, key }: Chosen): Promise<number> {
  const values = await readStore(context, [], (store) => listModuleState(store, Date.now(), module))
  if (key !== undefined) return showValue(context, values, key)
  if (context.json) for (const value of values) context.printJson(toFields(value))
  else if (values.length === 0)
    context.print(module === undefined ? 'No transform has set a value.' : describeEmptyModule(module))
  else if (module === undefined) context.print(renderModules(values))
  else {
    const rows = values.map(({ key: name, json, setAt, until }) => [
      cutLine(name, 60),
      formatTime(setAt),
      formatTime(until),
      cutLine(json, 80),
    ])
    printTable(context, ['key', 'set', 'until', 'value'], rows)
  }
  return 0
}

function showValue(context: Context, values: readonly StateValue[], key: string): number {
  const found = values.find((value) => value.key === key)
  if (found === undefined) throw buildMissingProblem(key)
  if (context.json) context.printJson(toFields(found))
  else context.print(JSON.stringify(JSON.parse(found.json), null, 2))
  return 0
}

function renderModules(values: readonly StateValue[]): string {
  const modules = [...new Set(values.map(({ module }) => module))]
  const rows = modules.map((module) => {
    const own = values.filter((value) => value.module === module)
    return [
      module,
      String(own.length),
      String(own.reduce((total, value) => total + measureState(value), 0)),
      formatTime(own.reduce((last, { setAt }) => Math.max(last, setAt), 0)),
    ]
  })
  return renderTable(['module', 'keys', 'bytes', 'last set'], rows)
}

function toFields({ module, key, json, setAt, until }: StateValue) {
  return { module, key, value: JSON.parse(json) as unknown, setAt: toIsoTime(setAt), until: toIsoTime(until) }
}

function describeEmptyModule(module: string): string {
  return `${cutLine(module, 60)} has set no value. "hookloom state" lists the modules that have.`
}

function buildMissingProblem(key: string): Problem {
  return new Problem(
    'not-found',
    `The module has no value with the key "${cutLine(key, 60)}". Leave the key out to list its keys.`,
  )
}

/** Deletes one value through the running gateway; without a key, all values of the module. */
export async function dropModuleState(
  context: Context,
  { module, key }: { module: string; key: string | undefined },
): Promise<number> {
  const { dropped } = await askAdmin(context, 'POST /api/state/drop', { query: { module, key } })
  if (context.json) context.printJson({ dropped })
  else if (dropped > 0) context.print(`${formatQuantity(dropped, 'value is', 'values are')} deleted.`)
  else if (key === undefined) context.print(describeEmptyModule(module))
  else throw buildMissingProblem(key)
  return 0
}
