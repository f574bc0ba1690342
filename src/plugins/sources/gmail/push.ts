// The receiver of pushes. It has its own port and path, separate from the hook endpoints, and its URL contains no token.
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { z } from 'zod'
import type { SourceHost } from '../../../define.ts'
import {
  isCrossSite,
  type PinnedFetch,
  Problem,
  readLimitedBody,
  tryParseJson,
  type Verifier,
  type WatchedGmail,
} from '../shared/kit.ts'
import type { GoogleCall } from './call.ts'
import { singleFlight } from './pace.ts'
import { readNotifiedAccount, toPushConfig } from './pubsub.ts'

const maxBytes = 65_536
const bodyMs = 15_000

const Envelope = z.object({ message: z.object({ data: z.string() }) })

type PushParts = {
  readonly gmail: WatchedGmail
  /** Fetches the keys that verify the tokens, without authorisation. */
  readonly call: GoogleCall
  readonly clock: () => number
  /** Called before the answer. If the process crashes before the sync ends, the next start syncs. */
  readonly onNotification: () => void
} & Pick<SourceHost, 'gate' | 'verifier' | 'log'>
export type PushReceiver = { readonly port: number; close(): void }

/** Starts the receiver. Throws `config-invalid` if it cannot listen on the port. */
export async function startPushReceiver(parts: PushParts): Promise<PushReceiver> {
  const { host, port, path } = parts.gmail.push
  const verifier = createPushVerifier(parts)
  const logRefusal = createRefusalLog(parts)
  const server = createServer((request, response) => {
    const reply = async () => {
      const failed = (): Answer => ({ status: 500 })
      const { status, headers = {} } = await answer(request, { ...parts, verifier, logRefusal }).catch(failed)
      // the body of a refused request may be unread, so the connection is closed
      const closing = status === 204 ? {} : { connection: 'close' }
      response.writeHead(status, { ...closing, ...headers }).end()
    }
    void reply()
  })
  server.requestTimeout = bodyMs
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) =>
      reject(
        new Problem('config-invalid', `Cannot listen at ${host}:${port}. Set hooks.gmail.push.port to a free port.`, {
          cause,
        }),
      ),
    )
    server.listen(port, host, resolve)
  })
  // a listening TCP server always has an address with a port
  const { port: taken } = server.address() as AddressInfo
  parts.log.info({ host, port: taken, path }, 'the gateway listens for pushes of Pub/Sub')
  return {
    port: taken,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

type Answer = { readonly status: number; readonly headers?: Readonly<Record<string, string>> }
type AnswerParts = Omit<PushParts, 'verifier'> & { readonly verifier: Verifier; readonly logRefusal: LogRefusal }

async function answer(request: IncomingMessage, parts: AnswerParts): Promise<Answer> {
  const { gmail, onNotification, verifier, logRefusal, gate } = parts
  const { method = '', url = '' } = request
  if (url.split('?')[0] !== gmail.push.path) return { status: 404 }
  if (isCrossSite(request.headers)) return { status: 403 }
  if (method !== 'POST') return { status: 405, headers: { allow: 'POST' } }
  const { authorization } = request.headers
  const headers = authorization === undefined ? {} : { authorization }
  // the proof is in the header: the body of an unauthenticated request is never read
  const verified = await verifier.verify({ method, url, headers, rawBody: new Uint8Array() })
  if (!verified.ok) {
    logRefusal(verified.reason)
    return verified.fault === 'sender' ? answerRefusal(gate, gate.clientOf(request)) : { status: 503 }
  }
  const body = await readLimitedBody(request, maxBytes)
  if (body === undefined) return { status: 413 }
  const envelope = Envelope.safeParse(tryParseJson(body))
  if (!envelope.success) return { status: 400 }
  // a push for another mailbox is accepted and ignored: if it were refused, it would be repeated for days
  if (readNotifiedAccount(envelope.data.message.data) === gmail.account) onNotification()
  else logRefusal('The push is for another mailbox than hooks.gmail.account.')
  return { status: 204 }
}

function answerRefusal(gate: SourceHost['gate'], client: string): Answer {
  const lockedFor = gate.readLockSeconds(client)
  if (lockedFor !== undefined) return { status: 429, headers: { 'retry-after': String(lockedFor) } }
  gate.fail(client)
  return { status: 401 }
}

const minute = 60_000
type LogRefusal = (reason: string) => void

/** Logs refused and ignored pushes at most once a minute, with their number, so that outsiders cannot fill the log. */
function createRefusalLog({ clock, log }: PushParts): LogRefusal {
  let loggedAt = -Infinity
  let pushes = 0
  return (reason) => {
    pushes += 1
    const age = clock() - loggedAt
    if (age >= 0 && age < minute) return
    log.warn({ pushes, reason }, 'pushes were refused or ignored; the reason is that of the last one')
    loggedAt = clock()
    pushes = 0
  }
}

/** The verifier of Pub/Sub: signature, issuer, audience, times, service account and its verified address. */
function createPushVerifier({ gmail, call, verifier, clock }: PushParts): Verifier {
  const config = toPushConfig(gmail)
  return verifier(
    { scheme: 'google-pubsub', audience: config?.oidcToken.audience, email: config?.oidcToken.serviceAccountEmail },
    createCertFetch(call, gmail.endpoints.oidcCerts, clock),
  )
}

/** A fetch for the keys. The operator sets the only URL that is fetched, so the URL needs no check. */
function createCertFetch(call: GoogleCall, url: string, clock: () => number): PinnedFetch {
  let kept: { at: number; body: string } | undefined
  // concurrent requests share one fetch
  const fetchCerts = singleFlight(async () => JSON.stringify((await call({ method: 'GET', url })).body))
  return async (_, { maxAgeMs }) => {
    if (kept !== undefined && clock() - kept.at < maxAgeMs) return { ok: true, body: kept.body }
    try {
      const body = await fetchCerts()
      kept = { at: clock(), body }
      return { ok: true, body }
    } catch {
      return { ok: false, fault: 'gateway', reason: 'The keys that verify the tokens could not be fetched.' }
    }
  }
}
