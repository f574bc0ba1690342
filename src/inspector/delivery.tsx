// One delivery: its way through the pipe, the request, the prompts and replies of its runs, and the answer to the sender.
import type { JSX } from 'preact'
import { useEffect, useLayoutEffect, useState } from 'preact/hooks'
import type { JobFields, RequestFields, RunFields, ShownDelivery } from '../model/api/answers.ts'
import { Actions } from './actions.tsx'
import { ApiError, call } from './api.ts'
import { LiveReplies, Part, Replies, RequestParts, Texts } from './parts.tsx'
import { Pipe } from './pipe.tsx'
import { Used } from './used.tsx'
import { type OpenedRefusal, RefusalView } from './refusal.tsx'
import { hasFailed } from './rows.ts'
import { copyText, describeException, useSaid } from './said.ts'
import { CodeFrame, LongText, Sentence } from './text.tsx'
import { Title } from './title.tsx'
import { WaitEndTools } from './wait-end.tsx'

type Opened =
  | {
      readonly kind: 'delivery'
      readonly id: string
      readonly delivery: ShownDelivery
      readonly request: RequestFields | undefined
      readonly runs: readonly RunFields[]
    }
  | ({ readonly kind: 'refusal'; readonly id: string } & OpenedRefusal)

/** How often the commit status and the callback of a run are read again until they have ended. */
const taskMs = 2_000
const isWaiting = ({ state }: JobFields) => state === 'queued' || state === 'running'

type OpenedProps = {
  readonly id: string
  /** Whether the list has a refusal with this id. The id in a bookmark may be that of a delivery or of a refusal. */
  readonly isRefusal: boolean
  readonly version: number
  readonly hooksUrl: string
}

export function OpenedView({ id, isRefusal, version, hooksUrl }: OpenedProps): JSX.Element {
  const [opened, setOpened] = useState<Opened>()
  const [problem, setProblem] = useState('')
  const [readings, setReadings] = useState(0)

  useEffect(() => {
    const ended = new AbortController()
    // a refusal never changes
    if (opened?.kind !== 'refusal' || opened.id !== id) void load(ended.signal)
    return () => ended.abort()
  }, [id, version, readings])
  useEffect(() => {
    if (opened?.kind !== 'delivery' || !opened.delivery.tasks.some(isWaiting)) return
    // the stream reports changes of deliveries, and a task belongs to none
    const timer = setTimeout(() => setReadings((before) => before + 1), taskMs)
    return () => clearTimeout(timer)
  }, [opened])
  useLayoutEffect(() => document.getElementById('detail')?.scrollTo(0, 0), [opened?.id])

  async function load(signal: AbortSignal): Promise<void> {
    try {
      const found = await readOpened(id, isRefusal, signal)
      if (signal.aborted) return
      setOpened(found)
      setProblem('')
    } catch (error) {
      if (!signal.aborted) setProblem(describeException(error, 'It could not be read.'))
    }
  }

  if (problem !== '') return <p class="empty bad">{problem}</p>
  // the previous delivery is shown until the next one is read, so nothing on the page moves
  if (opened === undefined) return <p class="empty">Reading …</p>
  if (opened.kind === 'refusal') return <RefusalView {...opened} />
  return <Delivery {...opened} hooksUrl={hooksUrl} onDone={() => setReadings(readings + 1)} />
}

type DeliveryProps = Extract<Opened, { kind: 'delivery' }> & {
  readonly hooksUrl: string
  readonly onDone: () => void
}

function Delivery({ delivery, request, runs, hooksUrl, onDone }: DeliveryProps): JSX.Element {
  const { said, setSaid, report } = useSaid()
  const copy = (what: string, text: string) => report(copyText(what, text))
  const isWide = useWide()
  const [kept, setTab] = useState(readTab)
  // a wide window has the request beside the other parts
  const tab = isWide && kept === 'request' ? 'trace' : kept
  const choose = (chosen: Tab) => {
    localStorage.setItem(tabKey, chosen)
    setTab(chosen)
  }
  return (
    <>
      <Title delivery={delivery} onCopy={copy} />
      <Actions delivery={delivery} request={request} hooksUrl={hooksUrl} said={said} onSay={setSaid} onDone={onDone} />
      <Reason delivery={delivery} onDone={onDone} />
      <div class={isWide ? 'beside-payload' : ''}>
        <div>
          <Tabs
            chosen={tab}
            names={isWide ? tabNames.filter((name) => name !== 'request') : tabNames}
            onChoose={choose}
          />
          <div role="tabpanel" id="panel" aria-labelledby={`tab-${tab}`}>
            {tab === 'trace' && (
              <>
                <LiveReplies jobs={delivery.jobs} />
                <Replies runs={runs} onOpen={() => choose('texts')} />
                <Pipe delivery={delivery} />
                <Used runs={runs} />
              </>
            )}
            {tab === 'request' && <RequestParts request={request} onCopy={copy} />}
            {tab === 'texts' && <Texts runs={runs} />}
            {tab === 'answer' && (
              <Part
                title={['Answer to the sender:', delivery.answer.status, delivery.answer.contentType ?? '']
                  .join(' ')
                  .trim()}
              >
                <LongText text={delivery.answer.body === '' ? '(no body)' : delivery.answer.body} label="Answer" />
              </Part>
            )}
          </div>
        </div>
        {isWide && (
          <section aria-label="Request">
            <RequestParts request={request} onCopy={copy} />
          </section>
        )}
      </div>
    </>
  )
}

const wide = matchMedia('(min-width: 2400px)')

function useWide(): boolean {
  const [isWide, setWide] = useState(wide.matches)
  useEffect(() => {
    const read = () => setWide(wide.matches)
    wide.addEventListener('change', read)
    return () => wide.removeEventListener('change', read)
  }, [])
  return isWide
}

const tabs = { trace: 'Trace', request: 'Request', texts: 'Prompt and reply', answer: 'Answer' } as const
type Tab = keyof typeof tabs
// as: the keys of `tabs` are these names
const tabNames = Object.keys(tabs) as Tab[]
const tabKey = 'hookloom-tab'
/** The tab that was last chosen, for any delivery. */
const readTab = (): Tab => tabNames.find((name) => name === localStorage.getItem(tabKey)) ?? 'trace'

type TabsProps = { chosen: Tab; names: readonly Tab[]; onChoose: (tab: Tab) => void }

function Tabs({ chosen, names, onChoose }: TabsProps): JSX.Element {
  const stepTab = (by: number) => {
    const next = names.at((names.indexOf(chosen) + by) % names.length) ?? 'trace'
    onChoose(next)
    document.getElementById(`tab-${next}`)?.focus()
  }
  return (
    <div class="tabs" role="tablist" aria-label="Parts of the delivery">
      {names.map((name) => (
        <button
          type="button"
          role="tab"
          key={name}
          id={`tab-${name}`}
          aria-selected={name === chosen}
          aria-controls="panel"
          tabIndex={name === chosen ? 0 : -1}
          onClick={() => onChoose(name)}
          onKeyDown={({ key }) => {
            if (key === 'ArrowRight') stepTab(1)
            if (key === 'ArrowLeft') stepTab(-1)
          }}
        >
          {tabs[name]}
        </button>
      ))}
    </div>
  )
}

type ReasonProps = { readonly delivery: ShownDelivery; readonly onDone: () => void }

/** Why the delivery is parked, or why a run waits, ended without a result or will be tried again. */
function Reason({ delivery, onDone }: ReasonProps): JSX.Element | null {
  const { deliveryId, state, problem, jobs, waitEnd } = delivery
  const failed = jobs.find((job) => job.lastError !== null && job.state !== 'done' && job.state !== 'dropped')
  if (problem !== null && state !== 'accepted') {
    return (
      <section class="problem" aria-label="Problem">
        <p>
          <b>{problem.code}</b> <Sentence text={problem.detail} />
        </p>
        {problem.frame !== undefined && <CodeFrame text={problem.frame} />}
      </section>
    )
  }
  const waits = waitEnd && jobs.find((job) => job.waits !== undefined)?.waits
  if (failed === undefined && waits === undefined) return null
  return (
    <section class={`problem${failed?.state === 'dead' ? '' : ' mild'}`} aria-label="Problem">
      {failed !== undefined && (
        <p>
          <b>{describeEnd(failed)}</b> <Sentence text={failed.lastError?.replace(/^It waits /, '') ?? ''} />
        </p>
      )}
      {waits !== undefined && waitEnd?.kind !== 'raise' && (
        <p>
          <b>waits</b> <Sentence text={waits.replace(/^waits /, '')} />
        </p>
      )}
      {waitEnd !== undefined && (
        <div class="tools" key={deliveryId}>
          <WaitEndTools end={waitEnd} id={deliveryId} onDone={onDone} />
        </div>
      )}
    </section>
  )
}

/** What becomes of a run that has an error. A run that was never tried only waits: the sentence is its reason. */
function describeEnd(job: JobFields): string {
  const tries = job.attempts === 0 ? '' : job.attempts === 1 ? ' after 1 try' : ` after ${job.attempts} tries`
  if (job.state !== 'queued' && job.state !== 'running') return `${job.state}${tries}`
  if (!hasFailed(job)) return job.state === 'queued' ? 'waits' : 'has waited'
  return job.state === 'queued' ? `will be tried again${tries}` : `is tried again${tries}`
}

/** The maximum number of runs whose prompts and replies are read: a delivery with `forEach` can have thousands of runs. */
const maxRuns = 10

async function readOpened(id: string, isRefusal: boolean, signal: AbortSignal): Promise<Opened> {
  const [first, second] = isRefusal ? [readRefusal, readDelivery] : [readDelivery, readRefusal]
  return first(id, signal).catch((error: unknown) => {
    if (!(error instanceof ApiError) || error.status !== 404) throw error
    // if neither exists, the first error is shown: the id was probably meant for the first kind
    return second(id, signal).catch(() => Promise.reject(error))
  })
}

async function readRefusal(id: string, signal: AbortSignal): Promise<Opened> {
  const { refusal, request } = await call('GET /api/refusals/{id}', { params: { id }, signal })
  // as: see `OpenedRefusal`
  return { kind: 'refusal', id, refusal, request: request as OpenedRefusal['request'] }
}

async function readDelivery(id: string, signal: AbortSignal): Promise<Opened> {
  const params = { id }
  const delivery = await call('GET /api/deliveries/{id}', { params, signal })
  const request = delivery.isRequestKept
    ? await call('GET /api/deliveries/{id}/request', { params, signal }).catch((error: unknown) => {
        // it was dropped after the delivery was read
        if (error instanceof ApiError && error.status === 409) return undefined
        throw error
      })
    : undefined
  const ids = delivery.jobs.flatMap(({ runId }) => runId ?? []).slice(0, maxRuns)
  const runs = await Promise.all(ids.map((run) => call('GET /api/runs/{id}', { params: { id: run }, signal })))
  return { kind: 'delivery', id, delivery, request, runs }
}
