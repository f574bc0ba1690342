// A relay: takes the requests of senders for homes that have no public address, and keeps each one, sealed, until its home has taken it.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Log } from '../shared/kit.ts'
import { createHomeSide } from './home-side.ts'
import { type Connected, createLine } from './line.ts'
import { createBucket, RelayRefusal, sendBytes, sendJsonAnswer } from './relay-http.ts'
import { openRelayStore, type RelayLimits, relayLimits } from './relay-store.ts'
import { createSenderSide } from './sender-side.ts'

export type Relay = {
  readonly url: string
  /** Stops listening, answers the calls of homes, and resolves when the running requests have their answers. */
  close(): Promise<void>
}

type RelayOptions = {
  readonly dir: string
  readonly host: string
  /** 0 is any free port. */
  readonly port: number
  readonly limits?: Partial<RelayLimits>
  readonly clock: () => number
  readonly log: Log
}

const requestsPerSecond = 50
const bodiesBytes = 64 * 1024 ** 2
const removeEveryMs = 3_600_000
const graceMs = 5_000
const closeEveryMs = 50

export async function startRelay({ dir, host, port, limits, clock, log }: RelayOptions): Promise<Relay> {
  const store = await openRelayStore({ dir, limits: { ...relayLimits, ...limits }, clock })
  await store.removeOld()
  const stopping = new AbortController()
  const memory = { held: 0, max: bodiesBytes }
  const connected = new Map<string, Connected>()
  const find = (address: string): Connected => {
    const known = connected.get(address)
    if (known !== undefined) return known
    const made = { line: createLine(clock), bucket: createBucket(requestsPerSecond, clock) }
    connected.set(address, made)
    return made
  }
  const receive = createSenderSide({ store, find, memory, clock, log })
  const answerHome = createHomeSide({ store, find, memory, clock, stopping: stopping.signal })

  async function route(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { url = '/' } = req
    const [, address = '', rest = ''] = /^\/r\/([^/?]*)(.*)$/s.exec(url) ?? []
    if (address !== '') return receive(req, res, { address, url: rest.startsWith('/') ? rest : `/${rest}` })
    if (url.startsWith('/homes/')) return sendBytes(res, await answerHome(req))
    if (url === '/healthz') return sendJsonAnswer(res, 200, { ok: true })
    throw new RelayRefusal(404, 'Nothing is here.')
  }

  const server = createServer({ headersTimeout: 10_000, connectionsCheckingInterval: 2_000 }, (req, res) => {
    if (stopping.signal.aborted) res.setHeader('connection', 'close')
    route(req, res).catch((error: unknown) => {
      if (error instanceof RelayRefusal)
        return sendJsonAnswer(res, error.status, { ok: false, error: error.message }, error.headers)
      log.error({ err: error }, 'a request failed inside the relay')
      sendJsonAnswer(res, 503, { ok: false, error: 'The relay cannot keep the request now.' }, { 'retry-after': '60' })
    })
  })
  server.maxConnections = 4_096
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  const removing = setInterval(() => {
    store.removeOld().catch((error: unknown) => log.error({ err: error }, 'old envelopes could not be removed'))
  }, removeEveryMs)
  const bound = server.address()
  const usedPort = typeof bound === 'object' && bound !== null ? bound.port : port
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${usedPort}`,
    async close() {
      clearInterval(removing)
      stopping.abort()
      const cutOff = setTimeout(() => server.closeAllConnections(), graceMs)
      const closing = setInterval(() => server.closeIdleConnections(), closeEveryMs)
      await new Promise<void>((resolve) => {
        server.close(() => resolve())
      })
      clearTimeout(cutOff)
      clearInterval(closing)
    },
  }
}
