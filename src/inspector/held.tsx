// Parts of the health view: the pauses, each with a button to resume, and the budgets. The list shows the pauses too.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { BudgetFields, MeasureFields, PauseFields } from '../model/api/operations.ts'
import { call } from './api.ts'
import { formatClock, formatCount, formatUsd, isRecent, markUnseen } from './format.ts'
import { usePolled } from './polled.ts'
import { describeException } from './said.ts'
import { Age, Line, Sentence, useNow } from './text.tsx'

const everyMs = 10_000

export type Operations = {
  readonly pauses: readonly PauseFields[]
  readonly budgets: readonly BudgetFields[]
  /** Reads everything again. */
  reload(): void
}

/** Reads the pauses and budgets every ten seconds while the page is visible, and at once when `version` changes. */
export function useOperations(version: string): Operations {
  const [round, setRound] = useState(0)
  const read = async (signal: AbortSignal) => {
    const [{ pauses }, { budgets }] = await Promise.all([
      call('GET /api/pauses', { signal }),
      call('GET /api/budgets', { signal }),
    ])
    return { pauses, budgets }
  }
  const operations = usePolled(read, { everyMs, version: `${version} ${round}` }) ?? {
    pauses: [],
    budgets: [],
  }
  return { ...operations, reload: () => setRound((before) => before + 1) }
}

/** The pauses, one line each. `isShort`: for the place above the list, which stays empty without a pause. */
export function Pauses({
  operations,
  isShort = false,
}: {
  operations: Operations
  isShort?: boolean
}): JSX.Element | null {
  const [said, setSaid] = useState('')
  const now = useNow(0)
  const { pauses, reload } = operations
  if (isShort && pauses.length === 0) return null
  async function resume(what: string): Promise<void> {
    setSaid(
      await call('POST /api/resume', { body: { what, by: 'the page' } }).then(
        () => `${what} is resumed.`,
        (error: unknown) => describeException(error),
      ),
    )
    reload()
  }
  return (
    <section class={isShort ? 'paused' : ''} aria-label="Paused">
      {!isShort && <h2>Paused</h2>}
      {pauses.length === 0 && <p class="good">Nothing is paused.</p>}
      <ul>
        {pauses.map(({ what, kind, by, reason, since, until }) => (
          <li key={`${what} ${kind}`}>
            <b>
              <span aria-hidden="true">‖</span> <Line text={what} max={120} />
            </b>{' '}
            {kind === 'budget' ? 'waits for its budget' : 'is paused'}{' '}
            {by !== null && <Line text={`by ${by}`} max={80} />}{' '}
            <span class="dim">
              {isRecent(Date.parse(since), now) ? 'for' : 'since'} <Age at={Date.parse(since)} now={now} />,{' '}
              {until === null ? 'until somebody resumes it' : `until ${formatClock(Date.parse(until))}`}
            </span>
            {reason !== null && (
              <>
                {': '}
                <Sentence text={reason} max={300} />
              </>
            )}{' '}
            {kind !== 'budget' && (
              <button type="button" onClick={() => void resume(what)} aria-label={`Resume ${what}`}>
                resume
              </button>
            )}
          </li>
        ))}
      </ul>
      <span class="dim" role="status">
        {markUnseen(said)}
      </span>
    </section>
  )
}

export function Budgets({ budgets }: Pick<Operations, 'budgets'>): JSX.Element | null {
  if (budgets.length === 0) return null
  return (
    <section aria-label="Budgets">
      <h2>Budgets</h2>
      <ul class="budgets">
        {budgets.map(({ name, period, endsAt, waiting, usd, tokens, turns }) => (
          <li key={name}>
            <p>
              <b>
                <Line text={name} max={80} />
              </b>{' '}
              <span class="dim">
                each {period}, until {formatClock(Date.parse(endsAt))}
              </span>{' '}
              {waiting > 0 && <span class="warn">{formatCount(waiting)} runs wait for it</span>}
            </p>
            <Spent name="dollars" measure={usd} format={formatUsd} />
            <Spent name="tokens" measure={tokens} format={formatCount} />
            <Spent name="turns" measure={turns} format={formatCount} />
          </li>
        ))}
      </ul>
    </section>
  )
}

type SpentProps = { readonly name: string; readonly measure: MeasureFields; format(amount: number): string }

function Spent({ name, measure: { limit, spent, reserved, raised }, format }: SpentProps): JSX.Element | null {
  if (limit === null) return null
  const percent = (amount: number) => (limit === 0 ? 100 : Math.min(100, (amount / limit) * 100))
  const isOver = spent + reserved >= limit
  return (
    <p>
      {format(spent)} of {format(limit)} {name} <span class="dim">{Math.round(percent(spent))} %</span>
      {reserved > 0 && <span class="dim">, {format(reserved)} reserved by turns that run</span>}
      {raised > 0 && <span class="dim">, raised by {format(raised)}</span>}
      <span class="bar" aria-hidden="true">
        <i class={isOver ? 'spent over' : 'spent'} style={{ width: `${percent(spent)}%` }} />
        <i
          class="waited"
          style={{ left: `${percent(spent)}%`, width: `${percent(spent + reserved) - percent(spent)}%` }}
        />
      </span>
    </p>
  )
}
