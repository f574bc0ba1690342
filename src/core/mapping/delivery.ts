// Makes a delivery from a request, or from a stored one.
import {
  type Admitted,
  credentialHeaders,
  type Delivery,
  type DeliveryHead,
  maxSourceChars,
  isSecretHeader,
  listOpeningProofs,
  withContentType,
} from '../model/delivery.ts'
import { isJsonObject, type SentValue } from '../../base/json.ts'
import { type Body, openBody, readPayload } from '../model/body.ts'
import type { SentBody } from '../model/syntax.ts'
import { convertBody } from '../model/convert.ts'
import { type Hook, toAcceptedBodies } from './hook.ts'
import { readEvent } from './sources.ts'
import type { RequestHead } from '../model/verifier.ts'

/** The head of a request that passed the first checks. Its headers still have the credentials, which only verifiers may read. */
export type CheckedHead = RequestHead & {
  /** The name of the hook. */
  readonly path: string
  readonly client: string
  /** `wrong` for every client that is locked out: a right guess must look like a wrong one. */
  readonly token: 'valid' | 'wrong' | 'none'
  /** The id of a valid token. */
  readonly tokenId: string | undefined
  readonly keyScope?: string | undefined
}

/** The hook of a delivery, its id and the time it arrived, in milliseconds since the epoch. */
type Arrival = { readonly hook: Hook; readonly id: string; readonly receivedAt: number }

/**
 * Makes a delivery from a head and a body. Throws `media-type-unsupported` and `body-invalid`: the body is checked before any decision depends
 * on it. A body that only a transform reads is parsed in the thread of the transform; if the transform does not run, call `checkBody`.
 */
export function buildDelivery(head: DeliveryHead, bytes: Uint8Array, { hook, id, receivedAt }: Arrival): Delivery {
  const { method, url, path, headers, query, verifiedBy, admitted } = head
  const body = openBody(toSentBody(head, bytes), toAcceptedBodies(hook, head))
  if (hook.readsPayload || mayNameSource(head, body)) readPayload(body)
  const namedSource = verifiedBy === undefined ? readNamedSource(body.parsed) : undefined
  const sender = hook.senders.recognise({ verifiedBy, headers, namedSource })
  const source = verifiedBy ?? namedSource ?? sender?.facts.name
  const event = sender && readEvent(sender, { headers, body })
  return { id, receivedAt, method, url, path, headers, query, body, source, sender, event, verifiedBy, admitted }
}

function toSentBody({ headers, admitted }: DeliveryHead, bytes: Uint8Array): SentBody {
  return { bytes, contentType: headers['content-type'], isProved: listOpeningProofs(admitted).length > 0 }
}

/** A request that was admitted, with its inflated body. */
export type InflatedRequest = { readonly head: DeliveryHead; readonly body: Uint8Array<ArrayBuffer> }

/**
 * Converts a multipart form, and a form with fields of JSON, to a request with JSON, and a body in another charset to UTF-8, so that it is read, stored and repeated like any other
 * body. Throws `media-type-unsupported` and `body-invalid`.
 */
export function convertRequest(request: InflatedRequest, hook: Hook): InflatedRequest {
  const { head, body } = request
  const converted = convertBody(toSentBody(head, body), toAcceptedBodies(hook, head))
  if (converted === undefined) return request
  return { head: withContentType(head, converted.contentType), body: converted.bytes }
}

/** Checks a body that was left to a transform: no delivery is answered 2xx before its body is parsed. Throws `body-invalid`. */
export function checkBody({ body }: Delivery): void {
  readPayload(body)
}

/** Checks the body of a delivery whose transform still runs. Throws `body-invalid`, and ignores the decision in that case. */
export function checkBodyLate(delivery: Delivery, deciding: Promise<unknown>): void {
  try {
    checkBody(delivery)
  } catch (error) {
    void deciding.catch(() => undefined)
    throw error
  }
}

const sourceKey = Buffer.from('"source"')
const escapedLetter = Buffer.from('\\u')

/**
 * Whether a field `source` of the payload may name the sender; never if a verifier has named it. The text is searched, which costs a tenth of
 * a parse. A text with escapes counts, because they may hide the key.
 */
function mayNameSource({ verifiedBy }: DeliveryHead, { bytes, syntax }: Body): boolean {
  if (verifiedBy !== undefined || syntax === 'text' || syntax === 'xml' || syntax === 'empty') return false
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return syntax === 'form' || text.includes(sourceKey) || text.includes(escapedLetter)
}

function readNamedSource(payload: SentValue | undefined): string | undefined {
  const named = isJsonObject(payload) && Object.hasOwn(payload, 'source') ? payload['source'] : undefined
  return typeof named === 'string' && named.length <= maxSourceChars ? named : undefined
}

/** The head of a request that did not come over the network. Its sender counts as proved for every mapping of the hook. */
export function toLocalHead(
  hook: Hook,
  request: Pick<DeliveryHead, 'path' | 'headers'> & Partial<DeliveryHead> & { readonly prefix: string },
): DeliveryHead {
  const { prefix, path, headers, method = 'POST', query = {}, verifiedBy } = request
  const search = new URLSearchParams(query).toString()
  const url = `${prefix}/${path}${search === '' ? '' : `?${search}`}`
  const admitted = { token: true, signedFor: hook.signed.flatMap(({ identity }) => identity.proves) }
  return { method, url, path, headers, query, verifiedBy, admitted }
}

/** The stored form of the head of a request. `secretHeaders`: the secret headers of all verifiers of the hook. */
export function buildAdmittedHead(
  { method, url, path, headers, token, tokenId, keyScope }: CheckedHead,
  secretHeaders: ReadonlySet<string>,
  proof: Omit<Admitted, 'token'> & { source: string | undefined },
): DeliveryHead {
  return {
    method,
    url,
    path,
    headers: dropCredentials(headers, secretHeaders),
    query: toQuery(url),
    verifiedBy: proof.source,
    admitted: {
      token: token === 'valid',
      tokenId,
      ...(keyScope === undefined ? {} : { keyScope }),
      signedFor: proof.signedFor,
      signers: proof.signers,
      signedId: proof.signedId,
    },
  }
}

function toQuery(url: string): Record<string, string> {
  const query: Record<string, string> = Object.create(null)
  const mark = url.indexOf('?')
  if (mark >= 0) for (const [name, value] of new URLSearchParams(url.slice(mark + 1))) query[name] = value
  return query
}

/**
 * The headers of a delivery, without credentials. A header with a secret of the sender keeps its name, so that the sender is
 * still recognised, and loses its value.
 */
export function dropCredentials(
  all: Readonly<Record<string, string>>,
  secretHeaders: ReadonlySet<string>,
): Record<string, string> {
  const headers: Record<string, string> = Object.create(null)
  // `all` has no prototype
  for (const name in all) {
    if (credentialHeaders.has(name)) continue
    headers[name] = isSecretHeader(name) || secretHeaders.has(name) ? '[secret]' : (all[name] ?? '')
  }
  return headers
}
