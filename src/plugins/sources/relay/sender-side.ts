// The side of a relay that senders see: a request is on disk before it gets 2xx.
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ArrivedAnswer } from '../../../define.ts'
import type { Log } from '../shared/kit.ts'
import { sealRequest } from './envelope.ts'
import { isAddress } from './keys.ts'
import { type HeldBodies, readClient, RelayRefusal, sendBytes, sendJsonAnswer, withBody } from './relay-http.ts'
import type { Connected } from './line.ts'
import type { RelayStore } from './relay-store.ts'

type Parts = {
  readonly store: Pick<RelayStore, 'find'>
  readonly find: (address: string) => Connected
  readonly memory: HeldBodies
  readonly clock: () => number
  readonly log: Log
}

/** `url`: what follows the address. */
type Target = { readonly address: string; readonly url: string }

const maxBodyBytes = 1024 ** 2
const bodyTimeoutMs = 10_000
/** How long a sender waits for the answer of its home: less than the shortest time limit of a known sender, which is three seconds. */
const answerWithinMs = 2_500
/** Handshakes, which are not stored. */
const handshakeWithinMs = 5_000
const fullRetrySeconds = 300
const awayRetrySeconds = 30

const stored: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])
const passed: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

export function createSenderSide({ store, find, memory, clock, log }: Parts) {
  return async function receive(req: IncomingMessage, res: ServerResponse, target: Target): Promise<void> {
    const { address } = target
    // a stranger may write anything there
    const shown = isAddress(address) ? address : null
    let size = 0
    res.once('close', () => log.info({ address: shown, bytes: size, status: res.statusCode }, 'request'))
    const { method = '' } = req
    const home = store.find(address)
    if (home === undefined) throw new RelayRefusal(404, 'No home has this address.')
    if (!stored.has(method) && !passed.has(method))
      throw new RelayRefusal(405, 'The relay does not pass this method on.')
    const { line, bucket } = find(address)
    if (!bucket.take()) throw new RelayRefusal(429, 'Too many requests for this address.', 1)
    const id = randomUUID()
    const envelope = await withBody(req, { maxBytes: maxBodyBytes, timeoutMs: bodyTimeoutMs, memory }, async (body) => {
      size = body.length
      const { rawHeaders } = req
      const arrived = { id, at: clock(), method, url: target.url, rawHeaders, client: readClient(req), body }
      return sealRequest(arrived, home.keys)
    })
    if (passed.has(method)) return passOn()
    const answer = line.isConnected() ? line.expect(id, answerWithinMs) : undefined
    if (!(await home.append(envelope)))
      throw new RelayRefusal(503, 'Too many requests wait for the gateway.', fullRetrySeconds)
    line.wake()
    const given = await answer
    // of a failure the home was not able to take it yet, and the relay has it
    if (given === undefined || given.status >= 500) sendJsonAnswer(res, 202, { ok: true })
    else sendAnswer(res, given)

    async function passOn(): Promise<void> {
      const waiting = line.isConnected() ? line.expect(id, handshakeWithinMs) : undefined
      if (waiting !== undefined) line.offer(envelope, handshakeWithinMs)
      const found = await waiting
      if (found === undefined) throw new RelayRefusal(503, 'The gateway is not connected.', awayRetrySeconds)
      sendAnswer(res, found)
    }
  }
}

const passedHeaders = [
  'content-type',
  'retry-after',
  'www-authenticate',
  'allow',
  'webhook-allowed-origin',
  'webhook-allowed-rate',
]

function sendAnswer(res: ServerResponse, { status, headers, body }: ArrivedAnswer): void {
  const given = passedHeaders.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]] as const]))
  sendBytes(res, { status, headers: Object.fromEntries(given), body })
}
