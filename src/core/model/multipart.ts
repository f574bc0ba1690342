// Parses a multipart form (RFC 7578). Node's own parser drops the charset of a part.
import { MIMEType } from 'node:util'
import type { Charset } from '../../base/charset.ts'
import type { SentObject, SentValue } from '../../base/json.ts'
import { buildFormPayload } from './body.ts'
import { createFormDecoder, type RawField } from './form.ts'
import { Problem } from './problem.ts'
import { findBoundary, readCharset, type SentBody } from './syntax.ts'

const maxParts = 1_000

/** A file with at most this many bytes keeps its text. */
const maxTextBytes = 65_536

type Part = RawField & { readonly file: { readonly name: string; readonly type: string } | undefined }

/**
 * The payload of a multipart form, built as that of other forms. A file becomes its name, type and size, with its text if it is a small file of
 * text, JSON or XML. A file in the field `payload`, or in one of the `jsonFields`, is read like a field, as some senders send their JSON. The boundary of a proved form is
 * read from its first line, because signatures do not cover the media type. Throws `body-invalid`.
 */
export function parseMultipart(
  { bytes, contentType = '', isProved }: SentBody,
  declared: Charset | undefined,
  jsonFields: readonly string[] = [],
): SentValue {
  const boundary = isProved ? findBoundary(bytes) : readDeclaredBoundary(contentType)
  if (boundary === undefined) throw toIncompleteProblem()
  const parts = splitParts(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), boundary)
  const { readName, readValue } = createFormDecoder(parts, declared)
  const toFile = (part: Part, { name, type }: NonNullable<Part['file']>): SentObject => {
    const size = part.value.length
    const isText = /^text\/|[/+](json|xml)\b/.test(type) && size <= maxTextBytes
    return { name, type, size, ...(isText ? { text: readValue(part) } : {}) }
  }
  return buildFormPayload(
    parts.map((part) => {
      const name = readName(part)
      const isJson = name === 'payload' || jsonFields.includes(name)
      return [name, part.file === undefined || isJson ? readValue(part) : toFile(part, part.file)]
    }),
    jsonFields,
  )
}

function splitParts(sent: Buffer, boundary: string): Part[] {
  // a delimiter begins a line, and the first one may begin the body
  const body = Buffer.concat([Buffer.from('\r\n'), sent])
  const delimiter = `\r\n--${boundary}`
  const parts: Part[] = []
  for (let open = findDelimiter(body, delimiter, 0); !open.isLast;) {
    const close = findDelimiter(body, delimiter, open.end)
    if (parts.length === maxParts) throw new Problem('body-invalid', `The form has more than ${maxParts} parts.`)
    parts.push(parsePart(body.subarray(open.end, close.start)))
    open = close
  }
  return parts
}

type Delimiter = { readonly start: number; readonly end: number; readonly isLast: boolean }

function findDelimiter(body: Buffer, delimiter: string, from: number): Delimiter {
  for (let start = body.indexOf(delimiter, from); start >= 0; start = body.indexOf(delimiter, start + 1)) {
    const end = start + delimiter.length
    const rest = body.toString('latin1', end, end + 2)
    // anything else is the beginning of a longer line
    if (rest === '--' || rest === '\r\n') return { start, end: end + 2, isLast: rest === '--' }
  }
  throw toIncompleteProblem()
}

function parsePart(bytes: Buffer): Part {
  const blank = bytes.indexOf('\r\n\r\n')
  if (blank < 0) throw toIncompleteProblem()
  const headers = new Map<string, string>()
  for (const line of bytes.toString('latin1', 0, blank).split('\r\n')) {
    const [, name = '', value = ''] = /^([!#-'*+\-.^-z|~\w]+):[ \t]*(.*)$/.exec(line) ?? []
    headers.set(name.toLowerCase(), value)
  }
  const disposition = readParameters(headers.get('content-disposition') ?? '')
  const name = disposition.get('name')
  if (name === undefined) throw toIncompleteProblem()
  const type = headers.get('content-type')
  const isBase64 = headers.get('content-transfer-encoding')?.trim().toLowerCase() === 'base64'
  const content = bytes.toString('latin1', blank + 4)
  const fileName = disposition.get('filename')
  return {
    name,
    value: isBase64 ? Buffer.from(content, 'base64').toString('latin1') : content,
    charset: readCharset(type),
    file:
      fileName === undefined
        ? undefined
        : { name: Buffer.from(fileName, 'latin1').toString(), type: type ?? 'text/plain' },
  }
}

/** The parameters of `form-data`, with one character for each byte. Browsers write line breaks and quotes as in URLs. */
function readParameters(disposition: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  if (!/^form-data\b/i.test(disposition)) return found
  for (const [, name = '', quoted, plain = ''] of disposition.matchAll(
    /;\s*([\w*-]+)=(?:"((?:\\"|[^"])*)"|([^\s;"]+))/g,
  )) {
    const value = (quoted ?? plain).replaceAll('\\"', '"')
    found.set(
      name.toLowerCase(),
      value.replaceAll(/%(0a|0d|22)/gi, (escape) => decodeURIComponent(escape)),
    )
  }
  return found
}

/** The boundary in a media type. Undefined without one, and for one that MIME readers may read differently, or with more than 200 characters. */
function readDeclaredBoundary(contentType: string): string | undefined {
  try {
    const boundary = new MIMEType(contentType).params.get('boundary') ?? ''
    return /^[ !#-[\]-~]{1,200}$/.test(boundary) ? boundary : undefined
  } catch {
    return undefined
  }
}

function toIncompleteProblem(): Problem {
  return new Problem('body-invalid', 'The body is not a complete multipart form.')
}
