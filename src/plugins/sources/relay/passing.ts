// Hands the envelopes of a relay to the gateway, in their order. The place is stored before the relay is told, so that an envelope runs once: its id is its
// dedupe key until then.
import { z } from 'zod'
import type { ArrivedRequest, SourceHost } from '../../../define.ts'
import { SourceFailure, toBackoffMs, tryParseJson } from '../shared/kit.ts'
import { openEnvelope } from './envelope.ts'
import type { HomeKeys } from './keys.ts'
import type { RelayClient, RelayPlace, SenderAnswer } from './relay-client.ts'

type Parts = {
  readonly client: RelayClient
  readonly keys: HomeKeys
  readonly host: Pick<SourceHost, 'place' | 'store' | 'receive' | 'pause' | 'clock' | 'log'>
  readonly signal: AbortSignal
  /** Called with the current problem, one sentence, when it may have changed. */
  readonly onProblem: (problem: string | undefined) => void
}

const Place = z.strictObject({ epoch: z.string(), number: z.int() })

const maxAgeMs = 7 * 86_400_000
/** More than the clocks may differ for a call to be accepted. */
const maxAheadMs = 5 * 60_000
const minPollMs = 1_000
const backoff = { firstMs: 1_000, capMs: 30_000 }

/** Stays until the signal is aborted. */
export async function passRequests({ client, keys, host, signal, onProblem }: Parts): Promise<never> {
  const text = await host.place()
  let place: RelayPlace = text === undefined ? { epoch: '', number: 0 } : Place.parse(tryParseJson(text))
  let reported: string | undefined
  try {
    for (;;) {
      const askedAt = host.clock()
      const batch = await repeat(() => client.poll(place))
      // a relay that stops answers at once, and so does one that another gateway asks with the same key
      const isEarly = batch.handed.length === 0 && host.clock() - askedAt < minPollMs
      if (isEarly) await host.pause(minPollMs, signal)
      if (batch.epoch !== place.epoch) place = { epoch: batch.epoch, number: 0 }
      const settled = createSettled()
      for (const { number, envelope } of batch.handed) {
        if (number !== null && number <= place.number) continue
        const answered = await receiveSoon(envelope, number)
        if (number !== null) place = { ...place, number }
        settled.add(answered, number === null ? undefined : place)
      }
      await settled.end()
    }
  } finally {
    onProblem(undefined)
  }

  function report(problem: string | undefined): void {
    if (problem !== undefined && problem !== reported) host.log.error({}, problem)
    reported = problem
    onProblem(problem)
  }

  /** Tries again until the call succeeds. */
  async function repeat<T>(call: () => Promise<T>): Promise<T> {
    for (let failures = 0; ; failures++) {
      try {
        const result = await call()
        report(undefined)
        return result
      } catch (thrown) {
        signal.throwIfAborted()
        if (!(thrown instanceof SourceFailure)) throw thrown
        report(thrown.message)
        await host.pause(thrown.retryAfterMs ?? toBackoffMs(failures, backoff), signal)
      }
    }
  }

  /** The answer of the gateway; undefined for an envelope that is refused. A stored one is tried again until the gateway has taken it. */
  async function receiveSoon(envelope: Buffer, number: number | null): Promise<SenderAnswer | undefined> {
    return repeat(async () => {
      signal.throwIfAborted()
      const request = open(envelope)
      if (request === undefined) return undefined
      const answer = await host.receive(request)
      if (number !== null && answer.status >= 500)
        throw new SourceFailure(`Requests wait at the relay, because this gateway answered ${answer.status}.`)
      return { id: request.id, answer }
    })
  }

  function open(envelope: Buffer): ArrivedRequest | undefined {
    let request: ArrivedRequest
    try {
      request = openEnvelope(envelope, keys)
    } catch {
      host.log.error({}, 'The relay handed over an envelope that this key does not open. It was dropped.')
      return undefined
    }
    const age = host.clock() - request.at
    if (age <= maxAgeMs && age >= -maxAheadMs) return request
    const why = age > 0 ? 'is over seven days old' : 'has a time in the future'
    host.log.error({ id: request.id }, `The relay handed over an envelope that ${why}. It was dropped.`)
    return undefined
  }

  /** What is settled, but not yet stored and told to the relay: one call for all that came together, while the next envelope runs. */
  function createSettled() {
    let answers: SenderAnswer[] = []
    let through: RelayPlace | undefined
    let last: Promise<void> = Promise.resolve()

    async function tell(): Promise<void> {
      while (answers.length > 0 || through !== undefined) {
        const told = answers
        const to = through
        answers = []
        through = undefined
        if (to !== undefined) await host.store([], JSON.stringify(to))
        // if the call fails, the next one for envelopes says what is taken, and the senders get 202
        await client.answer(to ?? place, told).catch(() => signal.throwIfAborted())
      }
    }

    return {
      add(answered: SenderAnswer | undefined, to: RelayPlace | undefined) {
        if (answered !== undefined) answers.push(answered)
        if (to !== undefined) through = to
        last = last.then(tell)
        // `end` throws it
        last.catch(() => undefined)
      },
      end: () => last,
    }
  }
}
