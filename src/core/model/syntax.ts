// How the body of a request is read, decided once for both the proof and the payload.
import { type Charset, findCharset } from '../../base/charset.ts'
import { tryParseJson } from '../../base/json.ts'
import { Problem } from './problem.ts'

/** The bodies that a hook accepts besides JSON. */
export type Accepts = {
  /** Whether forms become an object, URL-encoded or multipart. */
  forms: boolean
  /** Whether `text/*` becomes a string. */
  plain?: boolean
  /** Whether XML becomes a string. */
  xml?: boolean
  /** Whether an empty body is the payload null: some senders send notifications without a body. */
  empty?: boolean
  /** Lists the fields of a form whose text is JSON. Only called for forms, because it searches the headers. */
  listJsonFields?: () => readonly string[]
}

/** `empty`: without a body, or with blanks only. */
export type BodySyntax = 'json' | 'form' | 'text' | 'xml' | 'empty'

/** A body as received. `isProved`: a proof let the request in, and not only the hook token. */
export type SentBody = {
  readonly bytes: Uint8Array
  readonly contentType: string | undefined
  readonly isProved: boolean
}

/**
 * How a body is read. A sender signs the bytes but not the media type: with another media type, a captured request would be another payload. So
 * the bytes decide how a proved body is read, and the media type decides for any other body. Throws `media-type-unsupported`.
 */
export function chooseSyntax(sent: SentBody, accepts: Accepts): BodySyntax | 'multipart' {
  if (accepts.empty === true && isBlank(sent.bytes)) return 'empty'
  return sent.isProved ? detectSyntax(sent.bytes, accepts) : readDeclaredSyntax(sent, accepts)
}

const [quote, less, equals, brace, bracket] = Buffer.from('"<={[')
const blanks: ReadonlySet<number | undefined> = new Set(Buffer.from(' \t\r\n'))

/**
 * An object, an array or a string of JSON is always read as JSON, unless the hook accepts text and the JSON is incomplete. So no text in
 * signed JSON can pass for a form, and no signed form for JSON.
 */
function detectSyntax(bytes: Uint8Array, { forms, plain = false, xml = false }: Accepts): BodySyntax | 'multipart' {
  if (beginsAsJson(bytes)) return plain && !isJson(bytes) ? 'text' : 'json'
  if (xml && bytes[findStart(bytes)] === less) return 'xml'
  if (forms && findBoundary(bytes) !== undefined) return 'multipart'
  // where text is accepted, a sentence with "=" in it is text
  if (forms && bytes.includes(equals ?? 0) && (!plain || isGraphic(bytes))) return 'form'
  return plain ? 'text' : 'json'
}

/** Whether every hook that accepts forms reads a proved body as URL-encoded fields, whatever other types it accepts. */
export function isUrlEncoded(bytes: Uint8Array): boolean {
  return detectSyntax(bytes, { forms: true, plain: true, xml: true }) === 'form'
}

export function isBlank(bytes: Uint8Array): boolean {
  return findStart(bytes) >= bytes.byteLength
}

/** Whether a body begins like an object, an array or a string of JSON. No form does: encoding replaces these characters. */
function beginsAsJson(bytes: Uint8Array): boolean {
  const first = bytes[findStart(bytes)]
  return first === brace || first === bracket || first === quote
}

/** The index of the first byte after a byte order mark and the white space of JSON. */
function findStart(bytes: Uint8Array): number {
  let at = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0
  while (blanks.has(bytes[at])) at++
  return at
}

function isJson(bytes: Uint8Array): boolean {
  return tryParseJson(new TextDecoder().decode(bytes)) !== undefined
}

/** Whether every byte is a visible ASCII character: URL-encoding leaves no others. */
function isGraphic(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte > 0x20 && byte < 0x7f)
}

/** The boundary in the first line of a multipart form. */
export function findBoundary(bytes: Uint8Array): string | undefined {
  const start = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, 300)).toString('latin1')
  return /^(?:\r\n)*--([!#-[\]-~]{1,200})\r\ncontent-/i.exec(start)?.[1]
}

const urlEncoded = 'application/x-www-form-urlencoded'
const multipart = 'multipart/form-data'

/** The syntax that a content type declares: JSON for `application/json`, any `+json` type and no type. */
function readDeclaredSyntax({ bytes, contentType }: SentBody, accepts: Accepts): BodySyntax | 'multipart' {
  // the usual type needs no parsing
  if (contentType === 'application/json') return 'json'
  const { forms, plain = false, xml = false } = accepts
  const media = readMediaType(contentType)
  if (media === urlEncoded || media === multipart) {
    // curl and others declare a form by default, whatever they send. Where no form is accepted, the error of broken JSON says more
    if (beginsAsJson(bytes) && (!forms || isJson(bytes))) return 'json'
    if (forms) return media === multipart ? 'multipart' : 'form'
    throw toMediaTypeProblem(accepts, 'this hook takes no forms. Send the fields as one JSON object')
  }
  if (media === '' || media === 'application/json' || /^[\w.!#$&^+-]+\/[\w.!#$&^+-]+\+json$/.test(media)) return 'json'
  if (xml && (media === 'text/xml' || /^application\/([\w.!#$&^+-]+\+)?xml$/.test(media))) return 'xml'
  if (plain && media !== 'text/xml' && /^text\/[\w.!#$&^+-]+$/.test(media)) return 'text'
  throw toMediaTypeProblem(accepts)
}

/** The media type without its parameters, in lower case. */
function readMediaType(contentType = ''): string {
  return contentType.split(';', 1).join().trim().toLowerCase()
}

export function isFormType(contentType: string | undefined): boolean {
  return readMediaType(contentType) === urlEncoded
}

/** The charset that a content type names; undefined if it names none. Throws `media-type-unsupported` if it names two. */
export function readCharset(contentType = ''): string | undefined {
  const [, ...parameters] = contentType.split(';')
  const named = new Set(
    parameters.flatMap((parameter) => {
      const [name = '', value = ''] = parameter.split('=')
      return name.trim().toLowerCase() === 'charset' ? [value.trim().replaceAll('"', '').toLowerCase()] : []
    }),
  )
  if (named.size > 1) throw new Problem('media-type-unsupported', 'The content type names two charsets. Name one.')
  return [...named][0]
}

/** The charset with this label. Throws `media-type-unsupported`. */
export function requireCharset(label: string): Charset {
  const charset = findCharset(label)
  if (charset !== undefined) return charset
  const name = /^[\w.:+-]{1,40}$/.test(label) ? `"${label}" ` : ''
  throw new Problem('media-type-unsupported', `The charset ${name}is not known. Send UTF-8, or name another charset.`)
}

export function toMediaTypeProblem({ forms, plain, xml }: Accepts, why?: string): Problem {
  const expected = [
    'application/json',
    ...(forms ? [urlEncoded, multipart] : []),
    ...(plain === true ? ['text/plain'] : []),
    ...(xml === true ? ['application/xml'] : []),
  ]
  const types = expected.join(', ').replace(/, (?=[^,]*$)/, ' or ')
  const text = `The content type must be ${types}${why === undefined ? '' : `: ${why}`}.`
  return new Problem('media-type-unsupported', text)
}
