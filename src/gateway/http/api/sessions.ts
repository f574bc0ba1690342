// /api/sessions, /api/events and /api/runs: the conversations of the agents.
import type { Job, Session, SystemEvent } from '../../../model/job.ts'
import { Problem } from '../../../core/model/problem.ts'
import type { ApiParts } from './parts.ts'
import { describeMessage } from '../../deliveries/about.ts'
import { toEventFields, toJobFields, toIsoTime, toSessionFields, toSessionHead } from '../../deliveries/records.ts'
import { type QueryTexts, readLimit, readMoment, readParameter } from './query.ts'
import type { Handlers, CallRequest } from './handlers.ts'
import { readJobWaits } from './rows.ts'
import type { RunFields } from '../../../model/api/answers.ts'
import type { SessionRow, ShownSession, TrimmedSession } from '../../../model/api/sessions.ts'
import { findTurnUsd } from '../../deliveries/budgets.ts'
import type { Config } from '../../../model/config/config.ts'
import { cut } from '../../../base/text.ts'
import { findDefaultAgentId } from '../../../model/config/plan-settings.ts'

const shownMessages = 200
const shownEvents = 100
/** The maximum number of characters of a reply that is not whole yet. */
const maxReplyChars = 100_000
/** The maximum number of messages of one run. A run has one prompt and one reply for each of its turns. */
const maxOfRun = 50
/** The maximum number of lanes in which a running turn is searched. */
const maxLanes = 100_000

type SessionParts = Pick<ApiParts, 'store' | 'generation' | 'clock' | 'replySoFar'>

export function handleSessions(parts: SessionParts) {
  const { store } = parts
  const readRow = createRowReader(store)
  return {
    'GET /api/sessions': async ({ query }) => {
      const { rows, next } = await readPage(query, store.sessions, ({ updatedAt }) => updatedAt)
      return { sessions: await Promise.all(rows.map(readRow)), next }
    },
    'GET /api/sessions/{key}': (request) => readSession(parts, request),
    'POST /api/sessions/{key}/trim': (request) => trimSession(parts, request),
    'GET /api/events': async ({ query }) => {
      const { rows, next } = await readPage(query, store.events, ({ at }) => at)
      return { events: rows.map(toShownEvent), next }
    },
    'GET /api/runs/{id}': async ({ params }) => {
      const job = await store.job(params.id)
      if (job !== undefined && job.planned.kind !== 'wake') return readRunFields(parts, job)
      throw new Problem(
        'not-found',
        'No run has this id. "hookloom list" shows the deliveries, "hookloom show" their runs.',
      )
    },
    'GET /api/runs/{id}/reply': ({ params }) => {
      const text = parts.replySoFar(params.id)
      return { text: text === undefined ? null : cut(text, maxReplyChars) }
    },
  } satisfies Partial<Handlers>
}

/** Rows ordered by time; `toAt` reads the time of a row. `next`: the time of the oldest row; null if there are no older rows. */
async function readPage<Row>(
  query: QueryTexts<'limit' | 'before'>,
  read: (query: { limit: number; before: number | undefined }) => Promise<readonly Row[]>,
  toAt: (row: Row) => number,
): Promise<{ rows: readonly Row[]; next: string | null }> {
  const limit = readLimit(query)
  const rows = await read({ limit, before: readMoment(query, 'before') })
  const [oldest] = rows
  return { rows, next: rows.length < limit || oldest === undefined ? null : toIsoTime(toAt(oldest)) }
}

/** The key of a run whose session has no name; see `gateway/generation/policy.ts`. */
const singleKey = /^hook:[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/
const maxRows = 5_000
/** The maximum number of turns that are counted. Each has a prompt and a reply. */
const maxTurns = 10

/** Remembers the rows of sessions that did not change since then: a page reads its whole list again after each change. */
function createRowReader(store: SessionParts['store']): (session: Session) => Promise<SessionRow> {
  const rows = new Map<string, SessionRow>()
  const readNew = async (session: Session): Promise<SessionRow> => {
    const { agentId, sessionKey } = session
    const isSingle = singleKey.test(sessionKey)
    const messages = await store.messages({ agentId, sessionKey, limit: 2 * maxTurns })
    const [first] = messages
    const planned = isSingle && first !== undefined ? (await store.job(first.runId))?.planned : undefined
    const last = messages.at(-1)
    return {
      ...toSessionHead(session),
      isSingle,
      hook: planned !== undefined && 'origin' in planned ? planned.origin.hook : null,
      lastLine: last === undefined ? null : toPreview(last.text),
      turns: Math.min(maxTurns, messages.filter(({ role }) => role === 'assistant').length),
    }
  }
  return async (session) => {
    const name = JSON.stringify([session.agentId, session.sessionKey, session.updatedAt])
    const known = rows.get(name)
    if (known !== undefined) return known
    const row = await readNew(session)
    if (rows.size >= maxRows) rows.clear()
    rows.set(name, row)
    return row
  }
}

/** What a text is about, without the usual marks of Markdown. */
const toPreview = (text: string) => describeMessage(text).replaceAll(/\*\*|`|^#+ /g, '')

const toShownEvent = (event: SystemEvent) => ({ ...toEventFields(event), summary: toPreview(event.text) })

type SessionRequest = CallRequest<'GET /api/sessions/{key}'>

/** The session of the agent that `?agentId=` names, or of the default agent. */
async function findSession(
  { store, generation }: SessionParts,
  { params, query }: Pick<SessionRequest, 'params' | 'query'>,
): Promise<Session> {
  const agentId = readParameter(query, 'agentId') ?? findDefaultAgentId(generation().config)
  const session = await store.session({ agentId, sessionKey: params.key })
  if (session !== undefined) return session
  throw new Problem('not-found', 'No session of this agent has this key. "hookloom sessions" shows the keys.')
}

/** Keeps the newest `?keep=` exchanges. Events that wait stay: no turn has read them yet. */
async function trimSession(
  parts: SessionParts,
  { params, query }: CallRequest<'POST /api/sessions/{key}/trim'>,
): Promise<TrimmedSession> {
  const { store } = parts
  const text = readParameter(query, 'keep') ?? ''
  if (!/^\d{1,6}$/.test(text))
    throw new Problem('usage-invalid', 'keep must be a number of exchanges, such as 10, or 0.')
  const { agentId, sessionKey } = await findSession(parts, { params, query })
  const lanes = await store.lanes({ limit: maxLanes })
  const isRunning = lanes.some(({ lane, running }) => running && lane === `${agentId}/${sessionKey}`)
  const bounds = { messages: 2 * Number(text), bytes: Number.MAX_SAFE_INTEGER }
  return { agentId, sessionKey, deleted: await store.trimTranscript({ agentId, sessionKey }, bounds), isRunning }
}

/** A session with its newest messages and its waiting events. */
async function readSession(parts: SessionParts, request: SessionRequest): Promise<ShownSession> {
  const { store } = parts
  const session = await findSession(parts, request)
  const { agentId, sessionKey } = session
  const messages = await store.messages({ agentId, sessionKey, limit: shownMessages })
  const { events } = await store.waitingEvents({ agentId, sessionKey, limit: shownEvents })
  return { ...toSessionFields(session, messages), events: events.map(toShownEvent) }
}

async function readRunFields(parts: SessionParts, job: Job): Promise<RunFields> {
  const { store } = parts
  const { agentId, sessionKey } = job.planned
  const messages = await store.messages({ agentId, sessionKey, limit: maxOfRun, runId: job.id })
  const findText = (role: string) => messages.filter((message) => message.role === role).at(-1)?.text
  const reply = job.steps.find(({ name, state }) => name === 'run' && state === 'done')?.result ?? findText('assistant')
  return {
    ...toJobFields(job, (await readJobWaits([job], parts)).get(job.id)),
    prompt: findText('user') ?? null,
    reply: reply ?? null,
    usd: findCost(job, parts.generation().config),
  }
}

function findCost({ steps }: Job, { models }: Config): number | null {
  const { model, usage } = steps.find(({ name }) => name === 'run') ?? {}
  return (usage && findTurnUsd(usage, model, models)) ?? null
}
