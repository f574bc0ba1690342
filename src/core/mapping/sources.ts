// Reads the event, the delivery id and other facts of a delivery where its sender puts them. Headers can be forged, so nothing here is a proof.
import type { Origin } from '../model/action.ts'
import type { Delivery } from '../model/delivery.ts'
import { isJsonObject, type SentValue } from '../../base/json.ts'
import { isNumber } from '../../base/sent-number.ts'
import { readPayload } from '../model/body.ts'
import type { Fact, RecognisedSender, SenderFacts } from '../model/sender.ts'
import { readPath, type Path } from '../model/path.ts'

type Headers = Delivery['headers']

/** Longer event names and ids are ignored: if they were cut, two of these texts could become equal. */
const maxFactChars = 256

/** The parts of a delivery from which facts are read. */
type ReadableDelivery = Pick<Delivery, 'headers' | 'body'>

/** The event in the words of the sender. Several parts are joined by a dot, as in `ITEM.ERROR`. */
export function readEvent({ facts, shownBy }: RecognisedSender, delivery: ReadableDelivery): string | undefined {
  return shownBy === 'payload' ? undefined : readFirst(facts.event, delivery, '.')
}

/** The sender's id of this delivery, which its repetitions share. Several parts are joined by a space. */
export function readDeliveryId({ facts, shownBy }: RecognisedSender, delivery: ReadableDelivery): string | undefined {
  return shownBy === 'payload' ? undefined : readFirst(facts.deliveryId, delivery, ' ')
}

/** Whether the sender's delivery id can be in the body. */
export function hasIdInBody({ deliveryId }: SenderFacts): boolean {
  return deliveryId?.some(isInBody) === true
}

/** The sender's id of a delivery, if the body has it. `body`: a body that a proof covers. */
export function readIdInBody({ deliveryId }: SenderFacts, body: Delivery['body']): string | undefined {
  return readFirst(deliveryId?.filter(isInBody), { headers: {}, body }, ' ')
}

function isInBody(fact: Fact): boolean {
  return fact.in === 'all' ? fact.parts.every(isInBody) : fact.in !== 'header'
}

/** The author and the subject, if the payload has them. */
export function readAuthorAndSubject(
  { facts }: RecognisedSender,
  { body }: Pick<Delivery, 'body'>,
): Pick<Origin, 'from' | 'subject'> {
  const from = facts.from && readLine(facts.from, readPayload(body))
  const subject = facts.subject && readLine(facts.subject, readPayload(body))
  return { ...(from === undefined ? {} : { from }), ...(subject === undefined ? {} : { subject }) }
}

function readLine(path: Path, payload: SentValue): string | undefined {
  const value = readPath(payload, path)
  return typeof value === 'string' && value.trim() !== '' ? value : undefined
}

function readFirst(facts: readonly Fact[] | undefined, delivery: ReadableDelivery, joint: string): string | undefined {
  for (const fact of facts ?? []) {
    const text = readFact(fact, delivery, joint)
    if (text !== undefined && text.length <= maxFactChars) return text
  }
  return undefined
}

function readFact(fact: Fact, delivery: ReadableDelivery, joint: string): string | undefined {
  switch (fact.in) {
    case 'header':
      return readFactText(ownHeader(delivery.headers, fact.name))
    case 'body':
      return readFactText(readPath(readPayload(delivery.body), fact.path))
    case 'key': {
      const payload = readPayload(delivery.body)
      return isJsonObject(payload) ? readFactText(Object.keys(payload).find((key) => fact.like.test(key))) : undefined
    }
    case 'all': {
      const parts: string[] = []
      for (const part of fact.parts) {
        const text = readFact(part, delivery, joint)
        if (text === undefined) return undefined
        parts.push(text)
      }
      return parts.join(joint)
    }
  }
}

/** The text of a string that is not blank, or of a number; undefined for anything else. */
function readFactText(value: SentValue | undefined): string | undefined {
  if (isNumber(value)) return String(value)
  return typeof value === 'string' && value.trim() !== '' ? value : undefined
}

function ownHeader(headers: Headers, name: string): string | undefined {
  return Object.hasOwn(headers, name) ? headers[name] : undefined
}
