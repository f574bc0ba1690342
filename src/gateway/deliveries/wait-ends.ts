// Finds what a person can do so that runs wait no longer, and what that starts: so many turns, at about this cost.
import type { WaitEnd } from '../../model/api/answers.ts'
import type { BudgetFields, MeasureFields } from '../../model/api/operations.ts'
import { findTurnUsd } from './budgets.ts'
import type { Config } from '../../model/config/config.ts'
import type { KeptBack } from '../../store/kept-back.ts'
import type { StoreReader } from '../../store/store.ts'
import type { Wait } from '../../store/waits.ts'

/** What the last turns used on average. Undefined: nothing is known. */
export type MeanTurn = { readonly usd: number | undefined; readonly tokens: number | undefined }

/** The number of newest deliveries of a hook whose turns are read. */
const maxRead = 20

export async function readMeanTurn(
  store: Pick<StoreReader, 'deliveries'>,
  { hook, models }: { readonly hook: string | undefined; readonly models: Config['models'] },
): Promise<MeanTurn> {
  const records = await store.deliveries({ limit: maxRead, hook })
  const used = records.flatMap(({ jobs }) =>
    jobs.flatMap(({ steps }) =>
      steps.flatMap(({ model, usage }) =>
        usage === undefined
          ? []
          : [{ usd: findTurnUsd(usage, model, models) ?? 0, tokens: usage.inputTokens + usage.outputTokens }],
      ),
    ),
  )
  const findMean = (amounts: readonly number[]) => {
    const sum = amounts.reduce((total, amount) => total + amount, 0)
    return sum === 0 ? undefined : sum / amounts.length
  }
  return { usd: findMean(used.map(({ usd }) => usd)), tokens: findMean(used.map(({ tokens }) => tokens)) }
}

type Facts = {
  /** The number of turns that the wait keeps back. */
  readonly turns: number
  readonly mean: MeanTurn
  readonly budgets: readonly BudgetFields[]
  /** The name of a hold's label for people. */
  readonly nameLabel: (label: string) => string
}

/** Undefined if no call ends the wait, or if a button already does: a run that fails is tried again with `retry`. */
export function findWaitEnd(wait: Wait, { turns, mean, budgets, nameLabel }: Facts): WaitEnd | undefined {
  const usd = mean.usd === undefined ? null : turns * mean.usd
  switch (wait.kind) {
    case 'hold':
      return wait.hold.kind === 'budget' ? undefined : { kind: 'resume', what: nameLabel(wait.hold.label), turns, usd }
    case 'budget': {
      const budget = budgets.find(({ name }) => name === wait.name)
      if (budget === undefined) return undefined
      const by = findRaise(budget, turns, mean)
      // nothing is missing: a turn that ends makes them due
      if (Object.values(by).every((amount) => amount === null)) return undefined
      return { kind: 'raise', budget: wait.name, by, turns, usd }
    }
    case 'quiet':
      return { kind: 'retry', turns, usd }
    default:
      return undefined
  }
}

/** The turns that wait must have room. A turn reserves at most what the budget has of a whole period, so at least that much must be left. */
function findRaise({ usd, tokens, turns: limited }: BudgetFields, turns: number, mean: MeanTurn) {
  const findMissing = ({ limit, raised, left }: MeasureFields, used: number | undefined) =>
    limit === null || left === null ? 0 : Math.max(limit - raised, turns * (used ?? 0)) - left
  const toAmount = (missing: number) => (missing > 0 ? Math.ceil(missing) : null)
  const cents = toAmount(Number((findMissing(usd, mean.usd) * 100).toFixed(6)))
  return {
    usd: cents === null ? null : cents / 100,
    tokens: toAmount(findMissing(tokens, mean.tokens)),
    turns: limited.left === null ? null : toAmount(turns - limited.left),
  }
}

/** Whether a wait is for the same hold or budget. */
export function isSameCause(one: Wait, other: KeptBack['wait']): boolean {
  if (one.kind === 'hold')
    return other.kind === 'hold' && one.hold.label === other.hold.label && one.hold.kind === other.hold.kind
  return one.kind === 'budget' && other.kind === 'budget' && one.name === other.name
}
