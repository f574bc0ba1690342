// The body of a request, and its JSON value, which is parsed once. A problem never quotes the body.
import { isJsonObject, type JsonValue, type SentObject, type SentValue, tryParseJson } from '../../base/json.ts'
import { findJsonError } from '../../base/json-error.ts'
import { restoreNumbers, stringify } from '../../base/sent-json.ts'
import { toHeldNumber, toSentNumber } from '../../base/sent-number.ts'
import { Problem } from './problem.ts'
import { type Accepts, type BodySyntax, chooseSyntax, isBlank, type SentBody, toMediaTypeProblem } from './syntax.ts'

/** The maximum nesting of objects and arrays. A single one counts as one level. */
const maxDepth = 64

/** The bytes of a body, and its payload when it is parsed. */
export type Body = {
  readonly bytes: Uint8Array
  readonly syntax: BodySyntax
  /** Undefined if the payload is not parsed, or was released. Only `readPayload` and `forgetPayload` change it. */
  parsed: SentValue | undefined
}

/**
 * Decides how a body is read, and does not parse it. Throws `media-type-unsupported`, also for a multipart form: `parseMultipart` reads those.
 */
export function openBody(sent: SentBody, accepts: Accepts): Body {
  const syntax = chooseSyntax(sent, accepts)
  if (syntax === 'multipart') throw toMediaTypeProblem({ ...accepts, forms: false })
  if (syntax !== 'empty' && isBlank(sent.bytes)) {
    const advice = accepts.forms ? ' A mapping with "accept": ["empty"] takes it as the payload null.' : ''
    throw new Problem('body-invalid', `The body is empty: expected ${syntaxNames[syntax]}.${advice}`)
  }
  const jsonFields = syntax === 'form' ? (accepts.listJsonFields?.() ?? []) : []
  // only a form that was stored before its hook named these fields: `convertBody` has opened all others
  if (jsonFields.length > 0)
    return toJsonBody(buildFormPayload(new URLSearchParams(decodeUtf8(sent.bytes)), jsonFields))
  return { bytes: sent.bytes, syntax, parsed: undefined }
}

/** A payload as the body of a JSON request. */
export function toJsonBody(payload: SentValue): Body {
  return { bytes: Buffer.from(stringify(payload)), syntax: 'json', parsed: payload }
}

/** The payload of a body. It is parsed at the first call. Throws `body-invalid`. */
export function readPayload(body: Body): SentValue {
  if (body.parsed === undefined) body.parsed = parseBody(body.bytes, body.syntax)
  return body.parsed
}

/** Releases an object or an array, which needs three times the memory of its bytes. The next `readPayload` parses the body again. */
export function forgetPayload(body: Body): void {
  if (typeof body.parsed === 'object' && body.parsed !== null) body.parsed = undefined
}

/** The text of a text or XML body; undefined for any other. Throws `body-invalid`. */
export function readBodyText(body: Body): string | undefined {
  if (body.syntax !== 'text' && body.syntax !== 'xml') return undefined
  const payload = readPayload(body)
  return typeof payload === 'string' ? payload : undefined
}

/**
 * The payload in a body. Text and XML become a string. A form becomes an object of strings without a prototype, with arrays for repeated
 * names. If its field `payload` is a JSON object or array, as GitHub and Slack send it, that becomes the payload. Numbers keep the digits that
 * were sent. Throws `body-invalid`.
 */
export function parseBody(body: Uint8Array | string, syntax: BodySyntax): SentValue {
  return readBody(body, syntax, toSentNumber)
}

/** The payload in a body, for code: a number that a double does not hold is a string of its digits. Throws `body-invalid`. */
export function parseBodyForCode(body: Uint8Array | string, syntax: BodySyntax): JsonValue {
  // as: `toHeldNumber` makes no other values
  return readBody(body, syntax, toHeldNumber) as JsonValue
}

type ToNumber = typeof toSentNumber | typeof toHeldNumber

function readBody(body: Uint8Array | string, syntax: BodySyntax, toNumber: ToNumber): SentValue {
  if (syntax === 'empty') return null
  const text = typeof body === 'string' ? body : decodeUtf8(body)
  if (text.trim() === '') throw new Problem('body-invalid', `The body is empty: expected ${syntaxNames[syntax]}.`)
  if (syntax === 'text' || syntax === 'xml') return text
  return syntax === 'form' ? buildFormPayload(new URLSearchParams(text), [], toNumber) : parseJson(text, toNumber)
}

const syntaxNames = { json: 'JSON', form: 'a form', text: 'a text', xml: 'XML' } as const

// a byte order mark is skipped
const utf8 = new TextDecoder('utf-8', { fatal: true })

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw new Problem('body-invalid', 'The body is not UTF-8. Send UTF-8, or name its charset in the Content-Type.')
  }
}

function parseJson(text: string, toNumber: ToNumber): SentValue {
  const value = readShallowJson(text, toNumber)
  if (value === undefined) {
    const at = findJsonError(text)
    const where = at >= text.length ? 'it ends early' : `the error is at character ${at + 1}`
    throw new Problem('body-invalid', `The body is not JSON: ${where}.`)
  }
  return value
}

/** The value of the text; undefined if it is not JSON. Throws `body-invalid` if it is nested too deeply. */
function readShallowJson(text: string, toNumber: ToNumber, levels = maxDepth): SentValue | undefined {
  const value = tryParseJson(text)
  if (value === undefined) return undefined
  if (!isWithinDepth(value, levels))
    throw new Problem('body-invalid', `The body has more than ${maxDepth} nested levels.`)
  return restoreNumbers(text, value, toNumber)
}

/**
 * Whether no value is nested deeper than `levels`. The limit also bounds the recursion. Walking the parsed value is the cheapest way: it
 * takes 25 µs for 100 kB, which take 430 µs to parse. A scan of the bytes takes 145 µs.
 */
function isWithinDepth(value: JsonValue, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  if (levels === 0) return false
  if (Array.isArray(value)) {
    for (const item of value) if (typeof item === 'object' && !isWithinDepth(item, levels - 1)) return false
    return true
  }
  for (const key in value) {
    const item = value[key]
    if (typeof item === 'object' && !isWithinDepth(item, levels - 1)) return false
  }
  return true
}

/**
 * The payload of a form: an object with an array for each repeated name, or the JSON in its field `payload`. A text of one of the `jsonFields`
 * that is a JSON object or array becomes that. Throws `body-invalid`.
 */
export function buildFormPayload(
  fields: Iterable<[string, string | SentObject]>,
  jsonFields: readonly string[] = [],
  toNumber: ToNumber = toSentNumber,
): SentValue {
  // no prototype, so that `__proto__` is a name like any other; one pass, because getAll() for each name is quadratic
  const form: SentObject = Object.create(null)
  for (const [name, value] of fields) {
    const earlier = form[name]
    if (earlier === undefined) form[name] = value
    else if (Array.isArray(earlier)) earlier.push(value)
    else form[name] = [earlier, value]
  }
  const open = (value: SentValue, levels: number) => openText(value, toNumber, levels)
  for (const name of jsonFields) {
    const value = form[name]
    if (Array.isArray(value)) form[name] = value.map((item) => open(item, maxDepth - 2))
    else if (value !== undefined) form[name] = open(value, maxDepth - 1)
  }
  const { payload = null } = form
  const inner = open(payload, maxDepth)
  return inner === payload ? form : inner
}

/** The JSON object or array in a text; any other value stays the same, also a text such as `5`, which is an ordinary field. */
function openText(value: SentValue, toNumber: ToNumber, levels: number): SentValue {
  const inner = typeof value === 'string' ? readShallowJson(value, toNumber, levels) : undefined
  return isJsonObject(inner) || Array.isArray(inner) ? inner : value
}
