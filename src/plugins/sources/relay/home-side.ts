// The side of a relay that homes see. Each call is signed with the key of the home, and its first one makes the home known.
//   GET  /homes/<address>/requests?after=<number>&epoch=<epoch>     the next envelopes, or none after 25 s; up to `after`, the home has taken all
//   POST /homes/<address>/answers?through=<number>&epoch=<epoch>    answers for senders that wait; up to `through`, the home has taken all
import type { IncomingMessage } from 'node:http'
import type { ArrivedAnswer } from '../../../define.ts'
import { Answered, joinHead, joinParts, splitHead, splitParts } from './wire.ts'
import type { Home } from './home.ts'
import { proveCall } from './keys.ts'
import { type HeldBodies, RelayRefusal, withBody } from './relay-http.ts'
import type { Connected } from './line.ts'
import type { RelayStore } from './relay-store.ts'

type Parts = {
  readonly store: Pick<RelayStore, 'open'>
  readonly find: (address: string) => Connected
  readonly memory: HeldBodies
  readonly clock: () => number
  /** Aborted when the relay stops. */
  readonly stopping: AbortSignal
}

const pollMs = 25_000
const batchBytes = 1024 ** 2
const maxAnswersBytes = 2 * 1024 ** 2
const bodyTimeoutMs = 10_000

export function createHomeSide({ store, find, memory, clock, stopping }: Parts) {
  return function answerHome(req: IncomingMessage): Promise<ArrivedAnswer> {
    return withBody(req, { maxBytes: maxAnswersBytes, timeoutMs: bodyTimeoutMs, memory }, async (body) => {
      const { method = '', url: target = '', headers } = req
      const call = { method, host: headers.host ?? '', target, body }
      const keys = proveCall(headers, call, clock())
      const [, address, what, query] = /^\/homes\/([^/]+)\/(requests|answers)\?(.*)$/.exec(target) ?? []
      if (keys === undefined || keys.address !== address)
        throw new RelayRefusal(401, 'The call has no valid signature, or its time is over a minute off.')
      const home = await store.open(keys)
      if (home === undefined) throw new RelayRefusal(503, 'The relay has no room for another home.', 3_600)
      const asked = new URLSearchParams(query)
      const epoch = asked.get('epoch') ?? ''
      await home.noteSeen()
      find(address).line.noteCall()
      if (what === 'requests' && method === 'GET')
        return hand(req, home, { epoch, after: readNumber(asked.get('after')) })
      if (what !== 'answers' || method !== 'POST') throw new RelayRefusal(405, 'This call has another method.')
      await home.take(epoch, readNumber(asked.get('through')))
      for (const part of splitParts(body)) {
        const { head, rest } = splitHead(part)
        const { id, status, headers: given } = Answered.parse(head)
        // its own memory, because that of the call is zeroed
        find(address).line.answer(id, { status, headers: given, body: Buffer.from(rest) })
      }
      return { status: 204, headers: {}, body: Buffer.alloc(0) }
    })
  }

  async function hand(
    { socket }: IncomingMessage,
    home: Home,
    { epoch, after }: { readonly epoch: string; readonly after: number },
  ): Promise<ArrivedAnswer> {
    const { line } = find(home.keys.address)
    const gone = new AbortController()
    const onClose = () => gone.abort()
    socket.once('close', onClose)
    try {
      await home.take(epoch, after)
      let parts = await choose()
      if (parts.length === 0) {
        await line.wait(pollMs, AbortSignal.any([gone.signal, stopping]))
        parts = gone.signal.aborted ? [] : await choose()
      }
      return {
        status: 200,
        headers: { 'x-relay-epoch': home.epoch(), 'cache-control': 'no-store' },
        body: joinParts(parts),
      }
    } finally {
      socket.off('close', onClose)
    }

    async function choose(): Promise<Buffer[]> {
      const from = epoch === home.epoch() ? after : 0
      const numbered = await home.list(from, batchBytes)
      return [
        ...line.takeOffered().map((envelope) => joinHead({ number: null }, envelope)),
        ...numbered.map(({ number, envelope }) => joinHead({ number }, envelope)),
      ]
    }
  }
}

function readNumber(text: string | null): number {
  const number = Number(text)
  return Number.isSafeInteger(number) && number >= 0 ? number : 0
}
