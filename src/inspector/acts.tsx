// Who changed what: the audit log, the newest first. A save shows what it changed in the files.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { AuditCheck, AuditFields } from '../model/api/audit.ts'
import { call } from './api.ts'
import { Link } from './link.tsx'
import { go, noFilters, type PagePlace } from './place.ts'
import { usePolled } from './polled.ts'
import { describeException, useSaid } from './said.ts'
import { SaveView } from './save.tsx'
import { Line, Sentence, Time } from './text.tsx'

const everyMs = 10_000
const pageRows = 100

/** What the filter of the view offers, and the acts of each. */
const kinds: Readonly<Record<string, readonly string[]>> = {
  saved: ['reload', 'mapping', 'transform', 'file.write', 'fixture', 'fixture.update', 'capture'],
  published: ['publish'],
  retried: ['retry', 'again', 'retry.parked', 'retry.refused', 'recover', 'send'],
  dropped: ['drop', 'drop.parked', 'drop.refused', 'cancel', 'attention.end', 'state.drop', 'session.trim'],
  paused: ['pause', 'resume'],
  raised: ['budget.raise'],
  opened: ['page.code', 'page.key'],
  tokens: ['token.new', 'token.revoke', 'secret.arm', 'secret.store'],
  started: ['start', 'stop'],
}

/** How the view calls an act. An act without an entry here has the name of the log. */
const verbs: Readonly<Record<string, string>> = {
  reload: 'saved',
  mapping: 'saved the template of',
  transform: 'made a transform for',
  'file.write': 'wrote',
  fixture: 'made a fixture for',
  'fixture.update': 'updated the fixtures of',
  capture: 'made a fixture of',
  publish: 'published the save that waited',
  retry: 'retried',
  again: 'ran again',
  'retry.parked': 'retried what is parked of',
  'retry.refused': 'verified again the requests of',
  recover: 'recovered what did not arrive of',
  send: 'sent a request to',
  drop: 'dropped',
  'drop.parked': 'dropped what is parked of',
  'drop.refused': 'dropped the refused requests of',
  cancel: 'cancelled',
  'attention.end': 'ended the refusals of',
  'state.drop': 'deleted what is remembered by',
  'session.trim': 'trimmed the session',
  pause: 'paused',
  resume: 'resumed',
  'budget.raise': 'raised the budget',
  'page.code': 'made a code for the page',
  'page.key': 'opened the page as',
  'token.new': 'made the token',
  'token.revoke': 'revoked the token',
  'secret.arm': 'waits for the secret of',
  'secret.store': 'gave its secret for',
  'alert.test': 'sent a test alert',
  'store.copy': 'copied the store to',
  start: 'started with the generation',
  stop: 'stopped',
}

/** An act. `end`: its outcome; undefined while it has none. */
type Act = { readonly entry: AuditFields; readonly end: AuditFields | undefined }

/** Joins the entry before an act, which has the details, and the one with its outcome. `entries`: the newest first. */
function toActs(entries: readonly AuditFields[]): Act[] {
  const begun = new Map(entries.flatMap((entry) => (entry.outcome === 'begun' ? [[entry.number, entry]] : [])))
  const ends = new Map(entries.flatMap((entry) => (entry.began === null ? [] : [[entry.began, entry]])))
  return entries.flatMap((entry): Act[] => {
    if (entry.outcome === 'begun') return [{ entry, end: ends.get(entry.number) }]
    // its first entry is on the next page, or was deleted
    if (entry.began !== null) return begun.has(entry.began) ? [] : [{ entry, end: entry }]
    return [{ entry, end: entry }]
  })
}

type Log = { readonly entries: readonly AuditFields[]; readonly next: number | null }

/** Reads the newest entries again and again, and older ones at a click. */
function useLog({ by, act }: Pick<PagePlace, 'by' | 'act'>, version: number) {
  const filter = `${by} ${act}`
  const [log, setLog] = useState<Log & { readonly filter: string }>()
  const [problem, setProblem] = useState('')
  const query = {
    limit: pageRows,
    by: by || undefined,
    act: Object.hasOwn(kinds, act) ? kinds[act]?.join(',') : undefined,
  }
  const fail = (error: unknown) => setProblem(describeException(error, 'It could not be read.'))
  const read = async (signal: AbortSignal) => {
    try {
      const page = await call('GET /api/audit', { query, signal })
      setProblem('')
      setLog((before) => ({ ...join(page, before?.filter === filter ? before : undefined), filter }))
    } catch (error) {
      if (!signal.aborted) fail(error)
    }
  }
  usePolled(read, { everyMs, version: `${filter} ${version}` })
  const loadOlder = async () => {
    if (log === undefined || log.next === null) return
    try {
      const page = await call('GET /api/audit', { query: { ...query, before: log.next } })
      const add = (known: Log) => ({ filter, entries: [...known.entries, ...page.entries], next: page.next })
      setLog((before) => (before?.filter === filter && before.next === log.next ? add(before) : before))
    } catch (error) {
      fail(error)
    }
  }
  return { log: log?.filter === filter ? log : undefined, problem, loadOlder }
}

/** If new entries are missing between the page and what is known, the older ones are left out: a list has no hole. */
function join(page: Log, known: Log | undefined): Log {
  const oldest = page.entries.at(-1)?.number ?? 0
  const newest = known?.entries[0]?.number ?? 0
  if (known === undefined || page.next === null || oldest > newest) return page
  return { entries: [...page.entries, ...known.entries.filter(({ number }) => number < oldest)], next: known.next }
}

export function Acts({ place, version }: { place: PagePlace; version: number }): JSX.Element {
  const { log, problem, loadOlder } = useLog(place, version)
  return (
    <div class="acts-view">
      <h2 class="sr">Acts</h2>
      <div class="filters">
        <div class="states" role="group" aria-label="Kind of act">
          {['', ...Object.keys(kinds)].map((kind) => (
            <Link key={kind} aria-current={place.act === kind} to={{ act: kind }}>
              {kind === '' ? 'all' : kind}
            </Link>
          ))}
        </div>
        {place.by !== '' && (
          <button
            type="button"
            class="chip"
            onClick={() => go({ by: '' })}
            aria-label={`Remove the filter by ${place.by}`}
          >
            by <Line text={place.by} max={30} /> ×
          </button>
        )}
        <ChainCheck />
      </div>
      <div class="acts" id="view" tabIndex={0} role="region" aria-label="Acts">
        {problem !== '' && <p class="empty bad">{problem}</p>}
        {log === undefined && problem === '' && <p class="empty">Reading …</p>}
        {log?.entries.length === 0 && <p class="empty">No such act{log.next === null ? '' : ' among the newest'}.</p>}
        <ol>
          {toActs(log?.entries ?? []).map((act) => (
            <ActRow key={act.entry.number} act={act} />
          ))}
        </ol>
        {log !== undefined && log.next !== null && (
          <p class="list-end">
            More are older.{' '}
            <button type="button" class="link" onClick={() => void loadOlder()}>
              show {pageRows} more
            </button>
          </p>
        )}
      </div>
    </div>
  )
}

function ActRow({ act: { entry, end } }: { act: Act }): JSX.Element {
  const { number, at, by, act, target, details } = entry
  const outcome = end?.outcome ?? 'not ended'
  const isBad = outcome === 'refused' || outcome === 'failed'
  const isSave = act === 'reload'
  const more = Object.entries(details).map(([name, text]) => `${name}: ${text}`)
  return (
    <li class={`act ${outcome}`}>
      <p>
        <span class="dim when">
          <Time at={at} />
        </span>{' '}
        <Link class="link" title={`Only the acts of this ${by.kind}`} to={{ by: by.name }}>
          <Line text={isSave ? 'a save' : by.name} max={80} />
        </Link>{' '}
        {verbs[act] ?? <Line text={act} max={60} />}{' '}
        {isSave ? <Line text={by.name} max={200} /> : <Target act={act} target={target} details={details} />}{' '}
        {more.length > 0 && (
          <span class="dim">
            <Line text={more.join(', ')} max={300} />
          </span>
        )}{' '}
        {outcome !== 'done' && (
          <span class={isBad ? 'bad' : 'warn'}>
            {outcome}
            {end !== undefined && end.reason !== null && (
              <>
                : <Sentence text={end.reason} max={500} />
              </>
            )}
          </span>
        )}
      </p>
      {isSave && outcome === 'done' && <SaveView number={number} />}
    </li>
  )
}

const isId = (text: string) => /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/.test(text)
const ofDelivery = new Set(['retry', 'again', 'drop', 'capture', 'cancel'])
const ofHook = new Set(['send', 'retry.parked', 'drop.parked', 'retry.refused', 'drop.refused', 'attention.end'])

/** What the act was about: a link, if the page has a place for it. */
function Target({ act, target, details }: Pick<AuditFields, 'act' | 'target' | 'details'>): JSX.Element | null {
  const hook = details['hook'] ?? (ofHook.has(act) ? target : undefined) ?? undefined
  const named = target === null ? null : <Line text={target} max={200} />
  if (target !== null && ofDelivery.has(act) && isId(target)) {
    return (
      <Link class="link" to={{ ...noFilters, view: 'list', id: target }}>
        {named}
      </Link>
    )
  }
  if (hook === undefined) return target === null && ofHook.has(act) ? <>all hooks</> : named
  return (
    <Link class="link" to={{ ...noFilters, view: 'list', hook, id: '' }}>
      {named ?? <Line text={hook} max={100} />}
    </Link>
  )
}

/** A button that checks the whole log. Without a check, the view says nothing about it. */
function ChainCheck(): JSX.Element {
  const { said, report } = useSaid()
  return (
    <>
      <button type="button" class="check" onClick={() => report(call('GET /api/audit/check').then(describeCheck))}>
        verify the log
      </button>
      <span class={said.isBad ? 'bad' : 'dim'} role="status">
        <Sentence text={said.text} max={500} />
      </span>
    </>
  )
}

function describeCheck({ from, to, broken }: AuditCheck): string {
  // an error, so that it is shown as one
  if (broken !== null) throw new Error(`The entry ${broken.number} does not fit: ${broken.why}.`)
  return from === null ? 'The log is empty.' : `The hashes of the entries ${from} to ${to} fit.`
}
