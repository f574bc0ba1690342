// /api/sessions, /api/events and /api/runs: the conversations of the agents.
import type Router from '@koa/router'
import { findDefaultAgentId } from '../../model/config/config.ts'
import type { Job, Session } from '../../model/job.ts'
import { Problem } from '../../model/problem.ts'
import type { ApiParts } from './parts.ts'
import { toEventFields, toJobFields, toIsoTime, toSessionFields, toSessionHead } from '../../deliveries/records.ts'
import { readLimit, readMoment, readParameter, type RouteContext } from './query.ts'
import type { Guards } from '../operator.ts'
import { answerJson } from './answer.ts'
import { readJobWaits } from './rows.ts'
import type { RunFields } from '../../model/api/answers.ts'
import type { EventPage, SessionPage, SessionRow, ShownSession, TrimmedSession } from '../../model/api/sessions.ts'

const shownMessages = 200
const shownEvents = 100
/** The maximum number of messages of one run. A run has one prompt and one reply for each of its turns. */
const maxOfRun = 50
/** The maximum number of lanes in which a running turn is searched. */
const maxLanes = 100_000

type SessionParts = Pick<ApiParts, 'store' | 'generation' | 'clock'>

export function addSessionRoutes(router: Router, guards: Guards, parts: SessionParts): void {
  const { store } = parts
  const readRow = createRowReader(store)
  router.get('/api/sessions', guards.read, async (ctx) => {
    const { rows, next } = await readPage(ctx, store.sessions, ({ updatedAt }) => updatedAt)
    const page: SessionPage = { sessions: await Promise.all(rows.map(readRow)), next }
    answerJson(ctx, page)
  })
  router.get('/api/sessions/:key', guards.read, async (ctx) => answerJson(ctx, await readSession(parts, ctx)))
  router.post('/api/sessions/:key/trim', guards.operate, async (ctx) => answerJson(ctx, await trimSession(parts, ctx)))
  router.get('/api/events', guards.read, async (ctx) => {
    const { rows, next } = await readPage(ctx, store.events, ({ at }) => at)
    const page: EventPage = { events: rows.map(toEventFields), next }
    answerJson(ctx, page)
  })
  router.get('/api/runs/:id', guards.read, async (ctx) => {
    const job = await store.job(ctx.params['id'] ?? '')
    if (job === undefined || job.planned.kind === 'wake')
      throw new Problem(
        'not-found',
        'No run has this id. "hookloom list" shows the deliveries, "hookloom show" their runs.',
      )
    answerJson(ctx, await readRunFields(parts, job))
  })
}

/** Rows ordered by time; `toAt` reads the time of a row. `next`: the time of the oldest row; null if there are no older rows. */
async function readPage<Row>(
  ctx: RouteContext,
  read: (query: { limit: number; before: number | undefined }) => Promise<readonly Row[]>,
  toAt: (row: Row) => number,
): Promise<{ rows: readonly Row[]; next: string | null }> {
  const limit = readLimit(ctx)
  const rows = await read({ limit, before: readMoment(ctx, 'before') })
  const [oldest] = rows
  return { rows, next: rows.length < limit || oldest === undefined ? null : toIsoTime(toAt(oldest)) }
}

/** The key of a run whose session has no name; see `pipeline/policy.ts`. */
const singleKey = /^hook:[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/
const maxHooks = 5_000

/** Remembers the hooks of sessions with a single run: these hooks do not change, and a page reads its whole list again. */
function createRowReader(store: SessionParts['store']): (session: Session) => Promise<SessionRow> {
  const hooks = new Map<string, string>()
  const findHook = async ({ agentId, sessionKey }: Session): Promise<string | undefined> => {
    const known = hooks.get(sessionKey)
    if (known !== undefined) return known
    const [message] = await store.messages({ agentId, sessionKey, limit: 1 })
    const planned = message && (await store.job(message.runId))?.planned
    if (planned === undefined || !('origin' in planned)) return undefined
    if (hooks.size >= maxHooks) hooks.clear()
    hooks.set(sessionKey, planned.origin.hook)
    return planned.origin.hook
  }
  return async (session) => {
    const isSingle = singleKey.test(session.sessionKey)
    return { ...toSessionHead(session), isSingle, hook: (isSingle ? await findHook(session) : undefined) ?? null }
  }
}

/** The session of the agent that `?agentId=` names, or of the default agent. */
async function findSession({ store, generation }: SessionParts, ctx: RouteContext): Promise<Session> {
  const agentId = readParameter(ctx, 'agentId') ?? findDefaultAgentId(generation().config)
  const session = await store.session({ agentId, sessionKey: ctx.params['key'] ?? '' })
  if (session !== undefined) return session
  throw new Problem('not-found', 'No session of this agent has this key. "hookloom sessions" shows the keys.')
}

/** Keeps the newest `?keep=` exchanges. Events that wait stay: no turn has read them yet. */
async function trimSession(parts: SessionParts, ctx: RouteContext): Promise<TrimmedSession> {
  const { store } = parts
  const text = readParameter(ctx, 'keep') ?? ''
  if (!/^\d{1,6}$/.test(text))
    throw new Problem('usage-invalid', 'keep must be a number of exchanges, such as 10, or 0.')
  const { agentId, sessionKey } = await findSession(parts, ctx)
  const lanes = await store.lanes({ limit: maxLanes })
  const isRunning = lanes.some(({ lane, running }) => running && lane === `${agentId}/${sessionKey}`)
  const bounds = { messages: 2 * Number(text), bytes: Number.MAX_SAFE_INTEGER }
  return { agentId, sessionKey, deleted: await store.trimTranscript({ agentId, sessionKey }, bounds), isRunning }
}

/** A session with its newest messages and its waiting events. */
async function readSession(parts: SessionParts, ctx: RouteContext): Promise<ShownSession> {
  const { store } = parts
  const session = await findSession(parts, ctx)
  const { agentId, sessionKey } = session
  const messages = await store.messages({ agentId, sessionKey, limit: shownMessages })
  const { events } = await store.waitingEvents({ agentId, sessionKey, limit: shownEvents })
  return { ...toSessionFields(session, messages), events: events.map(toEventFields) }
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
  }
}
