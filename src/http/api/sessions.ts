// /api/sessions, /api/events and /api/runs: the conversations of the agents.
import type Router from '@koa/router'
import type { Middleware } from 'koa'
import { findDefaultAgentId } from '../../model/config.ts'
import type { Job } from '../../model/job.ts'
import { Problem } from '../../model/problem.ts'
import type { StoreReader } from '../../store/store.ts'
import type { ApiParts } from './parts.ts'
import { toEventFields, toJobFields, toIsoTime, toSessionFields, toSessionHead } from '../../deliveries/records.ts'
import { readLimit, readMoment, readParameter, type RouteContext } from './query.ts'
import { reply } from './reply.ts'
import type { EventFields, Page, RunFields, SessionFields, ShownSession } from '../../model/api-types.ts'

const shownMessages = 200
const shownEvents = 100
/** The most messages of one run. A run has one prompt and one reply for each of its turns. */
const mostOfRun = 50

type SessionParts = Pick<ApiParts, 'store' | 'generation'>

export function addSessionRoutes(router: Router, api: Middleware, parts: SessionParts): void {
  const { store } = parts
  router.get('/api/sessions', api, async (ctx) => {
    const { rows, next } = await readPage(ctx, store.sessions, ({ updatedAt }) => updatedAt)
    const page: Page<'sessions', SessionFields> = { sessions: rows.map(toSessionHead), next }
    reply(ctx, page)
  })
  router.get('/api/sessions/:key', api, async (ctx) => reply(ctx, await readSession(parts, ctx)))
  router.get('/api/events', api, async (ctx) => {
    const { rows, next } = await readPage(ctx, store.events, ({ at }) => at)
    const page: Page<'events', EventFields> = { events: rows.map(toEventFields), next }
    reply(ctx, page)
  })
  router.get('/api/runs/:id', api, async (ctx) => {
    const job = await store.job(ctx.params['id'] ?? '')
    if (job === undefined || job.planned.kind === 'wake')
      throw new Problem(
        'not-found',
        'No run has this id. "hookloom list" shows the deliveries, "hookloom show" their runs.',
      )
    reply(ctx, await readRunFields(store, job))
  })
}

/** Rows in the order of the moment `toAt`. `next`: the moment of the oldest one; null if there are no older ones. */
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

/** A session of the agent that `?agentId=` names, or of the default agent, with its newest messages and its waiting events. */
async function readSession({ store, generation }: SessionParts, ctx: RouteContext): Promise<ShownSession> {
  const agentId = readParameter(ctx, 'agentId') ?? findDefaultAgentId(generation().config)
  const sessionKey = ctx.params['key'] ?? ''
  const session = await store.session({ agentId, sessionKey })
  if (session === undefined)
    throw new Problem('not-found', 'No session of this agent has this key. "hookloom sessions" shows the keys.')
  const messages = await store.messages({ agentId, sessionKey, limit: shownMessages })
  const { events } = await store.waiting({ agentId, sessionKey, limit: shownEvents })
  return { ...toSessionFields(session, messages), events: events.map(toEventFields) }
}

async function readRunFields(store: StoreReader, job: Job): Promise<RunFields> {
  const { agentId, sessionKey } = job.planned
  const messages = await store.messages({ agentId, sessionKey, limit: mostOfRun, runId: job.id })
  const findText = (role: string) => messages.filter((message) => message.role === role).at(-1)?.text
  const reply = job.steps.find(({ name, state }) => name === 'run' && state === 'done')?.result ?? findText('assistant')
  return { ...toJobFields(job), prompt: findText('user') ?? null, reply: reply ?? null }
}
