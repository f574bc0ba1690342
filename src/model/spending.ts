// The amounts that turns use. The file has no schema, because every command that reads the store loads it.
import { formatQuantity } from '../base/text.ts'
import { formatCommand } from '../base/shell.ts'

/** The amounts that budgets limit. `nanos`: billionths of a US dollar, because the sum of many small costs must be exact. */
export type Spending = { readonly nanos: number; readonly tokens: number; readonly turns: number }
export type Measure = keyof Spending
export const measures = ['nanos', 'tokens', 'turns'] as const satisfies readonly Measure[]
export const noSpending: Spending = { nanos: 0, tokens: 0, turns: 0 }

const nanosPerUsd = 1_000_000_000

export function addSpendings(amounts: readonly Spending[]): Spending {
  const add = (sum: Spending, { nanos, tokens, turns }: Spending) => ({
    nanos: sum.nanos + nanos,
    tokens: sum.tokens + tokens,
    turns: sum.turns + turns,
  })
  return amounts.reduce(add, noSpending)
}

export function toNanos(usd: number): number {
  return Math.round(usd * nanosPerUsd)
}

export function toUsd(nanos: number): number {
  return nanos / nanosPerUsd
}

/** The command that adds to a budget. */
export function describeRaise(name: string, ...limited: readonly Measure[]): string {
  const options = limited.map((measure) => `--${measure === 'nanos' ? 'usd' : measure} <n>`)
  return `${formatCommand`hookloom budget raise ${name}`} ${options.join(' or ')}`
}

/** An amount for people: `$1.50`, `1200 tokens`, `1 turn`. */
export function formatSpending(measure: Measure, amount: number): string {
  if (measure === 'nanos') return formatUsd(amount)
  return formatQuantity(amount, measure === 'turns' ? 'turn' : 'token')
}

/**
 * Formats dollars without an exponent, with two decimals. An amount below a dollar that is not a whole number of cents has up to three
 * significant digits, and then as many decimals as it needs.
 */
function formatUsd(nanos: number): string {
  const usd = toUsd(nanos)
  const rounded = Math.abs(usd) >= 1 ? usd : Number(usd.toPrecision(3))
  const cents = rounded.toFixed(2)
  return `$${Math.abs(rounded) >= 1 || Number(cents) === rounded ? cents : rounded.toFixed(9).replace(/0+$/, '')}`
}
