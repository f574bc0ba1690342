// The admin port: health, metrics, the page, and the API. A route of the API names the right that its token needs, except the two routes by which
// the page gets its key and recognises its gateway. If other machines can reach the port, /metrics also requires a token.
import type { RequestListener } from 'node:http'
import Router from '@koa/router'
import type { Context, Next } from 'koa'
import { isLoopbackHost, isMarkedCrossSite } from '../../base/http.ts'
import { Problem } from '../../core/model/problem.ts'
import type { CompiledMapping } from '../../core/mapping/compile.ts'
import type { Generation } from '../generation/generation.ts'
import { createActRecorder } from './api/acts.ts'
import { handleAlerts } from './api/alerts.ts'
import { answerJson } from './api/answer.ts'
import { handleAttention } from './api/attention.ts'
import { handleAudit } from './api/audit.ts'
import { handleBench } from './api/bench.ts'
import { handleBudgets } from './api/budgets.ts'
import { handleDeliveries } from './api/deliveries.ts'
import { addRoutes, type Handlers } from './api/handlers.ts'
import { handleHealth, toSlotFields } from './api/health.ts'
import { addOpenApiRoute } from './api/openapi.ts'
import { handleOutlets } from './api/outlets.ts'
import { handleSpending } from './api/spending.ts'
import { createPageKeys } from './api/page-keys.ts'
import { handlePage } from './api/page.ts'
import { addPageFiles } from './api/page-files.ts'
import { handleParked } from './api/parked.ts'
import type { ApiParts } from './api/parts.ts'
import { handlePauses, listPauses } from './api/pauses.ts'
import { handleRecover } from './api/recover.ts'
import { handleRefusals } from './api/refusals.ts'
import { handleReplays } from './api/replays.ts'
import { handleSessions } from './api/sessions.ts'
import { handleShapes } from './api/shapes.ts'
import { handleState } from './api/state.ts'
import { handleStream } from './api/streams.ts'
import { handleTokens } from './api/tokens.ts'
import type { StoredAccess } from './stored-tokens.ts'
import type { UnnamedProxies } from './client.ts'
import type { Metrics } from './metrics.ts'
import type { Readiness } from './readiness.ts'
import { anyReader, createGuard, createOperatorCheck } from './operator.ts'
import { describeGenerationDifference } from '../deliveries/records.ts'
import { sendAnswer, createRequestListener } from './server.ts'

type AdminParts = ApiParts & {
  readonly access: StoredAccess
  readonly metrics: Metrics
  readonly readiness: Pick<Readiness, 'isStopping'>
  readonly unnamedProxies: Pick<UnnamedProxies, 'listWarnings'>
  /** The address on which the port listens. */
  readonly adminHost: string
}

export function createAdminApp(parts: AdminParts): RequestListener {
  const { generation } = parts
  const router = new Router({ sensitive: true, strict: true })
  const token = () => generation().config.gateway.token
  const keys = createPageKeys({ token, clock: parts.clock })
  const operators = createOperatorCheck({ generation, access: parts.access, keys, clock: parts.clock })
  const guard = createGuard({ operators, token, acts: createActRecorder(parts) })

  const isLocal = isLoopbackHost(parts.adminHost)
  const names = () => generation().config.server.adminNames
  // if names are configured, a proxy forwards requests of other machines to this port
  const isExposed = () => !isLocal || names().length > 0

  router.use(createNameCheck({ names, isLocal }))
  router.get(['/healthz', '/livez'], (ctx) => answerJson(ctx, {}))
  router.get('/readyz', async (ctx) => {
    const showsAll = operators.require(ctx.req, 'read') !== undefined
    const state = await readReadiness(parts)
    const shown = showsAll ? state : isExposed() ? { ok: state.ok } : toOutline(state)
    answerJson(ctx, shown, state.ok ? 200 : 503)
  })
  router.get('/metrics', async (ctx) => {
    const sendMetrics = async () => {
      const body = await parts.metrics.renderPage()
      const headers = { 'cache-control': 'no-store', 'content-type': parts.metrics.contentType }
      sendAnswer(ctx, { status: 200, body, headers })
    }
    await (isExposed() ? guard(ctx, anyReader, sendMetrics) : sendMetrics())
  })
  addPageFiles(router)
  addOpenApiRoute(router, guard, parts)
  const handlers: Handlers = {
    ...handleDeliveries(parts),
    ...handleParked(parts),
    ...handleRefusals(parts),
    ...handleSessions(parts),
    ...handlePauses(parts),
    ...handleBudgets(parts),
    ...handleState(parts),
    ...handleTokens({ ...parts, tokens: parts.access.tokens }),
    ...handleAudit(parts),
    ...handleHealth(parts),
    ...handleOutlets(parts),
    ...handleSpending(parts),
    ...handleAlerts(parts),
    ...handleAttention(parts),
    ...handleStream({ ...parts, operators }),
    ...handlePage({ keys, operators, auditor: parts.auditor }),
    ...handleReplays(parts),
    ...handleBench({ ...parts, operators }),
    ...handleShapes(parts),
    ...handleRecover(parts),
    'POST /api/mappings/{id}/arm': async ({ params }) => {
      const { id: mappingId, identity } = findHandoverMapping(generation(), params.id)
      const until = new Date(await parts.handed.arm(identity.secretsName)).toISOString()
      parts.log.info({ mappingId, until }, `The mapping "${mappingId}" accepts a secret of its sender until ${until}.`)
      return { mappingId, until }
    },
  }
  addRoutes(router, handlers, { guard, generation })
  router.all('/{*path}', () => {
    throw new Problem(
      'not-found',
      'The admin port has the page at /, GET /livez, /healthz, /readyz and /metrics, and /api. The hooks are on server.port.',
    )
  })
  return createRequestListener(router.routes(), parts)
}

/**
 * `ok`: deliveries are stored durably, and the gateway is not stopping. `degraded`: a saved file is not live, or the mailbox has a problem.
 * `warnings`: limits of the store that are almost reached.
 */
async function readReadiness({ store, status, generation, unnamedProxies, readiness, slots }: AdminParts) {
  const [{ warning, ...health }, nodes, paused] = await Promise.all([
    store.health(),
    store.nodes().catch(() => []),
    listPauses({ store, generation }).catch(() => []),
  ])
  const different = describeGenerationDifference(nodes)
  return {
    ok: health.trouble === undefined && !readiness.isStopping(),
    ...status(),
    warnings: warning === undefined ? [] : [warning],
    paused,
    nodes,
    ...(different && { different }),
    slots: toSlotFields(slots()),
    proxies: unnamedProxies.listWarnings(),
    store: health,
  }
}

/** What a request without a token, such as a probe, may see of the state: no source lines, no paths and no hashes. */
function toOutline({ ok, degraded, held, problems, warnings, paused }: Awaited<ReturnType<typeof readReadiness>>) {
  const modules = new Set(problems.flatMap(({ module }) => module ?? []))
  const isRefused = problems.some(({ module }) => module === undefined)
  return {
    ok,
    degraded,
    configuration: isRefused ? 'refused' : held ? 'held' : 'live',
    modules: modules.size,
    paused: paused.length,
    warnings,
  }
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

// a web page in the operator's browser must not reach this port, neither by a host name that resolves to it nor by a cross-site request
const loopbackName = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i

/**
 * Refuses a `Host` that is neither loopback nor one of `names` nor, if the port is not local, the address to which the client connected. This
 * stops DNS rebinding, because a page that was loaded under another name sends that name. Refuses cross-site requests too, except to open the page.
 */
function createNameCheck({ names, isLocal }: { names: () => readonly string[]; isLocal: boolean }) {
  function isOwnName(host: string, { localAddress = '' }: Context['req']['socket']): boolean {
    if (loopbackName.test(host)) return true
    const name = host.replace(/:\d+$/, '').toLowerCase()
    if (names().some((known) => known.toLowerCase() === name)) return true
    const address = localAddress.replace(/^::ffff:(?=[\d.]+$)/i, '')
    return !isLocal && address !== '' && name === (address.includes(':') ? `[${address}]` : address)
  }

  return async (ctx: Context, next: Next): Promise<void> => {
    const { headers, socket } = ctx.req
    const { host, origin } = headers
    // the page shows nothing without a key, so a link on another site may open it: `hookloom open` writes a file with such a link
    const opensPage =
      ctx.path === '/' && headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document'
    const sameSite = origin === undefined || isOwnName(origin.replace(/^https?:\/\//i, ''), socket)
    if (host === undefined || !isOwnName(host, socket) || !sameSite || (isMarkedCrossSite(headers) && !opensPage)) {
      throw new Problem(
        'origin-denied',
        'The admin port answers only requests to localhost, to its own address and to server.adminNames that do not come from another site.',
      )
    }
    await next()
  }
}
