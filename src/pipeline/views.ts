// A delivery as its readers see it: a template, a transform, and the lines above the text in a prompt.
import type { Origin } from '../model/action.ts'
import type { Delivery } from '../model/delivery.ts'
import { toBodySyntax } from '../model/parse-body.ts'
import type { TransformCall } from '../model/transform.ts'
import { detectSource, senderNamed, toCorrespondent } from './sources.ts'
import type { TemplateScope } from './template.ts'

/** Lazy where the delivery is: a template that reads no field costs no parse. */
export function toScope(delivery: Delivery): TemplateScope {
  const { headers, query, path } = delivery
  return {
    get payload() {
      return delivery.payload
    },
    headers,
    query,
    path,
    get source() {
      return delivery.source
    },
    get event() {
      return delivery.event
    },
    now: () => new Date(delivery.receivedAt).toISOString(),
  }
}

const nothing = new TextEncoder().encode('null')
const formType = 'application/x-www-form-urlencoded'

/** `isItem`: one of a `forEach`, whose body is made here, as JSON, whatever the sender's content type says. */
export function toTransformCall(delivery: Delivery, isItem: boolean): TransformCall {
  const { headers, query, url, path, method, source, event, receivedAt, id, rawBody, accepts } = delivery
  const head = { headers, query, url, path, method, source, event, receivedAt, deliveryId: id }
  if (isItem) return { head, body: Buffer.from(JSON.stringify(delivery.payload)), contentType: undefined }
  // what a scheme lets in beside JSON and forms is JSON, or nothing at all
  const body = rawBody.byteLength === 0 && accepts.empty === true ? nothing : rawBody
  const isForm = toBodySyntax(headers['content-type'], accepts) === 'form'
  return { head, body, contentType: isForm ? formType : undefined }
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
