// What needs a person, grouped by cause: parked deliveries, dead and failing runs, refused requests, and runs that a pause or a budget keeps back, with
// the actions for a whole group.
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { AttentionFields, AttentionGroup } from '../model/api/operations.ts'
import { call } from './api.ts'
import { actOnAll, DropAll } from './bulk.tsx'
import { formatCount, isRecent, markUnseen } from './format.ts'
import { Link } from './link.tsx'
import { go, type PagePlace } from './place.ts'
import { useThrottled } from './polled.ts'
import { VerifyAgain } from './refusal.tsx'
import { glyphs, isWithin } from './rows.ts'
import { captureDelivery, describeException } from './said.ts'
import { Ago, Line, Sentence, useNow } from './text.tsx'
import { WaitEndTools } from './wait-end.tsx'

const everyMs = 15_000
/** All changes within this time cause one request. */
const gatherMs = 1_000

/**
 * Reads the groups that need a person every 15 seconds, and soon after `version` changes. Shows the number of their items in the title and the icon
 * of the tab.
 */
export function useAttention(version: number): AttentionFields | undefined {
  const [attention, setAttention] = useState<AttentionFields>()
  const [round, setRound] = useState(0)
  const gathered = useThrottled(version, gatherMs)
  useEffect(() => {
    const ended = new AbortController()
    void call('GET /api/attention', { signal: ended.signal }).then(setAttention, () => undefined)
    const next = setTimeout(() => setRound(round + 1), everyMs)
    return () => {
      clearTimeout(next)
      ended.abort()
    }
  }, [gathered, round])
  const count = attention?.count ?? 0
  useEffect(() => {
    document.title = count === 0 ? 'Hookloom' : `(${count}) Hookloom`
    document.querySelector('link[rel=icon]')?.setAttribute('href', `/inspector/icon${count === 0 ? '' : '-alert'}.svg`)
  }, [count])
  return attention
}

type AttentionProps = {
  readonly attention: AttentionFields | undefined
  readonly place: PagePlace
  /** Changes when a file is saved, and when another generation becomes live. */
  readonly saved: string
}

/** With a filter of the time, only what failed last within it. What waits or is silent now stays. */
export function Attention({ attention, place, saved }: AttentionProps): JSX.Element {
  const now = useNow(0)
  const groups = attention?.groups.filter(
    ({ kind, at }) => kind === 'waiting' || kind === 'silent' || isWithin(Date.parse(at), place),
  )
  return (
    <div class="list-pane">
      <section class="causes" id="list" tabIndex={0} aria-label="Attention">
        {attention === undefined && <p class="empty">Reading …</p>}
        {groups?.length === 0 && (
          <p class="empty">
            {attention?.groups.length === 0 ? 'Nothing needs attention.' : 'Nothing failed in the chosen time.'}
          </p>
        )}
        {groups?.map((group) => (
          <Group
            key={`${group.kind} ${group.ids.at(-1) ?? group.title}`}
            group={group}
            chosen={place.id}
            now={now}
            saved={saved}
          />
        ))}
      </section>
    </div>
  )
}

type GroupProps = { group: AttentionGroup; chosen: string; now: number; saved: string }

function Group({ group, chosen, now, saved }: GroupProps): JSX.Element {
  const { kind, title, place, code, hooks, count, since, at, ids, waitEnd } = group
  const [said, setSaid] = useState('')
  const [isBusy, setBusy] = useState(false)
  const isChosen = ids.includes(chosen)
  const [first = ''] = ids
  const canRetry = kind === 'parked' || kind === 'dead' || kind === 'failing'
  const sinceAt = Date.parse(since)

  async function act(what: 'retry' | 'drop'): Promise<void> {
    setBusy(true)
    await actOnAll(ids, what, setSaid)
    setBusy(false)
  }

  async function end(): Promise<void> {
    setBusy(true)
    await call('POST /api/attention/end', { query: { hook: hooks[0], code: code ?? '' } }).then(
      () => setSaid('Ended, until the next one.'),
      (error: unknown) => setSaid(describeException(error)),
    )
    setBusy(false)
  }

  async function capture(): Promise<void> {
    setBusy(true)
    setSaid(await captureDelivery(first).catch((error: unknown) => describeException(error)))
    setBusy(false)
  }

  return (
    <article class={`cause${isChosen ? ' chosen' : ''}`} aria-label={`${count} ${kind}`}>
      <h3>
        <span class={`state ${kind}`}>
          <span aria-hidden="true">{glyphs[kind]}</span> {formatCount(count)} {kind}
        </span>{' '}
        <Sentence text={title} max={240} />
      </h3>
      <p class="dim">
        {place !== null && !title.includes(place) && (
          <>
            <code>
              <Line text={place} max={120} />
            </code>{' '}
            ·{' '}
          </>
        )}
        <Line text={hooks.join(', ')} max={160} /> · {isRecent(sinceAt, now) ? 'the first ' : 'since '}
        <Ago at={sinceAt} now={now} />
        {at !== since && (
          <>
            , the last <Ago at={Date.parse(at)} now={now} />
          </>
        )}
      </p>
      <div class="tools">
        {kind === 'silent' ? (
          <Link class="button" to={{ hook: hooks[0] ?? '', state: '' }}>
            its deliveries
          </Link>
        ) : (
          <button
            type="button"
            disabled={first === ''}
            aria-pressed={isChosen}
            onClick={() => go({ id: isChosen ? '' : first })}
          >
            open
          </button>
        )}
        {waitEnd !== undefined && <WaitEndTools end={waitEnd} id={first} />}
        {kind === 'parked' && (
          <button type="button" disabled={isBusy} onClick={() => void capture()}>
            keep one as fixture
          </button>
        )}
        {kind === 'parked' && <RetryPreview ids={ids} saved={saved} />}
        {canRetry && (
          <button type="button" disabled={isBusy} onClick={() => void act('retry')}>
            {kind === 'failing' ? 'try now' : 'retry'} {formatCount(ids.length)}
          </button>
        )}
        {kind === 'refused' && <VerifyAgain hook={hooks[0]} />}
        {kind === 'refused' && (
          <button type="button" disabled={isBusy} onClick={() => void end()}>
            it is over
          </button>
        )}
        {canRetry && <DropAll count={ids.length} isBusy={isBusy} onDrop={() => void act('drop')} />}
      </div>
      <p class="said" role="status">
        {markUnseen(said)}
      </p>
    </article>
  )
}

/** The maximum number of ids in a request for the decisions of the live code. */
const maxTried = 100

type RetryPreviewProps = { readonly ids: readonly string[]; readonly saved: string }

/** A button that asks how many of the parked deliveries the live code would take. After a click, it asks again after each save. */
function RetryPreview({ ids, saved }: RetryPreviewProps): JSX.Element {
  const [said, setSaid] = useState('')
  const [isAsked, setAsked] = useState(false)
  useEffect(() => {
    if (!isAsked) return
    const ended = new AbortController()
    setSaid('trying …')
    void countWorking(ids.slice(0, maxTried), ended.signal).then(
      (text) => !ended.signal.aborted && setSaid(text),
      (error: unknown) => !ended.signal.aborted && setSaid(describeException(error)),
    )
    return () => ended.abort()
  }, [isAsked, saved, ids.length])
  return isAsked ? (
    <span class="mended" role="status">
      {markUnseen(said)}
    </span>
  ) : (
    <button type="button" onClick={() => setAsked(true)}>
      would they work now?
    </button>
  )
}

async function countWorking(ids: readonly string[], signal: AbortSignal): Promise<string> {
  const { outcomes } = await call('POST /api/replay/live', { query: { ids: ids.join(',') }, signal })
  // as: every outcome has its decision
  const tried = Object.values(outcomes) as readonly { readonly decision: string }[]
  const works = tried.filter(({ decision }) => decision === 'accept' || decision === 'skip').length
  return `${formatCount(works)} of ${formatCount(tried.length)} would work now`
}
