// A request, or what was kept of one, as a delivery.
import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Delivery, DeliveryHead } from '../model/delivery.ts'
import { isJsonObject, type JsonValue } from '../model/json.ts'
import { type Accepts, parseBody, toBodySyntax } from '../model/parse-body.ts'
import { Problem } from '../model/problem.ts'
import { detectSource, toDeliveryId, toEvent } from '../pipeline/sources.ts'
import type { DedupeKey, OpenDelivery } from '../store/store.ts'
import { dropCredentials } from './credentials.ts'

const longestKey = 256

const sourceKey = Buffer.from('"source"')

/**
 * The delivery of a head and a body. The media type is checked here (`media-type-unsupported`); the body is parsed when somebody
 * first reads `payload`, or `source` or `event` where they may stand in it. Reading them throws `body-invalid`.
 */
export function toDelivery(head: DeliveryHead, body: Uint8Array, id: string, receivedAt: number): Delivery {
  const contentType = head.headers['content-type']
  const accepts = toAccepts(head.path)
  const isForm = toBodySyntax(contentType, accepts) === 'form'
  const sender = detectSource(head.headers)
  let parsed: { payload: JsonValue } | undefined
  return {
    ...head,
    id,
    receivedAt,
    rawBody: body,
    get payload() {
      parsed ??= { payload: parseBody(body, contentType, accepts) }
      return parsed.payload
    },
    get source() {
      if (head.verifiedBy !== undefined) return head.verifiedBy
      // looking for the key costs a tenth of a parse, and most bodies have none
      const named =
        isForm || parsed !== undefined || includes(body, sourceKey) ? toNamedSource(this.payload) : undefined
      return named ?? sender?.source
    },
    get event() {
      return sender === undefined ? undefined : toEvent(sender, this)
    },
  }
}

/** What the body of a hook may be: the built-in ones take JSON alone. */
export function toAccepts(path: string): Accepts {
  return { forms: path !== 'wake' && path !== 'agent' }
}

function toNamedSource(payload: JsonValue): string | undefined {
  const named = isJsonObject(payload) && Object.hasOwn(payload, 'source') ? payload['source'] : undefined
  return typeof named === 'string' ? named : undefined
}

function includes(body: Uint8Array, bytes: Buffer): boolean {
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).includes(bytes)
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
  const own = sender === undefined ? undefined : toDeliveryId(sender, delivery)
  const name = asked === undefined ? own && `${sender?.source}:${own}` : `key:${asked}`
  if (name === undefined) return undefined
  const bodyHash = createHash('sha256').update(delivery.rawBody).digest('hex')
  // a sender that names its own id Idempotency-Key (GitLab) is its sender, not a caller of ours
  return { key: { hook: delivery.path, key: name, bodyHash }, isSenders: asked === undefined || asked === own }
}
