// /api/budgets: lists the budgets with their spending, and raises one of them.
import { findPeriod, toLimits } from '../../../model/budgets.ts'
import { describeRaise, measures, type Spending, toNanos } from '../../../model/spending.ts'
import { Problem } from '../../../core/model/problem.ts'
import type { Generation } from '../../generation/generation.ts'
import { readBudgets } from '../../deliveries/budgets.ts'
import { cut, findNearest } from '../../../base/text.ts'
import type { ApiParts } from './parts.ts'
import { type QueryTexts, readParameter } from './query.ts'
import type { Handlers } from './handlers.ts'

type BudgetParts = Pick<ApiParts, 'store' | 'generation' | 'clock' | 'lookForJobs'>

export function handleBudgets(parts: BudgetParts) {
  const { store, generation, clock } = parts
  const read = () => readBudgets(store, generation().config, clock())
  return {
    'GET /api/budgets': async () => ({ budgets: await read() }),
    'POST /api/budgets/{name}/raise': async ({ params: { name }, query }) => {
      await raise(parts, query, name)
      parts.lookForJobs()
      const budget = (await read()).find((each) => each.name === name)
      if (budget === undefined) throw buildUnknownProblem(name, generation())
      return { budget }
    },
  } satisfies Partial<Handlers>
}

const units = ['usd', 'tokens', 'turns'] as const
type Amounts = QueryTexts<(typeof units)[number]>

/** Adds to the limits of the present period. */
async function raise({ store, generation, clock }: BudgetParts, query: Amounts, name: string): Promise<void> {
  const { budgets } = generation().config
  const budget = Object.hasOwn(budgets, name) ? budgets[name] : undefined
  if (budget === undefined) throw buildUnknownProblem(name, generation())
  const by: Spending = {
    nanos: toNanos(readAmount(query, 'usd')),
    tokens: readAmount(query, 'tokens'),
    turns: readAmount(query, 'turns'),
  }
  const given = units.filter((unit) => readParameter(query, unit) !== undefined)
  const limited = units.filter((unit) => budget[unit] !== undefined)
  if (given.length === 0) {
    const limits = measures.filter((measure) => toLimits(budget)[measure] !== undefined)
    throw new Problem('usage-invalid', `Say how much to add: ${describeRaise(name, ...limits)}.`)
  }
  const without = given.find((unit) => budget[unit] === undefined)
  if (without !== undefined) {
    throw new Problem(
      'usage-invalid',
      `The budget "${name}" has no limit of ${without}. It limits ${limited.join(', ')}.`,
    )
  }
  await store.raiseBudget({ name, startsAt: findPeriod(budget, clock()).startsAt }, by)
}

function buildUnknownProblem(name: string, { config }: Pick<Generation, 'config'>): Problem {
  const near = findNearest(name, Object.keys(config.budgets))
  const next = near === undefined ? '"hookloom budget" lists them.' : `Did you mean "${near}"?`
  return new Problem('not-found', `There is no budget "${cut(name, 60)}". ${next}`)
}

/** A positive amount; 0 if it is not given. Dollars may have decimals. */
function readAmount(query: Amounts, unit: (typeof units)[number]): number {
  const text = readParameter(query, unit)
  if (text === undefined) return 0
  const form = unit === 'usd' ? /^\d{1,6}(\.\d{1,9})?$/ : /^\d{1,12}$/
  const amount = form.test(text) ? Number(text) : 0
  if (amount > 0) return amount
  const expected = unit === 'usd' ? 'an amount of dollars such as 5 or 0.50' : 'a whole number above 0'
  throw new Problem('usage-invalid', `${unit} must be ${expected}.`)
}
