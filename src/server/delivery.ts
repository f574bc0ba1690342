// A request, or what was kept of one, as a delivery.
import type { IncomingMessage } from 'node:http'
import type { Delivery, DeliveryHead } from '../model/delivery.ts'
import { isJsonObject } from '../model/json.ts'
import { Problem } from '../model/problem.ts'
import { detectSource, toDeliveryId, toEvent } from '../pipeline/sources.ts'
import type { DedupeKey, OpenDelivery } from '../store/store.ts'
import { createHash } from 'node:crypto'
import { dropCredentials } from './credentials.ts'
import { parseBody } from './parse.ts'

const longestKey = 256

/** Throws `body-invalid` or `media-type-unsupported`. */
export function toDelivery(head: DeliveryHead, body: Uint8Array, id: string, receivedAt: number): Delivery {
  const isBuiltIn = head.path === 'wake' || head.path === 'agent'
  const payload = parseBody(body, head.headers['content-type'], { forms: !isBuiltIn })
  const sender = detectSource(head.headers)
  const named = isJsonObject(payload) && Object.hasOwn(payload, 'source') ? payload['source'] : undefined
  return {
    ...head,
    id,
    receivedAt,
    payload,
    rawBody: body,
    source: head.verifiedBy ?? (typeof named === 'string' ? named : sender?.source),
    event: sender === undefined ? undefined : toEvent(sender, head.headers, payload),
  }
}

/** The delivery of a kept request, under its old id. */
export function toDeliveryAgain(open: OpenDelivery): Delivery {
  return toDelivery(open.request.head, open.request.body, open.deliveryId, open.receivedAt)
}

export function toHead(req: IncomingMessage, url: string, path: string): DeliveryHead {
  return {
    method: req.method ?? 'POST',
    url,
    path,
    headers: dropCredentials(req.rawHeaders),
    query: toQuery(url),
    verifiedBy: undefined,
  }
}

function toQuery(url: string): Record<string, string> {
  const query: Record<string, string> = Object.create(null)
  const mark = url.indexOf('?')
  if (mark >= 0) for (const [name, value] of new URLSearchParams(url.slice(mark + 1))) query[name] = value
  return query
}

/** How this delivery is recognised when it comes again; `isSenders`: by the sender's own id, not by an Idempotency-Key. */
export function toDedupe(delivery: Delivery): { key: DedupeKey; isSenders: boolean } | undefined {
  const asked = delivery.headers['idempotency-key']
  if (asked !== undefined && (asked.trim() === '' || asked.length > longestKey)) {
    throw new Problem(
      'idempotency-key-invalid',
      `Idempotency-Key: expected 1 to ${longestKey} characters, found ${asked.length}.`,
    )
  }
  const sender = detectSource(delivery.headers)
  const own = sender === undefined ? undefined : toDeliveryId(sender, delivery.headers, delivery.payload)
  const name = asked === undefined ? own && `${sender?.source}:${own}` : `key:${asked}`
  if (name === undefined) return undefined
  const bodyHash = createHash('sha256').update(delivery.rawBody).digest('hex')
  // a sender that names its own id Idempotency-Key (GitLab) is its sender, not a caller of ours
  return { key: { hook: delivery.path, key: name, bodyHash }, isSenders: asked === undefined || asked === own }
}
