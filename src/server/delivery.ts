// A request, or what was kept of one, as a delivery.
import { hash } from 'node:crypto'
import type { Delivery, DeliveryHead } from '../model/delivery.ts'
import { isJsonObject, type JsonValue } from '../model/json.ts'
import { type Accepts, parseBody, toBodySyntax } from '../model/parse-body.ts'
import { Problem } from '../model/problem.ts'
import type { Generation } from '../pipeline/generation.ts'
import { isBuiltIn } from '../pipeline/pipeline.ts'
import { detectSource, type Sender, senderNamed, toDeliveryId, toEvent } from '../pipeline/sources.ts'
import type { DedupeKey, OpenDelivery } from '../store/store.ts'
import type { Knock } from './admission.ts'
import { dropCredentials } from './credentials.ts'

const longestKey = 256

const sourceKey = Buffer.from('"source"')

/**
 * The delivery of a head and a body. The media type is checked here (`media-type-unsupported`); the body is parsed when somebody
 * first reads `payload`, or `source` or `event` where they may stand in it. Reading them throws `body-invalid`.
 */
export function toDelivery(
  head: DeliveryHead,
  body: Uint8Array,
  { generation, id, receivedAt }: { generation: Generation; id: string; receivedAt: number },
): Delivery {
  return new LazyDelivery(head, body, toAccepts(generation, head), id, receivedAt)
}

/** Getters of a class, not of an object literal: those cost ten microseconds a request. Spreading one loses them. */
class LazyDelivery implements Delivery {
  readonly id: string
  readonly receivedAt: number
  readonly method: string
  readonly url: string
  readonly path: string
  readonly headers: DeliveryHead['headers']
  readonly query: DeliveryHead['query']
  readonly verifiedBy: string | undefined
  readonly admitted: DeliveryHead['admitted']
  readonly accepts: Accepts
  readonly rawBody: Uint8Array
  readonly #sender: Sender | undefined
  readonly #isForm: boolean
  #parsed: { payload: JsonValue } | undefined

  constructor(head: DeliveryHead, body: Uint8Array, accepts: Accepts, id: string, receivedAt: number) {
    this.id = id
    this.receivedAt = receivedAt
    this.method = head.method
    this.url = head.url
    this.path = head.path
    this.headers = head.headers
    this.query = head.query
    this.verifiedBy = head.verifiedBy
    this.admitted = head.admitted
    this.accepts = accepts
    this.rawBody = body
    this.#sender = toSender(head)
    this.#isForm = toBodySyntax(head.headers['content-type'], accepts) === 'form'
  }

  get payload(): JsonValue {
    this.#parsed ??= { payload: parseBody(this.rawBody, this.headers['content-type'], this.accepts) }
    return this.#parsed.payload
  }

  get source(): string | undefined {
    if (this.verifiedBy !== undefined) return this.verifiedBy
    // looking for the key costs a tenth of a parse, and most bodies have none
    const mayBeNamed = this.#isForm || this.#parsed !== undefined || includes(this.rawBody, sourceKey)
    return (mayBeNamed ? toNamedSource(this.payload) : undefined) ?? this.#sender?.source
  }

  get event(): string | undefined {
    return this.#sender === undefined ? undefined : toEvent(this.#sender, this)
  }
}

/** What the body of a hook may be: JSON alone for the built-in ones, forms too for the others, and what a proved scheme sends. */
function toAccepts(generation: Generation, { path, admitted }: DeliveryHead): Accepts {
  if (isBuiltIn(path)) return { forms: false }
  const accepts = { forms: true, text: false, empty: false }
  if (admitted.signedFor.length === 0) return accepts
  for (const { id, verifier } of generation.router.candidates(path)) {
    if (verifier === undefined || !admitted.signedFor.includes(id)) continue
    accepts.text ||= verifier.accepts.text
    accepts.empty ||= verifier.accepts.empty
  }
  return accepts
}

/** Whose facts about event and delivery id count: of the sender that was proved, else of the one that the headers show. */
function toSender({ verifiedBy, headers }: Pick<DeliveryHead, 'verifiedBy' | 'headers'>): Sender | undefined {
  return (verifiedBy === undefined ? undefined : senderNamed(verifiedBy)) ?? detectSource(headers)
}

function toNamedSource(payload: JsonValue): string | undefined {
  const named = isJsonObject(payload) && Object.hasOwn(payload, 'source') ? payload['source'] : undefined
  return typeof named === 'string' ? named : undefined
}

function includes(body: Uint8Array, bytes: Buffer): boolean {
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).includes(bytes)
}

/** The delivery of a kept request, under its old id. */
export function toDeliveryAgain(
  { request, deliveryId: id, receivedAt }: OpenDelivery,
  generation: Generation,
): Delivery {
  return toDelivery(request.head, request.body, { generation, id, receivedAt })
}

/** What is kept of a request's head; `secretHeaders` are those of the path's verifiers. */
export function toHead(
  { method, url, path, headers, token }: Knock,
  secretHeaders: ReadonlySet<string>,
  proof: { signedFor: readonly string[]; source: string | undefined },
): DeliveryHead {
  return {
    method,
    url,
    path,
    headers: dropCredentials(headers, secretHeaders),
    query: toQuery(url),
    verifiedBy: proof.source,
    admitted: { token: token === 'valid', signedFor: proof.signedFor },
  }
}

function toQuery(url: string): Record<string, string> {
  const query: Record<string, string> = Object.create(null)
  const mark = url.indexOf('?')
  if (mark >= 0) for (const [name, value] of new URLSearchParams(url.slice(mark + 1))) query[name] = value
  return query
}

/**
 * How this delivery is recognised when it comes again; `isSenders`: by the sender's own id, not by an Idempotency-Key. An id
 * in a proved body goes before that header, which nobody signed; and a proved delivery counts apart for each mapping that it
 * opens, since two senders may share a path.
 */
export function toDedupe(delivery: Delivery): { key: DedupeKey; isSenders: boolean } | undefined {
  const asked = delivery.headers['idempotency-key']
  if (asked !== undefined && (asked.trim() === '' || asked.length > longestKey)) {
    throw new Problem(
      'idempotency-key-invalid',
      `Idempotency-Key: expected 1 to ${longestKey} characters, found ${asked.length}.`,
    )
  }
  const { signedFor } = delivery.admitted
  const sender = toSender(delivery)
  const own = sender === undefined ? undefined : toDeliveryId(sender, delivery)
  const isSigned = signedFor.length > 0 && sender?.deliveryId?.every((fact) => fact.in !== 'header') === true
  const isSenders = own !== undefined && (isSigned || asked === undefined || asked === own)
  const name = isSenders ? `${sender?.source}:${own}` : asked && `key:${asked}`
  if (name === undefined) return undefined
  const key = signedFor.length > 0 ? `${signedFor.join()} ${name}` : name
  return { key: { hook: delivery.path, key, bodyHash: hash('sha256', delivery.rawBody, 'hex') }, isSenders }
}
