// What a person can do so that runs wait no longer: a button, with what it starts.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { WaitEnd } from '../model/api/answers.ts'
import { call } from './api.ts'
import { formatCount, formatUsd, markUnseen } from './format.ts'
import { useSaid } from './said.ts'
import { Line } from './text.tsx'

type WaitEndProps = {
  readonly end: WaitEnd
  /** A delivery that waits. */
  readonly id: string
  readonly onDone?: () => void
}

/** For the tools of a banner or of a group. */
export function WaitEndTools({ end, id, onDone }: WaitEndProps): JSX.Element {
  const { said, report } = useSaid()
  const [isBusy, setBusy] = useState(false)
  const act = () => {
    setBusy(true)
    report(
      endWait(end, id).finally(() => {
        setBusy(false)
        onDone?.()
      }),
    )
  }
  return (
    <>
      <button type="button" class="primary" disabled={isBusy} onClick={act}>
        <Line text={describeAct(end)} max={120} />
      </button>
      <span class="dim">{describeTurns(end)}</span>
      <span class={said.isBad ? 'mended bad' : 'mended'} role="status">
        {markUnseen(said.text)}
      </span>
    </>
  )
}

function describeAct(end: WaitEnd): string {
  if (end.kind === 'retry') return 'start now'
  if (end.kind === 'resume') return `resume ${end.what}`
  return `raise ${end.budget} by ${describeAmounts(end.by)}`
}

async function endWait(end: WaitEnd, id: string): Promise<string> {
  if (end.kind === 'retry') {
    await call('POST /api/deliveries/{id}/retry', { params: { id } })
    return 'It is due now.'
  }
  if (end.kind === 'resume') {
    const { what } = await call('POST /api/resume', { body: { what: end.what, by: 'the page' } })
    return `${what} is resumed.`
  }
  const { usd, tokens, turns } = end.by
  const query = { usd: usd?.toFixed(2), tokens: tokens?.toFixed(), turns: turns?.toFixed() }
  await call('POST /api/budgets/{name}/raise', { params: { name: end.budget }, query })
  return `${end.budget} is raised by ${describeAmounts(end.by)}.`
}

function describeAmounts({ usd, tokens, turns }: Extract<WaitEnd, { kind: 'raise' }>['by']): string {
  const amounts = [usd && formatUsd(usd), tokens && formatUnits(tokens, 'token'), turns && formatUnits(turns, 'turn')]
  return amounts.filter(Boolean).join(' and ')
}

const formatUnits = (count: number, unit: string) => `${formatCount(count)} ${unit}${count === 1 ? '' : 's'}`

/** `3 turns, about $0.12`. Without a price, only the turns. */
function describeTurns({ turns, usd }: Pick<WaitEnd, 'turns' | 'usd'>): string {
  const cost = usd === null ? '' : usd < 0.01 ? ', less than $0.01' : `, about ${formatUsd(usd)}`
  return `${formatUnits(turns, 'turn')}${cost}`
}
