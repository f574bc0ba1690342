// The parts of a row of the map of hooks: senders, mappings, traffic and trouble.
import type { JSX } from 'preact'
import type { HookFields } from '../model/api/bench.ts'
import { formatCount, formatDuration, addUp } from './format.ts'
import { Link } from './link.tsx'
import { toEditorUrl } from './pipe.tsx'
import { glyphs } from './rows.ts'
import { Age, Ago, Line, Sentence } from './text.tsx'

/** What needs a person comes first, then what may need one, then the hooks with the most traffic. */
function rankTrouble({ open, senders, mappings }: HookFields): number {
  if (open.parked + open.dead + open.refused > 0 || mappings.some(({ transform }) => transform?.problem != null))
    return 0
  const isAmber = open.failing > 0 || senders.some(({ silentSince }) => silentSince !== null)
  return isAmber || mappings.some(({ warnings }) => warnings.length > 0) ? 1 : 2
}

export function sortByTrouble(hooks: readonly HookFields[]): readonly HookFields[] {
  return hooks.toSorted(
    (one, other) => rankTrouble(one) - rankTrouble(other) || addUp(other.day.deliveries) - addUp(one.day.deliveries),
  )
}

/** Who sends, when the last request came, and how often one comes usually. A silent sender is amber. */
export function SenderList({ hook: { name, senders }, now }: { hook: HookFields; now: number }): JSX.Element {
  if (senders.length === 0) return <p class="dim">no sender yet</p>
  return (
    <ul class="senders" aria-label="Senders">
      {senders.toReversed().map(({ source, sourceName, lastAt, usualMs, silentSince }) => (
        <li key={source ?? ''} class={silentSince === null ? 'dim' : 'warn'}>
          <Link class="link" to={{ view: 'list', hook: name ?? '', source: source ?? '', id: '' }}>
            <Line text={sourceName ?? source ?? 'not recognised'} max={60} />
          </Link>{' '}
          {silentSince !== null && (
            <b>
              <span aria-hidden="true">{glyphs.silent}</span> silent,{' '}
            </b>
          )}
          last <Ago at={Date.parse(lastAt)} now={now} />
          {usualMs !== null && `, usually once in ${formatDuration(usualMs)}`}
        </li>
      ))}
    </ul>
  )
}

/** `mapping → transform or template → agent and model → chat`. */
export function Chain({ mapping }: { mapping: HookFields['mappings'][number] }): JSX.Element {
  const { id, conditions, transform, template, agentId, model, to, action, warnings } = mapping
  return (
    <li>
      <b>
        <Line text={id} max={80} />
      </b>{' '}
      {conditions !== null && (
        <code class="dim">
          <Line text={conditions} max={300} />
        </code>
      )}
      <Arrow />
      {transform === null ? (
        <code>
          <Line text={template ?? 'the whole payload'} max={120} />
        </code>
      ) : (
        <a href={toEditorUrl(transform.file ?? '', 1)}>
          <Line text={transform.module} max={120} />
        </a>
      )}
      {agentId !== null && (
        <>
          <Arrow />
          <Line text={agentId} max={60} />{' '}
          <span class="dim">
            <Line text={action === 'wake' ? 'event' : (model ?? '')} max={80} />
          </span>
        </>
      )}
      {to.length > 0 && (
        <>
          <Arrow />
          <Line text={to.join(', ')} max={120} />
        </>
      )}
      {transform?.problem != null && (
        <p class="bad">
          <Line text={transform.problem} max={300} />
        </p>
      )}
      {transform?.shadow != null && (
        <p class="dim">
          <Line text={`Shadow: ${transform.shadow}`} max={300} />
        </p>
      )}
      {warnings.map((warning) => (
        <p key={warning} class="warn">
          <Line text={warning} max={400} />
        </p>
      ))}
    </li>
  )
}

const Arrow = (): JSX.Element => <span class="dim arrow"> → </span>

/** How many deliveries, runs and refusals need a person, and the newest of them. */
export function Troubles({ hook, now }: { hook: HookFields; now: number }): JSX.Element {
  const { name, open, senders, lastFailure } = hook
  const kinds = (['parked', 'dead', 'failing', 'refused'] as const).filter((kind) => open[kind] > 0)
  const silent = senders.filter(({ silentSince }) => silentSince !== null).length
  if (kinds.length === 0 && silent === 0) return <p class="dim trouble">well</p>
  return (
    <div class="trouble">
      {kinds.map((kind) => (
        <Link key={kind} class={`link state ${kind}`} to={{ view: 'list', hook: name ?? '', state: kind, id: '' }}>
          <span aria-hidden="true">{glyphs[kind]}</span> {formatCount(open[kind])} {kind}
        </Link>
      ))}
      {silent > 0 && (
        <Link class="link warn" to={{ view: 'list', state: 'attention', id: '' }}>
          <span aria-hidden="true">{glyphs.silent}</span> {formatCount(silent)} silent
        </Link>
      )}
      {lastFailure !== null && (
        <p>
          <span class="dim">
            <Age at={Date.parse(lastFailure.at)} now={now} />
          </span>{' '}
          <Link class="link" to={{ view: 'list', id: lastFailure.id }}>
            <Sentence text={lastFailure.title} max={120} />
          </Link>
        </p>
      )}
    </div>
  )
}

/** `412 in 24 h`; a shorter time is named. */
export function describeDay({ since, deliveries }: HookFields['day'], now: number): string {
  const hours = Math.round((now - Date.parse(since)) / 3_600_000)
  const count = addUp(deliveries)
  return `${count === 0 ? 'none' : formatCount(count)} in ${hours >= 22 ? 24 : Math.max(1, hours)} h`
}
