// The title of an opened delivery: its state, hook, sender and event, its age, and its id.
import type { JSX } from 'preact'
import type { ShownDelivery } from '../model/api/answers.ts'
import { formatDuration } from './format.ts'
import { Link } from './link.tsx'
import { countJobs, findState, glyphs } from './rows.ts'
import { Ago, Line, useNow } from './text.tsx'

type TitleProps = { readonly delivery: ShownDelivery; readonly onCopy: (what: string, text: string) => void }

export function Title({ delivery, onCopy }: TitleProps): JSX.Element {
  const { deliveryId, hook, source, sourceName, event, jobs, receivedAt, doneMs } = delivery
  const at = Date.parse(receivedAt)
  const now = useNow(at)
  const state = findState({ state: delivery.state, jobs: countJobs(jobs) })
  return (
    <header class="title">
      <h2>
        <span class={`state ${state}`}>
          <span aria-hidden="true">{glyphs[state]}</span> {state}
        </span>{' '}
        <Link class="link" title="Only this hook" to={{ hook }}>
          <Line text={hook} max={80} />
        </Link>{' '}
        {source !== null && (
          <Link class="link dim" title="Only this source" to={{ source }}>
            <Line text={sourceName ?? source} max={60} />
          </Link>
        )}{' '}
        <span class="dim">
          <Line text={event ?? ''} max={80} />
        </span>
      </h2>
      <p class="dim">
        <Ago at={at} now={now} />
        {doneMs !== null && `, took ${formatDuration(doneMs)}`}{' '}
        <button
          type="button"
          class="link id"
          title="Copy the id"
          onClick={() => onCopy(`The id ${deliveryId}`, deliveryId)}
        >
          {deliveryId}
        </button>
      </p>
    </header>
  )
}
