// The accounts of budgets, which all engines store, and the rule by which they let a turn start.
import { describeRaise, formatSpending, type Measure, measures, noSpending, type Spending } from '../model/spending.ts'

/** Identifies the account of one budget in one period. `startsAt`: the start of the period, in milliseconds since the epoch. */
export type AccountName = { readonly name: string; readonly startsAt: number }

/**
 * The amount that a turn reserves in one budget. `limits`: the limits in the configuration, without the amounts that the operator added to the
 * period.
 */
export type Reservation = AccountName & {
  /** The end of the period, in milliseconds since the epoch. */
  readonly endsAt: number
  readonly limits: Partial<Spending>
  /** The maximum amounts that the turn can use. */
  readonly most: Spending
}

/** The part of a turn's usage that counts for one budget. */
export type SettledTurn = AccountName & { readonly used: Spending }

export type Account = AccountName & {
  readonly spent: Spending
  /** The sum that running turns have reserved. Each reservation counts while the lease of its job lasts. */
  readonly reserved: Spending
  /** The amounts that the operator added to the limits of this period. */
  readonly raised: Spending
  /** The number of jobs that wait for the budget. */
  readonly waiting: number
}

/**
 * `waits`: the job has no lease any more, and is queued until the budget may have room. `never`: the turn asks for more than the whole budget
 * has. `lost`: the job is no longer leased under this fence.
 */
export type ReserveResult =
  | { readonly kind: 'reserved' | 'lost' }
  | { readonly kind: 'waits' | 'never'; readonly reason: string; readonly budget: string }

/** What tasks used. `turns`: those whose runner ended a run. `uncounted`: those of them that reported no tokens. */
export type TaskUsage = {
  readonly turns: number
  readonly uncounted: number
  readonly inputTokens: number
  readonly outputTokens: number
}

/** `names`: the names of the tasks (`standsFor`). Only tasks that were added less than `withinMs` ago count. */
export type TaskUsageQuery = { readonly names: readonly string[]; readonly withinMs: number }

/** The part of the store that reads budgets. */
export interface AccountReader {
  /** The accounts of budgets, in the order of `names`. The account of a period in which nothing was counted is empty. */
  accounts(names: readonly AccountName[]): Promise<Account[]>
  taskUsage(query: TaskUsageQuery): Promise<TaskUsage>
}

/** The part of the store that keeps budgets. */
export interface BudgetKeeper {
  /**
   * Reserves the amount that a turn may use, in each of its budgets or in none. All owners together never reserve more than a limit has left. A
   * reservation ends with the lease of the job, when the turn is settled, or when the job reserves again. If a budget has no room, the job is
   * queued until the budget may have some, and no attempt counts.
   */
  reserve(job: { id: string; fence: number }, reservations: readonly Reservation[]): Promise<ReserveResult>
  /** Adds to the limits of a budget in one period. All jobs that wait for the budget become due. */
  raiseBudget(account: AccountName, by: Spending): Promise<void>
  /** Makes all jobs that wait for a budget due. Returns false if there are none. */
  wakeBudgets(): Promise<boolean>
  /**
   * Records that an alert about this percentage of a budget was sent. Returns false if an alert about this percentage or a higher one was recorded
   * before.
   */
  noteBudgetAlert(account: AccountName, percent: number): Promise<boolean>
}

/** How many waiting jobs retry when a turn is settled, oldest first. Each of these wakes the same number when it is settled, so the queue drains. */
export const wokenBySettling = 2
/** How many waiting jobs retry soon, because a turn that reserved a part of the budget may die without being settled. */
const maxThatPoll = 4
export const pollingWithinMs = 30_000
/** Less than `clockSetBackMs`: a job whose time is further ahead than that would be due at once, as after a clock was set back. */
const longestWaitMs = 86_400_000

export type Shortage = { readonly reservation: Reservation; readonly account: Account; readonly measure: Measure }

/** The first budget that has no room for the turn. `accounts`: the accounts without the reservations of this job. */
export function findShortage(reservations: readonly Reservation[], accounts: readonly Account[]): Shortage | undefined {
  for (const reservation of reservations) {
    const account = findAccount(accounts, reservation)
    const measure = measures.find((name) => computeFree(reservation, account, name) < reservation.most[name])
    if (measure !== undefined) return { reservation, account, measure }
  }
  return undefined
}

export function findAccount(accounts: readonly Account[], { name, startsAt }: AccountName): Account {
  const found = accounts.find((account) => account.name === name && account.startsAt === startsAt)
  return found ?? { name, startsAt, spent: noSpending, reserved: noSpending, raised: noSpending, waiting: 0 }
}

/** The limit of a measure in this period; infinite if it has none. */
export function findLimit(limits: Partial<Spending>, { raised }: Pick<Account, 'raised'>, measure: Measure): number {
  const limit = limits[measure]
  return limit === undefined ? Number.POSITIVE_INFINITY : limit + raised[measure]
}

function computeFree({ limits }: Reservation, account: Account, measure: Measure): number {
  return findLimit(limits, account, measure) - account.spent[measure] - account.reserved[measure]
}

/** `polling`: the number of jobs that wait for this budget and retry within `pollingWithinMs`. */
export function describeShortage(
  { reservation, account, measure }: Shortage,
  { now, polling }: { readonly now: number; readonly polling: number },
): { readonly kind: 'waits' | 'never'; readonly reason: string; readonly afterMs: number } {
  const { name, limits, most, endsAt } = reservation
  const limit = findLimit(limits, account, measure)
  const format = (amount: number) => formatSpending(measure, amount)
  if (most[measure] > limit) {
    const reason =
      `The turn may use ${format(most[measure])}, and the budget "${name}" has ${format(limit)} for a whole period. ` +
      'Raise the budget, shorten the prompt, or lower maxTokens of the model in models.providers.'
    return { kind: 'never', reason, afterMs: 0 }
  }
  const { spent, reserved } = account
  const held = reserved[measure] === 0 ? '' : ` and ${format(reserved[measure])} reserved`
  const reason =
    `It waits for the budget "${name}": ${format(spent[measure])} of ${format(limit)} spent${held}, and the turn may use ` +
    `${format(most[measure])}. The budget resets at ${new Date(endsAt).toISOString()}. To add to it: ${describeRaise(name, measure)}`
  const isHeld = limit - spent[measure] >= most[measure]
  const untilEndMs = Math.max(1, endsAt - now)
  const afterMs = Math.min(untilEndMs, isHeld && polling < maxThatPoll ? pollingWithinMs : longestWaitMs)
  return { kind: 'waits', reason, afterMs }
}
