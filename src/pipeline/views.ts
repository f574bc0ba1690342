// A delivery as its readers see it: a template, a transform, and the lines above the text in a prompt.
import type { Origin } from '../model/action.ts'
import type { Delivery } from '../model/delivery.ts'
import { readPayload } from '../model/parse-body.ts'
import type { TransformCall } from '../model/transform.ts'
import { detectSource, senderNamed, toCorrespondent } from './sources.ts'
import type { TemplateScope } from './template.ts'

export function toScope(delivery: Delivery): TemplateScope {
  const { headers, query, path, source, event, body, receivedAt } = delivery
  return {
    payload: () => readPayload(body),
    headers,
    query,
    path,
    source,
    event,
    now: () => new Date(receivedAt).toISOString(),
  }
}

const nothing = new TextEncoder().encode('null')

/** `isItem`: one of a `forEach`, whose body is made here, as JSON, whatever the sender's content type says. */
export function toTransformCall(delivery: Delivery, isItem: boolean): TransformCall {
  const { headers, query, url, path, method, source, event, receivedAt, id, body } = delivery
  const head = { headers, query, url, path, method, source, event, receivedAt, deliveryId: id }
  if (isItem) return { head, body: Buffer.from(JSON.stringify(readPayload(body))), syntax: 'json' }
  // a body of no bytes that was let in is the payload `null`
  return { head, body: body.bytes.byteLength === 0 ? nothing : body.bytes, syntax: body.syntax }
}

export function toOrigin(delivery: Delivery): Origin {
  const { path, source, headers } = delivery
  const sender = detectSource(headers) ?? (source === undefined ? undefined : senderNamed(source))
  const { from, subject } = sender === undefined ? {} : toCorrespondent(sender, delivery)
  return {
    hook: path,
    ...(source === undefined ? {} : { source }),
    ...(from === undefined ? {} : { from }),
    ...(subject === undefined ? {} : { subject }),
  }
}
