// The calls of a home to its relay.
import { readRetryAfterMs, SourceFailure } from '../shared/kit.ts'
import type { ArrivedAnswer, SourceHost } from '../../../define.ts'
import { type HomeKeys, signCall } from './keys.ts'
import { Answered, Handed, joinHead, joinParts, splitHead, splitParts } from './wire.ts'

/** The place of a home in the numbers of its relay: up to `number`, everything of this epoch is taken. */
export type RelayPlace = { readonly epoch: string; readonly number: number }
type Batch = {
  readonly epoch: string
  readonly handed: readonly { readonly number: number | null; readonly envelope: Buffer }[]
}
export type SenderAnswer = { readonly id: string; readonly answer: ArrivedAnswer }

export type RelayClient = {
  /** Waits up to 25 s for envelopes after the place. */
  poll(place: RelayPlace): Promise<Batch>
  /** Answers senders that wait, and says what is taken. */
  answer(place: RelayPlace, answers: readonly SenderAnswer[]): Promise<void>
}

type ClientParts = {
  readonly url: string
  readonly keys: HomeKeys
  readonly host: Pick<SourceHost, 'fetch' | 'clock'>
  readonly signal: AbortSignal
}

/** A longer body of an answer is not passed on. */
const maxAnswerBytes = 65_536

/** Each call throws a `SourceFailure`. */
export function createRelayClient({ url, keys, host, signal }: ClientParts): RelayClient {
  const base = new URL(url)

  async function call(method: 'GET' | 'POST', path: string, body: Buffer): Promise<Response> {
    const target = `/homes/${keys.known.address}/${path}`
    const headers = signCall(keys, { method, host: base.host, target, body }, host.clock())
    const sent = method === 'GET' ? {} : { body: new Uint8Array(body) }
    const response = await host.fetch(new URL(target, base), { method, headers, signal, ...sent })
    if (response.ok) return response
    throw new SourceFailure(describeRefusal(base.host, response.status), {
      retryAfterMs: readRetryAfterMs(response.headers),
    })
  }

  return {
    async poll({ epoch, number }) {
      const response = await call('GET', `requests?after=${number}&epoch=${epoch}`, Buffer.alloc(0))
      try {
        const parts = splitParts(Buffer.from(await response.arrayBuffer()))
        const handed = parts.map((part) => {
          const { head, rest } = splitHead(part)
          return { number: Handed.parse(head).number, envelope: rest }
        })
        return { epoch: response.headers.get('x-relay-epoch') ?? '', handed }
      } catch (cause) {
        signal.throwIfAborted()
        throw new SourceFailure(`${base.host} did not answer as a relay does.`, { cause })
      }
    },
    async answer({ epoch, number }, answers) {
      const parts = answers.map(({ id, answer }) => {
        const { status, headers, body } = answer
        const head = Answered.parse({ id, status, headers })
        return joinHead(head, body.length > maxAnswerBytes ? Buffer.alloc(0) : body)
      })
      const response = await call('POST', `answers?through=${number}&epoch=${epoch}`, joinParts(parts))
      await response.body?.cancel()
    },
  }
}

function describeRefusal(host: string, status: number): string {
  if (status === 401) return `${host} refused the signature of the key (401). Compare the clocks of both machines.`
  if (status === 404 || status === 405) return `${host} has no relay at this URL (${status}). Correct the url.`
  return `${host} answered ${status}.`
}
