// What the runs of a delivery used: dollars where their models have a price, and tokens.
import type { JSX } from 'preact'
import type { RunFields } from '../model/api/answers.ts'
import { formatCount, formatUsd, addUp } from './format.ts'

export function Used({ runs }: { runs: readonly RunFields[] }): JSX.Element | null {
  const usages = runs.flatMap(({ steps }) => steps.flatMap(({ usage }) => usage ?? []))
  if (usages.length === 0) return null
  const priced = runs.flatMap(({ usd }) => usd ?? [])
  return (
    <p class="used" aria-label="What it used">
      {priced.length > 0 && <b>{formatUsd(addUp(priced))}</b>}{' '}
      <span class="dim">
        {formatCount(addUp(usages.map(({ inputTokens }) => inputTokens)))} tokens in,{' '}
        {formatCount(addUp(usages.map(({ outputTokens }) => outputTokens)))} out
        {priced.length === 0 && ', no price'}
        {priced.length > 0 && priced.length < usages.length && `, ${usages.length - priced.length} without a price`}
      </span>
    </p>
  )
}
