// The list of sessions, and one session as a chat: its prompts, its replies and its recent events, with a mark on those that wait for its next turn.
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { MessageFields, SessionFields, SessionRow, ShownEvent, ShownSession } from '../model/api/sessions.ts'
import { call } from './api.ts'
import { Link } from './link.tsx'
import { Markdown } from './markdown.tsx'
import { Prompt } from './parts.tsx'
import { type PagePlace } from './place.ts'
import { useThrottled } from './polled.ts'
import { describeException } from './said.ts'
import { Ago, Line, LongText, Time, useNow } from './text.tsx'
import { PayloadView } from './tree.tsx'

/** All changes within this time cause one reading. */
const gatherMs = 500

export function Sessions({ place, version }: { place: PagePlace; version: number }): JSX.Element {
  const [sessions, setSessions] = useState<readonly SessionRow[]>()
  const [shown, setShown] = useState<{ session: ShownSession; events: readonly ShownEvent[] }>()
  const [problem, setProblem] = useState('')
  const slash = place.session.indexOf('/')
  const [agentId, sessionKey] = [place.session.slice(0, slash), place.session.slice(slash + 1)]

  const gathered = useThrottled(version, gatherMs)
  useEffect(() => {
    const ended = new AbortController()
    void read(ended.signal).catch((error: unknown) => {
      if (ended.signal.aborted) return
      setShown(undefined)
      setProblem(describeException(error, 'It could not be read.'))
    })
    return () => ended.abort()
  }, [place.session, gathered])

  async function read(signal: AbortSignal): Promise<void> {
    const page = await call('GET /api/sessions', { query: { limit: 200 }, signal })
    setSessions(page.sessions.toReversed())
    setProblem('')
    if (slash < 0) return setShown(undefined)
    const asked = { params: { key: sessionKey }, query: { agentId }, signal }
    const session = await call('GET /api/sessions/{key}', asked)
    const recent = await call('GET /api/events', { query: { limit: 500 }, signal })
    const own = recent.events.filter((event) => event.agentId === agentId && event.sessionKey === sessionKey)
    setShown({ session, events: own })
  }

  const lasting = sessions?.filter(({ isSingle }) => !isSingle) ?? []
  const singles = new Map<string, SessionRow[]>()
  for (const session of sessions?.filter(({ isSingle }) => isSingle) ?? []) {
    const hook = session.hook ?? ''
    singles.set(hook, [...(singles.get(hook) ?? []), session])
  }
  return (
    <div class={`sessions${slash < 0 ? '' : ' has-session'}`}>
      <nav aria-label="Sessions">
        {sessions === undefined && problem === '' && <p class="empty">Reading …</p>}
        {sessions?.length === 0 && <p class="empty">No session yet.</p>}
        <SessionList sessions={lasting} chosen={place.session} />
        {singles.size > 0 && <h2 class="singles-head">Sessions of a single run</h2>}
        {[...singles].map(([hook, own]) => (
          <details class="singles" key={hook} open={own.some((session) => toName(session) === place.session)}>
            <summary>
              <Line text={hook === '' ? 'no longer stored' : hook} max={80} /> <span class="count">{own.length}</span>
            </summary>
            <SessionList sessions={own} chosen={place.session} />
          </details>
        ))}
      </nav>
      <section class="chat" id="view" aria-label="Transcript" tabIndex={0}>
        <Link class="button back" to={{ session: '' }}>
          ← sessions
        </Link>
        {problem !== '' && <p class="empty bad">{problem}</p>}
        {slash < 0 && sessions !== undefined && sessions.length > 0 && <p class="empty">Choose a session.</p>}
        {shown !== undefined && slash >= 0 && <Chat {...shown} />}
      </section>
    </div>
  )
}

const toName = ({ agentId, sessionKey }: SessionFields) => `${agentId}/${sessionKey}`

function SessionList({ sessions, chosen }: { sessions: readonly SessionRow[]; chosen: string }): JSX.Element {
  const now = useNow(0)
  return (
    <ul>
      {sessions.map((session) => (
        <li key={toName(session)}>
          <Link
            class="session"
            aria-current={toName(session) === chosen}
            to={{ view: 'sessions', session: toName(session) }}
          >
            <Line text={session.sessionKey} max={120} />
            {session.lastLine !== null && (
              <span class="last-line">
                <Line text={session.lastLine} max={160} />
              </span>
            )}
            <span class="dim">
              <Line text={session.agentId} max={40} /> · {describeTurns(session.turns)} ·{' '}
              <Ago at={Date.parse(session.updatedAt)} now={now} />
            </span>
          </Link>
        </li>
      ))}
    </ul>
  )
}

/** The gateway counts at most ten. */
const describeTurns = (turns: number) =>
  turns >= 10 ? '10 turns or more' : `${turns === 0 ? 'no' : turns} ${turns === 1 ? 'turn' : 'turns'}`

/** The end of a run in the words of the gateway, with the reply. */
const ofRun = /^Hook ([^\n]{1,200}?): ([^]*)$/

/** An event: what it is about, and all of it, folded, as a reply, a payload or a text. */
function EventText({ event: { text, summary } }: { event: ShownEvent }): JSX.Element {
  const [, name = '', reply = ''] = ofRun.exec(text) ?? []
  const isWhole = summary === text.trim()
  return (
    <>
      <p>
        <Line text={summary} max={240} />
      </p>
      {!isWhole && (
        <details>
          <summary class="dim">{name === '' ? 'the whole event' : 'the whole reply'}</summary>
          {name !== '' ? (
            <Markdown text={reply} label="Reply" />
          ) : /^\s*[{[]/.test(text) ? (
            <PayloadView text={text} onCopy={(_what, copied) => void navigator.clipboard.writeText(copied)} />
          ) : (
            <Prompt text={text} label="Event" />
          )}
        </details>
      )}
    </>
  )
}

function Message({ message: { role, text } }: { message: MessageFields }): JSX.Element {
  if (role === 'user') return <Prompt text={text} />
  return role === 'assistant' ? <Markdown text={text} label="Reply" /> : <LongText text={text} label="Message" />
}

type ChatEntry = { readonly at: string } & (
  | { readonly kind: 'message'; readonly message: MessageFields }
  | { readonly kind: 'event'; readonly event: ShownEvent }
)

function Chat({ session, events }: { session: ShownSession; events: readonly ShownEvent[] }): JSX.Element {
  const entries: ChatEntry[] = [
    ...session.messages.map((message): ChatEntry => ({ kind: 'message', at: message.at, message })),
    ...events.map((event): ChatEntry => ({ kind: 'event', at: event.at, event })),
  ].toSorted((one, other) => Date.parse(one.at) - Date.parse(other.at))
  return (
    <>
      <header class="title">
        <h2>
          <Line text={session.sessionKey} max={200} />
        </h2>
        <span class="dim">
          agent <Line text={session.agentId} max={80} />
          {session.recipient !== null && `, replies to ${session.recipient.channel} ${session.recipient.to ?? ''}`}
        </span>
      </header>
      <ol class="said-list">
        {entries.map((each, at) =>
          each.kind === 'message' ? (
            <li key={at} class={`message ${each.message.role}`}>
              <div class="dim">
                {each.message.role} <Time at={each.at} />{' '}
                <Link class="link" to={{ view: 'list', id: each.message.runId }}>
                  run
                </Link>
              </div>
              <Message message={each.message} />
            </li>
          ) : (
            <li key={at} class={`event-line${each.event.consumedAt === null ? ' waits' : ''}`}>
              <span class="dim">
                event <Time at={each.at} /> <Line text={each.event.source} max={60} />
                {each.event.consumedAt === null && ' · waits for the next turn'}
              </span>
              <EventText event={each.event} />
            </li>
          ),
        )}
      </ol>
    </>
  )
}
