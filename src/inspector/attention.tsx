// What needs a person: parked, dead, failing and refused, grouped by cause, with what can be done about a whole group.
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { CapturedFields } from '../model/api-replay-types.ts'
import type { AttentionFields, AttentionGroup, RetryFields } from '../model/api-types.ts'
import { undoMs } from './actions.tsx'
import { get, post } from './api.ts'
import { formatCount, markUnseen } from './format.ts'
import { go, type PagePlace } from './place.ts'
import { glyphs } from './rows.ts'
import { Age, Line, useNow } from './text.tsx'

const everyMs = 15_000
/** An older moment is shown as a time of a day. */
const recentMs = 12 * 3_600_000
/** Changes within this time cause one request. */
const gatherMs = 1_000

/** Reads again when `version` changes. The count is in the title and the icon of the tab. */
export function useAttention(version: number): AttentionFields | undefined {
  const [attention, setAttention] = useState<AttentionFields>()
  const [round, setRound] = useState(0)
  useEffect(() => {
    const ended = new AbortController()
    const timer = setTimeout(
      () =>
        void get<AttentionFields>('/api/attention', ended.signal)
          .then(setAttention)
          .catch(() => undefined),
      version + round === 0 ? 0 : gatherMs,
    )
    const next = setTimeout(() => setRound(round + 1), everyMs)
    return () => {
      clearTimeout(timer)
      clearTimeout(next)
      ended.abort()
    }
  }, [version, round])
  const count = attention?.count ?? 0
  useEffect(() => {
    document.title = count === 0 ? 'Hookloom' : `(${count}) Hookloom`
    document.querySelector('link[rel=icon]')?.setAttribute('href', `/inspector/icon${count === 0 ? '' : '-alert'}.svg`)
  }, [count])
  return attention
}

type AttentionProps = { readonly attention: AttentionFields | undefined; readonly place: PagePlace }

export function Attention({ attention, place }: AttentionProps): JSX.Element {
  const now = useNow(0)
  return (
    <div class="list-pane">
      <section class="causes" id="list" tabIndex={0} aria-label="Attention">
        {attention === undefined && <p class="empty">Reading …</p>}
        {attention?.groups.length === 0 && <p class="empty">Nothing needs attention.</p>}
        {attention?.groups.map((group) => (
          <Group key={`${group.kind} ${group.ids.at(-1)}`} group={group} chosen={place.id} now={now} />
        ))}
      </section>
    </div>
  )
}

function Group({ group, chosen, now }: { group: AttentionGroup; chosen: string; now: number }): JSX.Element {
  const { kind, title, place, hooks, count, since, ids } = group
  const [said, setSaid] = useState('')
  const [isBusy, setBusy] = useState(false)
  const isChosen = ids.includes(chosen)
  const [first = ''] = ids
  const sinceAt = Date.parse(since)
  const isRecent = now - sinceAt < recentMs

  /** Sends the requests one by one, so that a large group does not slow down the gateway. */
  async function actOnAll(what: 'retry' | 'drop'): Promise<void> {
    setBusy(true)
    const results = new Map<string, number>()
    for (const [at, id] of ids.entries()) {
      setSaid(`${at + 1} of ${ids.length} …`)
      const result = await post<RetryFields>(`/api/deliveries/${encodeURIComponent(id)}/${what}`).then(
        ({ state, jobs = [] }) => (what === 'drop' ? 'dropped' : jobs.length > 0 ? 'queued again' : `now ${state}`),
        (error: unknown) => (error instanceof Error ? error.message : 'failed'),
      )
      results.set(result, (results.get(result) ?? 0) + 1)
    }
    setSaid(`${[...results].map(([result, times]) => `${times} ${result}`).join(', ')}.`)
    setBusy(false)
  }

  async function capture(): Promise<void> {
    setBusy(true)
    const made = await post<CapturedFields>(`/api/deliveries/${encodeURIComponent(first)}/capture`, {}).then(
      ({ file, decision }) => `Created ${file}. It expects the decision ${decision}.`,
      (error: unknown) => (error instanceof Error ? error.message : 'It failed.'),
    )
    setSaid(made)
    setBusy(false)
  }

  return (
    <article class={`cause${isChosen ? ' chosen' : ''}`} aria-label={`${count} ${kind}`}>
      <h3>
        <span class={`state ${kind}`}>
          <span aria-hidden="true">{glyphs[kind]}</span> {formatCount(count)} {kind}
        </span>{' '}
        <Line text={title} most={240} />
      </h3>
      <p class="dim">
        {place !== null && !title.includes(place) && (
          <>
            <code>
              <Line text={place} most={120} />
            </code>{' '}
            ·{' '}
          </>
        )}
        <Line text={hooks.join(', ')} most={160} /> · {isRecent ? 'the first ' : 'since '}
        <Age at={sinceAt} now={now} />
        {isRecent && ' ago'}
      </p>
      <div class="tools">
        <button type="button" aria-pressed={isChosen} onClick={() => go({ id: isChosen ? '' : first })}>
          open
        </button>
        {kind === 'parked' && (
          <button type="button" disabled={isBusy} onClick={() => void capture()}>
            keep one as fixture
          </button>
        )}
        {(kind === 'parked' || kind === 'dead') && (
          <button type="button" disabled={isBusy} onClick={() => void actOnAll('retry')}>
            retry {formatCount(ids.length)}
          </button>
        )}
        {kind !== 'refused' && <DropAll count={ids.length} isBusy={isBusy} onDrop={() => void actOnAll('drop')} />}
      </div>
      <p class="said" role="status">
        {markUnseen(said)}
      </p>
    </article>
  )
}

type DropAllProps = { readonly count: number; readonly isBusy: boolean; readonly onDrop: () => void }

/** Drops after some seconds. Leaving the view before then drops nothing. */
function DropAll({ count, isBusy, onDrop }: DropAllProps): JSX.Element {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const [isWaiting, setWaiting] = useState(false)
  useEffect(() => () => clearTimeout(timer.current), [])
  function start(): void {
    setWaiting(true)
    timer.current = setTimeout(() => {
      setWaiting(false)
      onDrop()
    }, undoMs)
  }
  function undo(): void {
    clearTimeout(timer.current)
    setWaiting(false)
  }
  return (
    <button type="button" class="apart" disabled={isBusy} onClick={isWaiting ? undo : start}>
      {isWaiting ? 'undo the drop' : `drop ${formatCount(count)}`}
    </button>
  )
}
