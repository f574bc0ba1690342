// Recognises a delivery that arrives twice, so that it has one effect and both requests get the same answer.
import { hash } from 'node:crypto'
import type { Delivery } from '../../core/model/delivery.ts'
import { Problem } from '../../core/model/problem.ts'
import { readDeliveryId } from '../../core/mapping/sources.ts'
import type { DeliveryAnswer, DedupeKey } from '../../store/records.ts'
import type { Store } from '../../store/store.ts'
import { toRepeatedAnswer } from './answers.ts'
import type { Answer } from '../../core/mapping/answer.ts'

const maxKeyChars = 256

type Dedupe = {
  readonly key: DedupeKey
  /**
   * Whether the key is the sender's delivery id, not an Idempotency-Key. A request that repeats such a key is a redelivery, which may be
   * intended.
   */
  readonly isDeliveryId: boolean
}

/**
 * The dedupe key of this delivery; undefined if it has neither a delivery id nor an Idempotency-Key. If a signature covers the id, the id alone
 * is the key: an attacker who captured the request can change every other header. The key is separate for each sender that proved itself,
 * because two senders may share a path, and an Idempotency-Key for each token with rights. Throws `idempotency-key-invalid`.
 */
export function readDedupe(delivery: Delivery): Dedupe | undefined {
  const given = delivery.headers['idempotency-key']
  if (given !== undefined && (given.trim() === '' || given.length > maxKeyChars)) {
    throw new Problem(
      'idempotency-key-invalid',
      `Idempotency-Key: expected 1 to ${maxKeyChars} characters, found ${given.length}.`,
    )
  }
  const { signedId, keyScope } = delivery.admitted
  if (signedId !== undefined) {
    return { key: toKey(delivery, `${signedId.signer} ${signedId.source}:${signedId.id}`), isDeliveryId: true }
  }
  const { sender } = delivery
  const id = sender === undefined ? undefined : readDeliveryId(sender, delivery)
  const isDeliveryId = id !== undefined && (given === undefined || given === id)
  const scope = keyScope === undefined ? '' : `token:${keyScope} `
  const name = isDeliveryId ? `${sender?.facts.name}:${id}` : given && `${scope}key:${given}`
  if (name === undefined) return undefined
  return { key: toKey(delivery, addSigners(delivery, name)), isDeliveryId }
}

/**
 * The dedupe key of a request that arrived earlier and whose sender gives no delivery id: with it, the request runs once, however often the operator
 * retries it, or a source hands it over.
 */
export function toEarlierDedupe(delivery: Delivery, requestId: string): Dedupe {
  return {
    key: toKey(delivery, `refused:${requestId}`),
    isDeliveryId: false,
  }
}

/** SHA-256 of a body, in hex. */
export function toBodyHash({ body }: Pick<Delivery, 'body'>): string {
  return hash('sha256', body.bytes, 'hex')
}

type DedupeHandlers = {
  /** Called when the key is known. Throws for an invalid body, so that it is refused before the first answer is repeated. */
  onKnown: () => void
  /** Called when the request repeats the delivery `first`. */
  onRepeat: (first: DeliveryAnswer) => void
  /** Called when the delivery is new. */
  runFirst: () => Promise<Answer>
  /** Called when the delivery is parked, so that it runs again under its old id. `firstAnswer`: the answer if another request settles it first. */
  rerunParked: (deliveryId: string, firstAnswer: Answer) => Promise<Answer>
}

/** `rerunsRedeliveries`: a redelivery of a sender is a new delivery, so that developers can edit and redeliver. */
export function createDeduplicator(store: Pick<Store, 'findAnswer' | 'forget'>, rerunsRedeliveries: boolean) {
  const inFlight = new Map<string, Promise<unknown>>()

  return async function once({ key, isDeliveryId }: Dedupe, handlers: DedupeHandlers): Promise<Answer> {
    const name = `${key.hook}\0${key.key}`
    for (let twin = inFlight.get(name); twin !== undefined; twin = inFlight.get(name)) await twin.catch(() => undefined)
    const answering = answerOnce(key, isDeliveryId, handlers)
    inFlight.set(name, answering)
    try {
      return await answering
    } finally {
      inFlight.delete(name)
    }
  }

  async function answerOnce(key: DedupeKey, isDeliveryId: boolean, handlers: DedupeHandlers): Promise<Answer> {
    const first = await store.findAnswer(key)
    if (first === undefined) return handlers.runFirst()
    handlers.onKnown()
    if (isDeliveryId && first.state === 'parked') {
      handlers.onRepeat(first)
      return handlers.rerunParked(first.deliveryId, toRepeatedAnswer(first))
    }
    if (isDeliveryId && rerunsRedeliveries && first.state !== 'pending') {
      await store.forget(key)
      return handlers.runFirst()
    }
    handlers.onRepeat(first)
    return toRepeatedAnswer(first)
  }
}

/** The dedupe key of a request of an outbox that does not show its id: that of a request with the id, which its sender proves if the hook asks for it. */
export function toRecoveredKey(delivery: Delivery, { sender, id }: { sender: string; id: string }): DedupeKey {
  return toKey(delivery, addSigners(delivery, `${sender}:${id}`))
}

function toKey(delivery: Delivery, key: string): DedupeKey {
  return { hook: delivery.path, key, bodyHash: toBodyHash(delivery) }
}

/** Two senders may share a path, and give the same id. */
function addSigners({ admitted: { signedFor, signers = signedFor } }: Delivery, name: string): string {
  return signers.length > 0 ? `${signers.join()} ${name}` : name
}
