// What runs cost: a strip above the list about today, and a view of today, of another day or of two weeks, by hook, agent and model, each with its
// dearest run. Without a price, tokens stand there.
import type { JSX } from 'preact'
import type { DearestRun, SpendingFields, SpendingRow } from '../model/api/spending.ts'
import { findDearest } from '../model/api/dearest.ts'
import { call } from './api.ts'
import { findMidnight, formatCount, formatDuration, formatLongDay, formatUsd, addUp } from './format.ts'
import { Link } from './link.tsx'
import type { PagePlace } from './place.ts'
import { usePolled } from './polled.ts'
import { Table } from './table.tsx'
import { Line } from './text.tsx'

const everyMs = 60_000
const shownDays = 14
const maxRows = 50

export function useSpending(ago: number): SpendingFields | undefined {
  const since = findMidnight(ago).toISOString()
  return usePolled((signal) => call('GET /api/spending', { query: { since }, signal }), { everyMs, version: since })
}

/** The facts of today, each a link to what it counts. */
export function Today(): JSX.Element | null {
  const spending = useSpending(0)
  if (spending === undefined || spending.deliveries === 0) return null
  const { deliveries, failed, waiting, budgetUsd, p95Ms } = spending
  const since = String(findMidnight(0).getTime())
  const isOver = budgetUsd !== null && (spending.usd ?? 0) >= budgetUsd
  return (
    <nav class="today" aria-label="Today">
      <Link to={{ since, until: '', state: '' }}>
        today <b>{formatCount(deliveries)}</b>
      </Link>
      <Link class={failed > 0 ? 'bad' : ''} to={{ state: 'attention' }}>
        <b>{formatCount(failed)}</b> failed
      </Link>
      <Link to={{ since, until: '', state: 'waiting' }}>
        <b>{formatCount(waiting)}</b> {waiting === 1 ? 'waits' : 'wait'}
      </Link>
      <Link class={isOver ? 'warn' : ''} to={{ view: 'costs', since, until: '' }}>
        <b>{describeCost(spending)}</b>
        {budgetUsd !== null && ` of ${formatUsd(budgetUsd)}`}
      </Link>
      {p95Ms !== null && (
        <Link to={{ view: 'costs', since, until: '' }} title="95 of 100 runs ended within this time.">
          p95 <b>{formatDuration(p95Ms)}</b>
        </Link>
      )}
    </nav>
  )
}

type Cost = Pick<SpendingRow, 'usd' | 'inputTokens' | 'outputTokens'>

export function describeCost({ usd, inputTokens, outputTokens }: Cost): string {
  return usd === null ? `${formatCount(inputTokens + outputTokens)} tokens` : formatUsd(usd)
}

/** A link to the delivery with the run that cost most. */
export function DearestLink({ run: { deliveryId, usd, tokens } }: { run: DearestRun }): JSX.Element {
  return (
    <Link class="link" to={{ view: 'list', id: deliveryId, state: '' }}>
      {usd === null ? `${formatCount(tokens)} tokens` : formatUsd(usd)}
    </Link>
  )
}

/** `place.since`: the beginning of the only day that the tables have. Any other time shows all days. */
export function Costs({ place }: { place: PagePlace }): JSX.Element {
  const spending = useSpending(shownDays - 1)
  if (spending === undefined) return <p class="empty">Reading …</p>
  const days = Array.from({ length: shownDays }, (_, at) => findMidnight(shownDays - 1 - at))
  const chosen = days.find((day) => String(day.getTime()) === place.since)
  const rows = chosen === undefined ? spending.rows : pickDay(chosen, spending.rows)
  const whole = sumRows('', rows)
  return (
    <div class="health costs" id="view" tabIndex={0} role="region" aria-label="Costs">
      <h2 class="verdict">
        {describeCost(whole)} {chosen === undefined ? `in ${shownDays} days` : nameDay(chosen)}{' '}
        <span class="dim">for {formatCount(whole.runs)} runs</span>
      </h2>
      <p class="tools">
        {[undefined, findMidnight(0)].map((day) => (
          <Link
            key={day?.getTime() ?? 0}
            class="button"
            aria-current={chosen?.getTime() === day?.getTime()}
            to={{ since: day === undefined ? '' : String(day.getTime()), until: '' }}
          >
            {day === undefined ? `${shownDays} days` : 'today'}
          </Link>
        ))}
      </p>
      <Days days={days} chosen={chosen} rows={spending.rows} />
      <By title="hook" rows={rows} read={({ hook }) => hook ?? 'heartbeats'} isLinked />
      <By title="agent" rows={rows} read={({ agentId }) => agentId} />
      <By title="model" rows={rows} read={({ model }) => model ?? 'not known'} />
      <p class="dim">
        {whole.uncounted > 0 && `${formatCount(whole.uncounted)} runs have no count of tokens. `}
        {rows.some(({ usd, inputTokens }) => usd === null && inputTokens > 0) &&
          'Some models have no price: models.providers.<name>.models[].cost sets it.'}
      </p>
    </div>
  )
}

const nameDay = (day: Date) =>
  day.getTime() === findMidnight(0).getTime() ? 'today' : `on ${formatLongDay(day.getTime(), Date.now())}`

function toDayFilter(day: Date): { readonly since: string; readonly until: string } {
  const next = new Date(day)
  next.setDate(day.getDate() + 1)
  return { since: String(day.getTime()), until: next.getTime() > Date.now() ? '' : String(next.getTime()) }
}

/** The rows of a day. A day of the summer time may begin an hour beside the day of the answer. */
const pickDay = (day: Date, rows: readonly SpendingRow[]) =>
  rows.filter((row) => Math.abs(Date.parse(row.day) - day.getTime()) < 7_200_000)

type Sum = Omit<SpendingRow, 'day' | 'hook' | 'agentId' | 'model'> & { readonly name: string }

export function sumRows(name: string, rows: readonly SpendingRow[]): Sum {
  const add = (key: 'runs' | 'failed' | 'uncounted' | 'inputTokens' | 'outputTokens') =>
    addUp(rows.map((row) => row[key]))
  const priced = rows.flatMap(({ usd }) => usd ?? [])
  return {
    name,
    runs: add('runs'),
    failed: add('failed'),
    uncounted: add('uncounted'),
    inputTokens: add('inputTokens'),
    outputTokens: add('outputTokens'),
    usd: priced.length === 0 ? null : addUp(priced),
    dearest: findDearest(rows.flatMap(({ dearest }) => dearest ?? [])),
  }
}

type DaysProps = {
  readonly days: readonly Date[]
  readonly chosen: Date | undefined
  readonly rows: readonly SpendingRow[]
}

/** A column for each day. A click shows only this day. */
function Days({ days: all, chosen, rows }: DaysProps): JSX.Element {
  const days = all.map((day) => ({ day, sum: sumRows(formatLongDay(day.getTime(), Date.now()), pickDay(day, rows)) }))
  const isPriced = rows.some(({ usd }) => usd !== null)
  const height = ({ usd, inputTokens, outputTokens }: Sum) => (isPriced ? (usd ?? 0) : inputTokens + outputTokens)
  const most = Math.max(...days.map(({ sum }) => height(sum)), Number.MIN_VALUE)
  return (
    <ol class="days" aria-label={isPriced ? 'Dollars by day' : 'Tokens by day'}>
      {days.map(({ day, sum }) => (
        <li key={day.getTime()} title={`${sum.name}: ${describeCost(sum)}, ${sum.runs} runs`}>
          <span class="value">{height(sum) > 0 ? describeCost(sum) : ''}</span>
          <i style={{ height: `${(height(sum) / most) * 5}rem` }} />
          <Link
            class={day === chosen ? 'chosen' : 'dim'}
            aria-label={`${day.getDate()}, ${sum.name}: ${describeCost(sum)}, ${sum.runs} runs`}
            to={day === chosen ? { since: '', until: '' } : toDayFilter(day)}
          >
            {day.getDate()}
          </Link>
        </li>
      ))}
    </ol>
  )
}

type ByProps = {
  readonly title: string
  readonly rows: readonly SpendingRow[]
  readonly read: (row: SpendingRow) => string
  readonly isLinked?: boolean
}

function By({ title, rows, read, isLinked = false }: ByProps): JSX.Element {
  const names = [...new Set(rows.map(read))]
  const sums = names.map((name) =>
    sumRows(
      name,
      rows.filter((row) => read(row) === name),
    ),
  )
  const sorted = sums.toSorted(
    (one, other) => (other.usd ?? 0) - (one.usd ?? 0) || other.inputTokens - one.inputTokens || other.runs - one.runs,
  )
  return (
    <section aria-label={`By ${title}`}>
      <h2>By {title}</h2>
      <Table
        label={`Costs by ${title}`}
        heads={[title, 'cost', 'dearest run', 'runs', 'failed', 'tokens in', 'tokens out']}
      >
        {sorted.slice(0, maxRows).map((sum) => (
          <tr key={sum.name}>
            <td>
              {isLinked && sum.name !== 'heartbeats' ? (
                <Link class="link" to={{ view: 'list', hook: sum.name }}>
                  <Line text={sum.name} max={80} />
                </Link>
              ) : (
                <Line text={sum.name} max={80} />
              )}
            </td>
            <td class="figure">
              {sum.usd === null ? (
                <span class="dim">{sum.inputTokens > 0 ? 'no price' : '–'}</span>
              ) : (
                formatUsd(sum.usd)
              )}
            </td>
            <td class="figure">{sum.dearest === null ? '–' : <DearestLink run={sum.dearest} />}</td>
            <td class="figure">{formatCount(sum.runs)}</td>
            <td class={sum.failed > 0 ? 'figure bad' : 'figure'}>{formatCount(sum.failed)}</td>
            <td class="figure">{formatCount(sum.inputTokens)}</td>
            <td class="figure">{formatCount(sum.outputTokens)}</td>
          </tr>
        ))}
      </Table>
    </section>
  )
}
