// /api/budgets: lists the budgets with their spending, and raises one of them.
import type Router from '@koa/router'
import { findPeriod, toLimits } from '../../model/budgets.ts'
import { describeRaise, measures, type Spending, toNanos } from '../../model/spending.ts'
import { Problem } from '../../model/problem.ts'
import { readBudgets } from '../../deliveries/budgets.ts'
import { cut, findNearest } from '../../base/text.ts'
import type { ApiParts } from './parts.ts'
import { readParameter, type RouteContext } from './query.ts'
import type { Guards } from '../operator.ts'
import { answerJson } from './answer.ts'

type BudgetParts = Pick<ApiParts, 'store' | 'generation' | 'clock' | 'lookForJobs'>

export function addBudgetRoutes(router: Router, guards: Guards, parts: BudgetParts): void {
  const { store, generation, clock } = parts
  const read = () => readBudgets(store, generation().config, clock())
  router.get('/api/budgets', guards.read, async (ctx) => answerJson(ctx, { budgets: await read() }))
  router.post('/api/budgets/:name/raise', guards.operate, async (ctx) => {
    const name = ctx.params['name'] ?? ''
    await raise(parts, ctx, name)
    parts.lookForJobs()
    answerJson(ctx, { budget: (await read()).find((budget) => budget.name === name) })
  })
}

/** Adds to the limits of the present period. */
async function raise({ store, generation, clock }: BudgetParts, ctx: RouteContext, name: string): Promise<void> {
  const { budgets } = generation().config
  const budget = Object.hasOwn(budgets, name) ? budgets[name] : undefined
  if (budget === undefined) {
    const near = findNearest(name, Object.keys(budgets))
    const next = near === undefined ? '"hookloom budget" lists them.' : `Did you mean "${near}"?`
    throw new Problem('not-found', `There is no budget "${cut(name, 60)}". ${next}`)
  }
  const by: Spending = {
    nanos: toNanos(readAmount(ctx, 'usd')),
    tokens: readAmount(ctx, 'tokens'),
    turns: readAmount(ctx, 'turns'),
  }
  const given = (['usd', 'tokens', 'turns'] as const).filter((unit) => readParameter(ctx, unit) !== undefined)
  const limited = (['usd', 'tokens', 'turns'] as const).filter((unit) => budget[unit] !== undefined)
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

/** A positive amount; 0 if it is not given. Dollars may have decimals. */
function readAmount(ctx: RouteContext, unit: 'usd' | 'tokens' | 'turns'): number {
  const text = readParameter(ctx, unit)
  if (text === undefined) return 0
  const form = unit === 'usd' ? /^\d{1,6}(\.\d{1,9})?$/ : /^\d{1,12}$/
  const amount = form.test(text) ? Number(text) : 0
  if (amount > 0) return amount
  const expected = unit === 'usd' ? 'an amount of dollars such as 5 or 0.50' : 'a whole number above 0'
  throw new Problem('usage-invalid', `${unit} must be ${expected}.`)
}
