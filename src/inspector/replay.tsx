// The replay: what an edit changes in the outcomes of kept requests. Compares the live code with the files on disk, again after each save.
import type { JSX } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { ReplayReport, UpdatedFixtures } from '../model/api/replay.ts'
import type { StatusFields } from '../model/api/answers.ts'
import type { HealthFields } from '../model/api/health.ts'
import { call, toQuery } from './api.ts'
import { markUnseen } from './format.ts'
import { go, type PagePlace } from './place.ts'
import { countRequests } from './group.tsx'
import { Report } from './report.tsx'
import { describeException } from './said.ts'
import { Ago, Line, LongText, useNow } from './text.tsx'

const usualLast = 50
const choices = [20, 50, 100, 200, 500, 1_000]

type ReplayProps = {
  readonly place: PagePlace
  readonly status: StatusFields | undefined
  readonly health: HealthFields | undefined
  readonly isConnected: boolean
}

export function ReplayView({ place, status, health, isConnected }: ReplayProps): JSX.Element {
  const [isPaused, setPaused] = useState(false)
  const [round, setRound] = useState(0)
  // changes when a file is saved, and when another generation becomes live
  const saved = status && `${status.lastReloadAt} ${status.generation}`
  const seen = useRef(saved)
  if (!isPaused) seen.current = saved
  const last = Number(place.last) || usualLast
  const query = toQuery({ last, hook: place.hook.trim(), source: place.source.trim() })
  const wanted = seen.current === undefined ? '' : `${seen.current} ${round}`
  const { report, problem, isBusy } = useReplay(query, wanted, isConnected)
  // memoized: each event of the stream renders this view, and a report can have a thousand diffs
  const isFiltered = place.hook.trim() !== '' || place.source.trim() !== ''
  const shown = useMemo(() => report && <Report report={report} isFiltered={isFiltered} />, [report])
  const isBehind = seen.current !== saved
  return (
    <div class="replay">
      <h2 class="sr">Replay</h2>
      <div class="filters" role="search" aria-label="Requests to replay">
        <label>
          the last{' '}
          <select value={last} onChange={({ currentTarget }) => go({ last: currentTarget.value })}>
            {[...new Set([...choices, last])]
              .toSorted((one, other) => one - other)
              .map((count) => (
                <option key={count} value={count}>
                  {count}
                </option>
              ))}
          </select>
        </label>
        {(['hook', 'source'] as const).map((name) => (
          <label key={name}>
            {name}{' '}
            <input
              value={place[name]}
              placeholder="all"
              spellcheck={false}
              autocomplete="off"
              onInput={({ currentTarget }) => go({ [name]: currentTarget.value }, { replaces: true })}
            />
          </label>
        ))}
        <button type="button" disabled={isBusy} onClick={() => setRound(round + 1)}>
          run again
        </button>
        <button type="button" id="pause" class="pause" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          {isPaused ? `resume${isBehind ? ' · saved since' : ''}` : 'pause'}
        </button>
      </div>
      {status?.held === true && <HeldSave />}
      <FailingFixtures problems={health?.problems ?? []} report={report} />
      <p class={problem === '' ? 'said' : 'said bad'} role="status">
        {problem !== '' ? problem : describeReport(report, isBusy)} <LastSave status={status} />
      </p>
      <div class="report" id="view" tabIndex={0} aria-busy={isBusy} aria-label="Result of the replay" role="region">
        {shown}
      </div>
    </div>
  )
}

/**
 * Runs one replay at a time. After a change during a replay, another replay follows. A failed replay is repeated after a reconnect.
 * `wanted`: changes with each save; empty until the first state is known.
 */
function useReplay(query: string, wanted: string, isConnected: boolean) {
  const [report, setReport] = useState<ReplayReport>()
  const [problem, setProblem] = useState('')
  const [isBusy, setBusy] = useState(true)
  const now = useRef({ query, key: '', done: '', isRunning: false, over: new AbortController() })
  now.current.query = query
  now.current.key = wanted && `${query} ${wanted}`

  useEffect(() => void (isConnected && run()), [wanted, isConnected])
  useEffect(() => {
    // a report of another query must not be shown for this query
    now.current.done = ''
    setReport(undefined)
    setProblem('')
    // while somebody types a word, only its last version is requested
    const timer = setTimeout(() => void run(), 300)
    return () => clearTimeout(timer)
  }, [query])
  useEffect(() => () => now.current.over.abort(), [])

  async function run(): Promise<void> {
    const { current } = now
    if (current.isRunning) return
    current.isRunning = true
    const { signal } = current.over
    let failed = ''
    while (current.done !== current.key && failed !== current.key) {
      const { key, query: asked } = current
      setBusy(true)
      try {
        const answer = await call('POST /api/replay', { query: Object.fromEntries(new URLSearchParams(asked)), signal })
        current.done = key
        if (asked !== current.query) continue
        setReport(answer)
        setProblem('')
      } catch (error) {
        if (signal.aborted) return
        failed = key
        setProblem(describeException(error, 'The replay failed.'))
      }
    }
    current.isRunning = false
    setBusy(current.key === '')
  }

  return { report, problem, isBusy }
}

function describeReport(report: ReplayReport | undefined, isBusy: boolean): string {
  if (isBusy || report === undefined) return 'Replaying …'
  const { total, counts, compared, problems } = report
  const save = problems.length > 0 ? 'The save does not load. ' : compared === 'live' ? 'A save is not live. ' : ''
  if (total === 0) return save.trim()
  const differ = total - counts.same
  return `${save}${countRequests(total)}, ${differ === 0 ? 'no difference' : `${differ} would differ`}.`
}

/** The files that were saved last, and the time of the save. */
function LastSave({ status }: Pick<ReplayProps, 'status'>): JSX.Element | null {
  const { files = [], at = '' } = status?.lastSave ?? {}
  const now = useNow(Date.parse(at))
  if (files.length === 0) return null
  return (
    <span class="dim" id="last-save">
      <Line text={files.join(', ')} max={200} /> {files.length === 1 ? 'was' : 'were'} saved{' '}
      <Ago at={Date.parse(at)} now={now} />.
    </span>
  )
}

type FailingProps = Pick<HealthFields, 'problems'> & { readonly report: ReplayReport | undefined }

/** Modules that load but are not live, because a fixture fails. If the author wants the edit, the author updates the fixtures too. */
function FailingFixtures({ problems, report }: FailingProps): JSX.Element {
  const [said, setSaid] = useState('')
  const notLoaded = new Set(report?.problems.map(({ module }) => module))
  const failing = problems.filter(({ module }) => module !== undefined && !notLoaded.has(module))
  const update = async (module = '') => {
    setSaid(
      await call('POST /api/fixtures/update', { body: { module } }).then(describeUpdate, (error: unknown) =>
        describeException(error),
      ),
    )
  }
  return (
    <>
      {report !== undefined &&
        failing.map(({ module, detail, frame }) => (
          <section class="problem" key={module} aria-label="Fixtures that fail">
            <p>
              <Line text={detail} max={1_000} />{' '}
              <button type="button" onClick={() => void update(module)}>
                update fixtures
              </button>
            </p>
            {frame !== undefined && <LongText text={frame} label="Failing fixtures" />}
          </section>
        ))}
      {said !== '' && (
        <p class="said" role="status" id="updated">
          {markUnseen(said)}
        </p>
      )}
    </>
  )
}

function describeUpdate({ updated, failing: [first] }: UpdatedFixtures): string {
  const names = updated.length === 0 ? 'No fixture was changed.' : `Updated: ${updated.join(', ')}.`
  return first === undefined ? names : `${names} ${first.name} still fails: ${first.why}`
}

/** The save that waits because of `hooks.transforms.hold`. */
function HeldSave(): JSX.Element {
  const [said, setSaid] = useState('')
  const publish = () => void call('POST /api/publish').catch((error: unknown) => setSaid(describeException(error)))
  return (
    <section class="problem" aria-label="A save that waits">
      <p>
        A save waits, because it would change recent deliveries.{' '}
        <button type="button" id="publish" onClick={publish}>
          publish
        </button>{' '}
        <span role="status">{said}</span>
      </p>
    </section>
  )
}
