// The HTTP server of both ports. An error that a route throws becomes an answer in one place.
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type Router from '@koa/router'
import Koa, { type Context } from 'koa'
import type { Log } from '../../base/log.ts'
import { Problem, toProblem } from '../../core/model/problem.ts'
import { toRefusalAnswer } from '../../core/mapping/answer.ts'
import { dropRest } from './body.ts'
import { createPeerLookup } from './client.ts'
import { connectionLimits, createConnections } from './connections.ts'
import { findArrived } from './inject.ts'
import { createMalformedGuard, maxHeaders } from './malformed.ts'
import type { Readiness } from './readiness.ts'
import type { Receiver } from './receive.ts'
import type { StreamedAnswer } from './runs.ts'
import { toUrlPath } from './target.ts'

type Listening = {
  readonly host: string
  readonly port: number
  /** Stops listening, gives running requests `graceMs` to end, then closes their connections. */
  close(graceMs: number): Promise<void>
}

type ListenerParts = { readonly newId: () => string; readonly log: Log }

/** The public port. It has only the hooks, and `/readyz` for balancers. No router: a hook is found by its undecoded path. */
export function createHookApp(
  parts: ListenerParts & { receive: Receiver['receive']; readiness?: Pick<Readiness, 'check'> },
): RequestListener {
  return createRequestListener(async (ctx: Context) => {
    // not `ctx.path`, which parses text from a stranger
    const isCheck = toUrlPath(ctx.req.url ?? '') === '/readyz' && (ctx.method === 'GET' || ctx.method === 'HEAD')
    const ready = isCheck ? await parts.readiness?.check(ctx.req) : undefined
    if (ready !== undefined) {
      const headers = { 'cache-control': 'no-store' }
      return sendAnswer(ctx, { status: ready ? 200 : 503, body: JSON.stringify({ ok: ready }), headers })
    }
    const arrived = findArrived(ctx.req)
    if (arrived !== undefined) ctx.set('x-request-id', arrived.id)
    const requestId = ctx.response.get('x-request-id')
    const continueNow = () => sendContinue(ctx)
    const answer = await parts.receive({ req: ctx.req, res: ctx.res, requestId, arrived, continueNow })
    sendAnswer(ctx, answer)
  }, parts)
}

/** Makes a listener that answers every failure with a JSON refusal. Only failures of the gateway itself are logged. */
export function createRequestListener(
  serve: Koa.Middleware | ReturnType<Router['routes']>,
  { newId, log }: ListenerParts,
): RequestListener {
  const app = new Koa()
  // Koa must not read forwarding headers: client.ts reads those of trusted proxies only
  app.proxy = false
  app.silent = true
  app.use(async (ctx, next) => {
    const requestId = newId()
    ctx.set('x-request-id', requestId)
    ctx.set('x-content-type-options', 'nosniff')
    try {
      await next()
      if (ctx.status === 404 && ctx.body === undefined) throw new Problem('hook-unknown', 'Nothing is here.')
    } catch (error) {
      const problem = toProblem(error)
      // a client that disconnects while it sends is not a fault of the gateway
      if (problem.code === 'internal-error' && !(ctx.req.destroyed && !ctx.req.complete)) {
        log.error({ err: problem.cause, requestId }, 'a request failed inside the gateway')
      }
      sendAnswer(ctx, toRefusalAnswer(problem))
    }
  })
  app.use(serve)
  return app.callback()
}

export function sendAnswer(ctx: Context, answer: StreamedAnswer): void {
  ctx.status = answer.status
  ctx.set(answer.headers ?? {})
  if (answer.stream !== undefined) ctx.body = answer.stream
  else if (answer.body === undefined) {
    ctx.body = null
    ctx.status = answer.status
  } else {
    // the answer to a handshake, for example, has another type
    if (!ctx.res.hasHeader('content-type')) ctx.set('content-type', 'application/json; charset=utf-8')
    ctx.body = answer.body
  }
  if (!ctx.req.complete) dropRest(ctx.req, ctx.res)
}

/** The time in which the head of a request must arrive, in milliseconds. Node counts it from the first byte, also on a kept connection. */
const headMs = 10_000
const checkEveryMs = 2_000

/** Requests with `Expect: 100-continue` that have got no response 100 yet. */
const awaitingContinue = new WeakSet<IncomingMessage>()

function sendContinue(ctx: Context): void {
  if (awaitingContinue.delete(ctx.req)) ctx.res.writeContinue()
}

/**
 * Listens. Port 0 is any free port. `bodyTimeoutMs` is the longest time for a body to arrive, and `keepAliveTimeoutMs` the time for which a
 * connection without requests is kept. `ports` are both ports of the gateway.
 * `peerOf` gives the client of a connection; without it no proxy is trusted.
 */
export async function listen(
  listener: RequestListener,
  options: {
    host: string
    port: number
    ports: Ports
    bodyTimeoutMs: number
    keepAliveTimeoutMs: number
    peerOf?: ReturnType<typeof createPeerLookup>
    log: Log
  },
): Promise<Listening> {
  const guard = createMalformedGuard()
  const connections = createConnections({
    peerOf: options.peerOf ?? createPeerLookup(() => []),
    keptMs: options.keepAliveTimeoutMs,
    now: () => performance.now(),
    warn: (text) => options.log.warn({}, text),
  })
  const onRequest = guard.watch(connections.watch(listener))
  const server = createServer(
    {
      // body.ts ends a slow body earlier, so `requestTimeout` is only the backstop
      headersTimeout: headMs,
      requestTimeout: headMs + options.bodyTimeoutMs + 5_000,
      connectionsCheckingInterval: checkEveryMs,
      keepAliveTimeout: options.keepAliveTimeoutMs,
      // malformed.ts checks the Host header, and answers in JSON
      requireHostHeader: false,
    },
    onRequest,
  )
  // connections.ts has the lower limit, and makes room for new connections
  server.maxConnections = connectionLimits.all + 512
  server.maxHeadersCount = maxHeaders + 1
  server.on('connection', connections.track)
  server.on('checkContinue', (req, res) => {
    awaitingContinue.add(req)
    onRequest(req, res)
  })
  // another expectation may be ignored (RFC 9110, 10.1.1); Node's own answer would be a 417 without a body
  server.on('checkExpectation', onRequest)
  server.on('clientError', guard.answer)
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(buildListenProblem(error, options)))
    server.listen(options.port, options.host, resolve)
  })
  server.on('error', (error) => options.log.error({ err: error }, 'the server reported an error'))
  const checking = setInterval(connections.closeIdle, checkEveryMs)
  const { port } = readAddress(server)
  return {
    host: options.host,
    port,
    close: (graceMs) => {
      clearInterval(checking)
      return closeServer(server, connections.startClosing, graceMs)
    },
  }
}

function readAddress(server: Server): AddressInfo {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server does not listen on a port')
  return address
}

type Ports = { readonly hooks: number; readonly admin: number }

function buildListenProblem(
  error: NodeJS.ErrnoException,
  { host, port, ports: { hooks, admin } }: { host: string; port: number; ports: Ports },
): Problem {
  const reason = error.code === 'EADDRINUSE' ? 'the port is in use' : (error.code ?? 'it failed')
  const both = `${hooks} (--port, or server.port) and ${admin} (--admin-port, or server.adminPort)`
  return new Problem(
    'config-invalid',
    `Cannot listen on ${host}:${port}: ${reason}. The gateway needs the ports ${both}. Choose others, or stop the program that uses the port.`,
    { cause: error },
  )
}

async function closeServer(server: Server, startClosing: () => void, graceMs: number): Promise<void> {
  startClosing()
  const cutOff = setTimeout(() => server.closeAllConnections(), graceMs)
  await new Promise<void>((resolve) => {
    server.close(() => resolve())
    server.closeIdleConnections()
  })
  clearTimeout(cutOff)
}
