// Lists the budgets, or adds an amount to a budget until its period ends.
import { loadConfig } from '../gateway/config/config.ts'
import type { BudgetFields, MeasureFields } from '../model/api/operations.ts'
import { formatSpending, type Measure, toNanos } from '../model/spending.ts'
import { readBudgets } from '../gateway/deliveries/budgets.ts'
import { askAdmin } from './gateway/gateway.ts'
import { readStore } from './gateway/stored.ts'
import type { Context } from './terminal/context.ts'
import { formatTime, printTable } from './terminal/print.ts'

export async function budget(context: Context): Promise<number> {
  const { config } = loadConfig({ dir: context.dir, env: context.env })
  const now = Date.now()
  // if no gateway has created a store here yet, nothing is spent
  const unspent = await readBudgets({ accounts: async () => [] }, config, now)
  const budgets = await readStore(context, unspent, (store) => readBudgets(store, config, now))
  if (context.json) for (const each of budgets) context.printJson(each)
  else if (budgets.length === 0) context.print('The configuration has no budget. Add one to "budgets".')
  else printTable(context, heads, budgets.flatMap(listRows))
  return 0
}

const heads = ['budget', 'spent', 'reserved', 'left', 'of', 'resets', 'waiting']

const units = { usd: 'nanos', tokens: 'tokens', turns: 'turns' } as const satisfies Record<string, Measure>

/** One row for each limit. */
function listRows(shown: BudgetFields): string[][] {
  return (['usd', 'tokens', 'turns'] as const).flatMap((unit) => {
    const { limit, spent, reserved, left }: MeasureFields = shown[unit]
    if (limit === null) return []
    const format = (amount: number) => formatSpending(units[unit], unit === 'usd' ? toNanos(amount) : amount)
    const amounts = [spent, reserved, left ?? 0, limit].map(format)
    return [[shown.name, ...amounts, formatTime(Date.parse(shown.endsAt)), String(shown.waiting)]]
  })
}

export type RaiseOptions = { readonly usd?: string; readonly tokens?: string; readonly turns?: string }

/** Throws the gateway's refusal if an amount or the name is wrong. */
export async function raiseBudget(
  context: Context,
  { name, usd, tokens, turns }: RaiseOptions & { readonly name: string },
): Promise<number> {
  const asked = { params: { name }, query: { usd, tokens, turns } }
  const { budget: raised } = await askAdmin(context, 'POST /api/budgets/{name}/raise', asked)
  if (context.json) context.printJson(raised)
  else printTable(context, heads, listRows(raised))
  return 0
}
