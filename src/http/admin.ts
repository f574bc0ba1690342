// The admin port: health pages, metrics, and the API that changes a running gateway. Loopback only; /api requires the gateway token.
import type { RequestListener } from 'node:http'
import Router from '@koa/router'
import type { Context, Next } from 'koa'
import { isMarkedCrossSite } from '../base/http.ts'
import type { Log } from '../model/log.ts'
import { Problem } from '../model/problem.ts'
import type { CompiledMapping } from '../pipeline/compile.ts'
import type { Generation } from '../pipeline/generation.ts'
import { addDeliveryRoutes } from './api/deliveries.ts'
import { addAttentionRoute } from './api/attention.ts'
import { addHealthRoute } from './api/health.ts'
import type { ApiParts } from './api/parts.ts'
import { addReplayRoutes, type AdminReplayer } from './api/replays.ts'
import { reply } from './api/reply.ts'
import { addSessionRoutes } from './api/sessions.ts'
import { createPageKeys } from './api/page-keys.ts'
import { addPageRoutes } from './api/page.ts'
import { addStreamRoute } from './api/streams.ts'
import type { ParkedCalls, ParkedQuery } from '../deliveries/parked-calls.ts'
import type { HandshakeSecrets } from './handshake-secrets.ts'
import type { UnnamedProxies } from './client.ts'
import type { Metrics } from './metrics.ts'
import type { Readiness } from './readiness.ts'
import { createOperatorCheck, type OperatorOf } from './operator.ts'
import { describeDifference } from '../deliveries/records.ts'
import { toRefusedRequest, addNearestHook } from './refusals.ts'
import { sendAnswer, createRequestListener } from './server.ts'

type AdminParts = ApiParts & {
  readonly drain: ParkedCalls
  readonly handed: HandshakeSecrets
  readonly metrics: Metrics
  readonly readiness: Pick<Readiness, 'isStopping'>
  readonly unnamedProxies: Pick<UnnamedProxies, 'warnings'>
  readonly replayer: AdminReplayer
  readonly log: Log
}

export function createAdminApp(parts: AdminParts): RequestListener {
  const { refusals, generation } = parts
  const router = new Router({ sensitive: true, strict: true })
  const token = () => generation().config.gateway.token
  const keys = createPageKeys({ token, clock: parts.clock })
  const operatorOf = createOperatorCheck({ token, keys, clock: parts.clock })
  const api = requireOperator({ operatorOf, token, accepts: ['token', 'page'] })

  router.use(requireLoopbackNames)
  router.get('/healthz', (ctx) => reply(ctx, {}))
  router.get('/readyz', async (ctx) => {
    const showsAll = operatorOf(ctx.req) !== undefined
    const state = await readReadiness(parts)
    reply(ctx, showsAll ? state : toOutline(state), state.ok ? 200 : 503)
  })
  router.get('/metrics', async (ctx) => {
    const body = await parts.metrics.page()
    sendAnswer(ctx, {
      status: 200,
      body,
      headers: { 'cache-control': 'no-store', 'content-type': parts.metrics.contentType },
    })
  })
  router.get('/api/refusals', api, (ctx) =>
    reply(ctx, { refusals: refusals.list().map((refusal) => addNearestHook(refusal, generation())) }),
  )
  router.get('/api/refusals/:id', api, (ctx) => {
    const refusal = refusals.list().find(({ requestId }) => requestId === ctx.params['id'])
    if (refusal === undefined) {
      throw new Problem('not-found', 'No refusal has this request id. "hookloom list --refused" shows the ids.')
    }
    const request = toRefusedRequest(refusals.request(refusal.requestId))
    reply(ctx, { refusal: addNearestHook(refusal, generation()), request })
  })
  addDeliveryRoutes(router, api, parts)
  router.post('/api/parked/retry', api, async (ctx) => reply(ctx, await parts.drain.retryParked(readParkedQuery(ctx))))
  router.post('/api/parked/drop', api, async (ctx) => reply(ctx, await parts.drain.dropParked(readParkedQuery(ctx))))
  addSessionRoutes(router, api, parts)
  addHealthRoute(router, api, parts)
  addAttentionRoute(router, api, parts)
  addStreamRoute(router, api, parts)
  addPageRoutes(router, requireOperator({ operatorOf, token, accepts: ['token'] }), keys)
  addReplayRoutes(router, api, parts)
  router.post('/api/mappings/:id/arm', api, async (ctx) => {
    const { id: mappingId, identity } = findHandoverMapping(generation(), ctx.params['id'] ?? '')
    const until = new Date(await parts.handed.arm(identity.secretsName)).toISOString()
    parts.log.info({ mappingId, until }, `The mapping "${mappingId}" accepts a secret of its sender until ${until}.`)
    reply(ctx, { mappingId, until })
  })
  router.all('/{*path}', () => {
    throw new Problem(
      'not-found',
      'The admin port has the page at /, GET /healthz, /readyz and /metrics, and /api. The hooks are on server.port.',
    )
  })
  return createRequestListener(router.routes(), parts)
}

/**
 * `ok`: deliveries are stored durably. `degraded`: a saved file is not live, or its deliveries are parked. `warnings`: limits that are
 * almost reached.
 */
async function readReadiness({ store, status, unnamedProxies, readiness }: AdminParts) {
  const [{ warning, ...health }, nodes] = await Promise.all([store.health(), store.nodes().catch(() => [])])
  const different = describeDifference(nodes)
  return {
    ok: health.trouble === undefined && !readiness.isStopping(),
    ...status(),
    warnings: warning === undefined ? [] : [warning],
    nodes,
    ...(different && { different }),
    proxies: unnamedProxies.warnings(),
    store: health,
  }
}

/** The state for a request without the gateway token, such as a probe: without source lines, paths and hashes. */
function toOutline({ ok, degraded, held, problems, warnings }: Awaited<ReturnType<typeof readReadiness>>) {
  const modules = new Set(problems.flatMap(({ module }) => module ?? []))
  const isRefused = problems.some(({ module }) => module === undefined)
  return {
    ok,
    degraded,
    configuration: isRefused ? 'refused' : held ? 'held' : 'live',
    modules: modules.size,
    warnings,
  }
}

/** Reads `?hook=`, which selects one hook, and `?after=`, the `next` of the previous answer. */
function readParkedQuery({ query: { hook, after } }: Context): ParkedQuery {
  const toText = (value: string | string[] | undefined) => (typeof value === 'string' ? value : undefined)
  return { hook: toText(hook), after: toText(after) }
}

/** The mapping with this id, if its sender gives its secret in a handshake. Throws `not-found` or `conflict`. */
function findHandoverMapping({ mappings }: Generation, id: string): CompiledMapping {
  const found = mappings.find((mapping) => mapping.id === id)
  const verifier = found?.verifier
  if (found === undefined || verifier === undefined)
    throw new Problem('not-found', 'No mapping with verify has this id.')
  if (verifier.handsOver) return found
  const { scheme } = verifier
  throw new Problem(
    'conflict',
    `The scheme "${scheme}" has no handshake that gives a secret. Put the secret into verify.`,
  )
}

// a web page in the operator's browser must not reach this port, neither by a name that resolves to loopback nor cross-site
const loopbackName = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i

async function requireLoopbackNames(ctx: Context, next: Next): Promise<void> {
  const { headers } = ctx.req
  const { host, origin } = headers
  // the page shows nothing without a key, so a link from elsewhere may open it: the file of `hookloom open` has such a link
  const opensPage =
    ctx.path === '/' && headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document'
  const sameSite = origin === undefined || loopbackName.test(origin.replace(/^https?:\/\//i, ''))
  if (host === undefined || !loopbackName.test(host) || !sameSite || (isMarkedCrossSite(headers) && !opensPage)) {
    throw new Problem(
      'origin-denied',
      'The admin port answers only requests to localhost that do not come from another site.',
    )
  }
  await next()
}

function requireOperator({
  operatorOf,
  token,
  accepts,
}: {
  operatorOf: OperatorOf
  token: () => string | undefined
  accepts: readonly ReturnType<OperatorOf>[]
}) {
  return async (ctx: Context, next: Next): Promise<void> => {
    if (token() === undefined) throw new Problem('unauthorized', 'Set gateway.token to use the admin API.')
    if (!accepts.includes(operatorOf(ctx.req))) {
      throw new Problem(
        'unauthorized',
        'The gateway token is missing. Send it as "Authorization: Bearer <gateway.token>".',
      )
    }
    await next()
  }
}
