// The same delivery twice is one effect: a twin waits for the first, a later one gets the first answer again.
import type { DedupeKey, Store } from '../store/store.ts'
import { type Answer, toReplay } from './answer.ts'

type Dedupe = {
  readonly key: DedupeKey
  /** The sender's own delivery id, not an Idempotency-Key: sending it again is a redelivery, and may be wanted. */
  readonly isSenders: boolean
}

type Ways = {
  /** The key is known: throws where the body does not hold, so that a broken body is refused before it is recognised. */
  recognised: () => void
  /** The delivery is new. */
  first: () => Promise<Answer>
  /** The delivery is parked: it runs again under its old id; `replay` is the answer when it was settled meanwhile. */
  parkedAgain: (deliveryId: string, replay: Answer) => Promise<Answer>
}

/** `rerunsRedeliveries`: a sender's redelivery is a new delivery, so that "edit, redeliver" works in development. */
export function createOnce(store: Store, rerunsRedeliveries: boolean) {
  const inFlight = new Map<string, Promise<unknown>>()

  return async function once({ key, isSenders }: Dedupe, ways: Ways): Promise<Answer> {
    const name = `${key.hook}\0${key.key}`
    for (let twin = inFlight.get(name); twin !== undefined; twin = inFlight.get(name)) await twin.catch(() => undefined)
    const answering = answerOnce(key, isSenders, ways)
    inFlight.set(name, answering)
    try {
      return await answering
    } finally {
      inFlight.delete(name)
    }
  }

  async function answerOnce(key: DedupeKey, isSenders: boolean, ways: Ways): Promise<Answer> {
    const first = await store.answered(key)
    if (first === undefined) return ways.first()
    ways.recognised()
    if (first.bodyHash !== key.bodyHash) await store.markDiffering(first.deliveryId)
    if (isSenders && first.state === 'parked') return ways.parkedAgain(first.deliveryId, toReplay(first))
    if (isSenders && rerunsRedeliveries && first.state !== 'pending') {
      await store.forget(key)
      return ways.first()
    }
    return toReplay(first)
  }
}
