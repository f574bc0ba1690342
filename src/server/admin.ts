// The admin port: health pages, metrics, and the API that changes a running gateway. Loopback only; /api requires the gateway token.
import type { RequestListener } from 'node:http'
import Router from '@koa/router'
import type { Context, Next } from 'koa'
import { toDefaultAgentId } from '../model/config.ts'
import { saysCrossSite } from '../base/http.ts'
import type { Job } from '../model/job.ts'
import type { Log } from '../model/log.ts'
import { Problem } from '../model/problem.ts'
import type { Generation } from '../pipeline/generation.ts'
import type { Clock, DeliveryRecord, Store } from '../store/store.ts'
import type { Drain, ParkedQuery } from './drain.ts'
import type { HandedSecrets } from './handed.ts'
import type { UnnamedProxies } from './client.ts'
import type { Metrics } from './metrics.ts'
import { createOperatorCheck, type IsOperator } from './operator.ts'
import { toJobFields, toSessionFields } from './records.ts'
import { type Refusals, toRefusedRequest, withNearest } from './refusals.ts'
import type { Rerunner } from './rerun.ts'
import { send, toListener } from './server.ts'

const shownMessages = 200

/** Whether all saved files are live. */
export type Readiness = {
  readonly generation: string
  readonly degraded: boolean
  readonly problems: readonly { readonly detail: string; readonly module?: string | undefined }[]
}

export type AdminParts = {
  readonly generation: () => Generation
  /** Which generation is live, and which saved files are not. */
  readonly status: () => Readiness
  readonly store: Store
  readonly refusals: Refusals
  readonly rerunner: Rerunner
  readonly drain: Pick<Drain, 'retryParked' | 'dropParked'>
  readonly handed: HandedSecrets
  readonly metrics: Metrics
  readonly unnamedProxies: Pick<UnnamedProxies, 'warnings'>
  readonly newId: () => string
  readonly clock: Clock
  readonly log: Log
  /** Called when a job may run again. */
  readonly poke: () => void
}

export function createAdminApp(parts: AdminParts): RequestListener {
  const { store, refusals, generation } = parts
  const router = new Router({ sensitive: true, strict: true })
  const token = () => generation().config.gateway.token
  const isOperator = createOperatorCheck({ token, clock: parts.clock })
  const api = requireToken(isOperator, token)

  router.use(requireLoopbackNames)
  router.get('/healthz', (ctx) => reply(ctx, 200, { ok: true }))
  router.get('/readyz', async (ctx) => {
    const showsAll = isOperator(ctx.req)
    const state = await toReadiness(parts)
    reply(ctx, state.ok ? 200 : 503, showsAll ? state : toOutline(state))
  })
  router.get('/metrics', async (ctx) => {
    const body = await parts.metrics.page()
    send(ctx, {
      status: 200,
      body,
      headers: { 'cache-control': 'no-store', 'content-type': parts.metrics.contentType },
    })
  })
  router.get('/api/refusals', api, (ctx) =>
    reply(ctx, 200, { ok: true, refusals: refusals.list().map((refusal) => withNearest(refusal, generation())) }),
  )
  router.get('/api/refusals/:id', api, (ctx) => {
    const refusal = refusals.list().find(({ requestId }) => requestId === ctx.params['id'])
    if (refusal === undefined) {
      throw new Problem('not-found', 'No refusal has this request id. "hookloom list --refused" shows the ids.')
    }
    const request = toRefusedRequest(refusals.request(refusal.requestId))
    reply(ctx, 200, { ok: true, refusal: withNearest(refusal, generation()), request })
  })
  router.post('/api/deliveries/:id/retry', api, async (ctx) => {
    const heartbeat = await findHeartbeat(store, ctx)
    const retried = heartbeat === undefined ? retry(parts, await find(store, ctx)) : retryHeartbeat(parts, heartbeat)
    reply(ctx, 200, { ok: true, ...(await retried) })
  })
  router.post('/api/deliveries/:id/drop', api, async (ctx) => {
    const { deliveryId, state } = await find(store, ctx)
    if (!(await store.drop(deliveryId))) {
      throw new Problem(
        'conflict',
        `The delivery ${deliveryId} cannot be dropped: its state is ${state}. Only pending and parked deliveries can be.`,
      )
    }
    reply(ctx, 200, { ok: true, deliveryId, state: 'dropped' })
  })
  router.post('/api/parked/retry', api, async (ctx) =>
    reply(ctx, 200, { ok: true, ...(await parts.drain.retryParked(toParkedQuery(ctx))) }),
  )
  router.post('/api/parked/drop', api, async (ctx) =>
    reply(ctx, 200, { ok: true, ...(await parts.drain.dropParked(toParkedQuery(ctx))) }),
  )
  router.get('/api/runs/:id', api, async (ctx) => {
    const job = await store.job(ctx.params['id'] ?? '')
    if (job === undefined || job.planned.kind === 'wake')
      throw new Problem(
        'not-found',
        'No run has this id. "hookloom list" shows the deliveries, "hookloom show" their runs.',
      )
    reply(ctx, 200, { ok: true, ...toJobFields(job) })
  })
  router.get('/api/sessions/:key', api, async (ctx) =>
    reply(ctx, 200, { ok: true, ...(await readSession(parts, ctx)) }),
  )
  router.post('/api/mappings/:id/arm', api, (ctx) => {
    const mappingId = findSigned(generation(), ctx.params['id'] ?? '')
    reply(ctx, 200, { ok: true, mappingId, until: new Date(parts.handed.arm(mappingId)).toISOString() })
  })
  router.all('/{*path}', () => {
    throw new Problem(
      'not-found',
      'The admin port has GET /healthz, /readyz and /metrics, and /api for the commands. The hooks are on server.port.',
    )
  })
  return toListener(router, parts)
}

/**
 * `ok`: deliveries become durable. `degraded`: a saved file is not live, or its deliveries park. `warnings`: limits that are near.
 */
async function toReadiness({ store, status, unnamedProxies }: AdminParts) {
  const { warning, ...health } = await store.health()
  return {
    ok: health.trouble === undefined,
    ...status(),
    warnings: warning === undefined ? [] : [warning],
    proxies: unnamedProxies.warnings(),
    store: health,
  }
}

/** For requests without the gateway token, such as a probe: no source line, no path, no hash. */
function toOutline({ ok, degraded, problems, warnings }: Awaited<ReturnType<typeof toReadiness>>) {
  const modules = new Set(problems.flatMap(({ module }) => module ?? []))
  return { ok, degraded, modules: modules.size, warnings }
}

/** `?hook=` for one hook, `?after=` with the `next` of the answer before. */
function toParkedQuery({ query: { hook, after } }: Context): ParkedQuery {
  const toText = (value: string | string[] | undefined) => (typeof value === 'string' ? value : undefined)
  return { hook: toText(hook), after: toText(after) }
}

async function find(store: Store, ctx: Context & { params: Record<string, string> }): Promise<DeliveryRecord> {
  const id = ctx.params['id'] ?? ''
  const record = await store.delivery(id)
  if (record === undefined)
    throw new Problem('not-found', 'No delivery or run has this id. "hookloom list" shows the ids.')
  return record
}

/** A heartbeat: the only kind of run without a delivery. */
async function findHeartbeat(store: Store, ctx: Context & { params: Record<string, string> }) {
  const job = await store.job(ctx.params['id'] ?? '')
  return job?.deliveryId === undefined ? job : undefined
}

/** A session of the agent that `?agentId=` names, or of the default agent, with its newest messages. */
async function readSession({ store, generation }: AdminParts, ctx: Context & { params: Record<string, string> }) {
  const { agentId: named } = ctx.query
  const agentId = typeof named === 'string' ? named : toDefaultAgentId(generation().config)
  const sessionKey = ctx.params['key'] ?? ''
  const session = await store.session({ agentId, sessionKey })
  if (session === undefined)
    throw new Problem('not-found', 'No session of this agent has this key. "hookloom sessions" shows the keys.')
  return toSessionFields(session, await store.messages({ agentId, sessionKey, limit: shownMessages }))
}

/** The id of a mapping whose sender gives its secret in a handshake. Other mappings have no handshake to wait for. */
function findSigned({ mappings }: Generation, id: string): string {
  const { verifier } = mappings.find((mapping) => mapping.id === id) ?? {}
  if (verifier === undefined) throw new Problem('not-found', 'No mapping with verify has this id.')
  if (verifier.handsOver) return id
  const { scheme } = verifier
  throw new Problem(
    'conflict',
    `The scheme "${scheme}" has no handshake that gives a secret. Put the secret into verify.`,
  )
}

/** Runs a parked delivery again, or queues the dead jobs of an accepted one again. */
async function retry({ store, rerunner, poke }: AdminParts, record: DeliveryRecord) {
  const { deliveryId } = record
  const [open] = await store.open({ id: deliveryId, limit: 1 })
  if (open !== undefined) return { deliveryId, state: await rerunner.rerun(open), jobs: [] }
  const jobs: string[] = []
  for (const job of record.jobs) if (job.state === 'dead' && (await store.requeue(job.id))) jobs.push(job.id)
  if (jobs.length === 0)
    throw new Problem(
      'conflict',
      `The delivery ${deliveryId} cannot be retried: its state is ${record.state}, and it has no dead run.`,
    )
  poke()
  return { deliveryId, state: record.state, jobs }
}

async function retryHeartbeat({ store, poke }: AdminParts, { id, state }: Job) {
  if (!(await store.requeue(id)))
    throw new Problem('conflict', `The heartbeat cannot be retried: its state is ${state}, not dead.`)
  poke()
  return { deliveryId: null, state: 'queued', jobs: [id] }
}

function reply(ctx: Context, status: number, body: object): void {
  ctx.set('cache-control', 'no-store')
  send(ctx, { status, body: JSON.stringify(body) })
}

// a web page in the operator's browser must not reach this port, neither by a name that resolves to loopback nor cross-site
const loopbackName = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i

async function requireLoopbackNames(ctx: Context, next: Next): Promise<void> {
  const { host, origin } = ctx.req.headers
  const sameSite = origin === undefined || loopbackName.test(origin.replace(/^https?:\/\//i, ''))
  if (host === undefined || !loopbackName.test(host) || !sameSite || saysCrossSite(ctx.req.headers)) {
    throw new Problem(
      'origin-denied',
      'The admin port answers only requests to localhost that do not come from another site.',
    )
  }
  await next()
}

function requireToken(isOperator: IsOperator, token: () => string | undefined) {
  return async (ctx: Context, next: Next): Promise<void> => {
    if (token() === undefined) throw new Problem('unauthorized', 'Set gateway.token to use the admin API.')
    if (!isOperator(ctx.req)) {
      throw new Problem(
        'unauthorized',
        'The gateway token is missing. Send it as "Authorization: Bearer <gateway.token>".',
      )
    }
    await next()
  }
}
