// Budgets as the admin API, the commands and the metrics show them.
import type { BudgetFields, MeasureFields } from '../../model/api/operations.ts'
import { findPeriod, toLimits } from '../../model/budgets.ts'
import { findModelConfig } from '../../model/config/agents-rules.ts'
import type { Usage } from '../../model/job.ts'
import { toTurnNanos } from '../../model/prices.ts'
import { type Measure, toUsd } from '../../model/spending.ts'
import type { Config } from '../../model/config/config.ts'
import { type Account, findAccount } from '../../store/budgets.ts'
import type { StoreReader } from '../../store/store.ts'
import { toIsoTime } from './records.ts'

type Configured = Config['budgets'][string]

/** The budgets in their present periods, in the order of the configuration. */
export async function readBudgets(
  store: Pick<StoreReader, 'accounts'>,
  { budgets }: Pick<Config, 'budgets'>,
  now: number,
): Promise<BudgetFields[]> {
  const present = Object.entries(budgets).map(([name, budget]) => ({ name, budget, ...findPeriod(budget, now) }))
  const accounts = await store.accounts(present)
  return present.map(({ name, budget, startsAt, endsAt }) => {
    const account = findAccount(accounts, { name, startsAt })
    return {
      name,
      period: budget.period,
      timezone: budget.timezone,
      startsAt: toIsoTime(startsAt),
      endsAt: toIsoTime(endsAt),
      waiting: account.waiting,
      usd: toMeasureFields('nanos', budget, account),
      tokens: toMeasureFields('tokens', budget, account),
      turns: toMeasureFields('turns', budget, account),
    }
  })
}

function toMeasureFields(measure: Measure, budget: Configured, { spent, reserved, raised }: Account): MeasureFields {
  const toDisplayedAmount = (amount: number) => (measure === 'nanos' ? toUsd(amount) : amount)
  const configured = toLimits(budget)[measure]
  const limit = configured === undefined ? undefined : configured + raised[measure]
  return {
    limit: limit === undefined ? null : toDisplayedAmount(limit),
    raised: toDisplayedAmount(raised[measure]),
    spent: toDisplayedAmount(spent[measure]),
    reserved: toDisplayedAmount(reserved[measure]),
    left: limit === undefined ? null : toDisplayedAmount(Math.max(0, limit - spent[measure] - reserved[measure])),
  }
}

/** The cost of a turn in US dollars: by the price of its model, or as its runner reported it. Undefined without either. */
export function findTurnUsd(usage: Usage, model: string | undefined, models: Config['models']): number | undefined {
  const cost = findModelConfig(model, models)?.cost
  return cost === undefined && usage.costUsd === undefined ? undefined : toUsd(toTurnNanos(usage, cost))
}
