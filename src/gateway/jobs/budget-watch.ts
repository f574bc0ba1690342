// Alerts the operator once in each period of a budget when 80 % of it is spent, and once when it is spent or turns wait for it.
import { findPeriod, toLimits } from '../../model/budgets.ts'
import { describeRaise, formatSpending, measures } from '../../model/spending.ts'
import type { Config } from '../../model/config/config.ts'
import type { Log } from '../../base/log.ts'
import { toErrorName } from '../../base/exceptions.ts'
import { findLimit } from '../../store/budgets.ts'
import type { Clock, Store } from '../../store/store.ts'
import type { Alerts } from './alerts.ts'

export type BudgetWatch = {
  /** Called when turns with these budgets were settled. */
  onSettled(names: readonly string[]): void
  /** Called when a turn waits for a budget. */
  onWait(name: string): void
}

const warnAtPercent = 80

export function createBudgetWatch(parts: {
  readonly store: Pick<Store, 'accounts' | 'noteBudgetAlert'>
  readonly config: () => Pick<Config, 'budgets'>
  readonly clock: Clock
  readonly alert: Alerts['reportBudget']
  readonly log: Log
}): BudgetWatch {
  const { store, config, clock, alert, log } = parts

  async function check(name: string, { isWaiting }: { isWaiting: boolean }): Promise<void> {
    const { budgets } = config()
    const budget = Object.hasOwn(budgets, name) ? budgets[name] : undefined
    if (budget === undefined) return
    const { startsAt, endsAt } = findPeriod(budget, clock())
    const [account] = await store.accounts([{ name, startsAt }])
    if (account === undefined) return
    const limits = toLimits(budget)
    const shares = measures.flatMap((measure) => {
      const limit = findLimit(limits, account, measure)
      if (!Number.isFinite(limit)) return []
      const amount = account.spent[measure]
      return [
        {
          measure,
          share: amount / limit,
          said: `${formatSpending(measure, amount)} of ${formatSpending(measure, limit)}`,
        },
      ]
    })
    const most = shares.toSorted((one, other) => other.share - one.share)[0]
    // while other turns have reserved the rest, the budget is not spent: they release most of it when they end
    const isSpent = isWaiting && account.reserved.turns === 0
    if (most === undefined || (!isSpent && most.share * 100 < warnAtPercent)) return
    const percent = isSpent || most.share >= 1 ? 100 : warnAtPercent
    if (!(await store.noteBudgetAlert({ name, startsAt }, percent))) return
    const until = new Date(endsAt).toISOString()
    const what = percent === 100 ? `Its turns wait until ${until}` : `At 100 %, its turns wait until ${until}`
    const next = `"${describeRaise(name, most.measure)}" adds to it.`
    alert({ name, percent, detail: `the budget "${name}" has spent ${most.said}. ${what}. ${next}` })
  }

  function look(name: string, state: { isWaiting: boolean }): void {
    check(name, state).catch((thrown: unknown) => {
      log.warn({ thrown: toErrorName(thrown), budget: name }, 'the account of a budget could not be read')
    })
  }

  return {
    onSettled: (names) => names.forEach((name) => look(name, { isWaiting: false })),
    onWait: (name) => look(name, { isWaiting: true }),
  }
}
