// The text that a sender signs, from a template: {body} {timestamp} {id} {method} {url} {decodedUrl} {form} {header:name}.
import { createHash } from 'node:crypto'
import type { Syntax } from '../../../model/scheme.ts'
import type { Coverage, VerifyRequest } from '../../../core/model/verifier.ts'
import { readHeader } from './proof.ts'
import { toDecodedUrl } from './url.ts'

export type SignedParts = {
  readonly request: VerifyRequest
  readonly timestamp: string
  readonly id: string
  /** The URL as the sender knows it. */
  readonly url: string
  /** The result of `toFormText`, for the scheme that signs a form. It is built once, because anybody can send a form that is slow to sort. */
  readonly form?: string | undefined
}

/** Returns undefined if the request does not have the value of this part. */
type SignedPart = (parts: SignedParts) => string | Uint8Array | undefined

const placeholders = new Map<string, SignedPart>([
  ['body', ({ request }) => request.rawBody],
  ['timestamp', ({ timestamp }) => timestamp],
  ['id', ({ id }) => id],
  ['method', ({ request }) => request.method],
  ['url', ({ url }) => url],
  ['decodedUrl', ({ url }) => toDecodedUrl(url)],
  ['form', ({ form }) => form],
])

/** `unknown`: the first unknown placeholder; undefined if there is none. */
export function compileSignedText(template: string): { parts: readonly SignedPart[]; unknown: string | undefined } {
  const parts: SignedPart[] = []
  let unknown: string | undefined
  let at = 0
  for (const found of template.matchAll(/\{([\w:-]+)\}/g)) {
    const [whole, name = ''] = found
    const literal = template.slice(at, found.index)
    if (literal !== '') parts.push(() => literal)
    const part = name.startsWith('header:') ? headerPart(name.slice('header:'.length)) : placeholders.get(name)
    if (part === undefined) unknown ??= whole
    else parts.push(part)
    at = found.index + whole.length
  }
  const rest = template.slice(at)
  if (rest !== '') parts.push(() => rest)
  return { parts, unknown }
}

/** The coverage of a signature whose text follows this template. */
export function readCoverage(template: string, textIsId = false): Coverage {
  return { id: textIsId || template.includes('{id}'), body: template.includes('{body}') }
}

function headerPart(name: string): SignedPart {
  const lower = name.toLowerCase()
  return ({ request }) => readHeader(request.headers, lower)
}

/** The pieces in order, with neighbouring texts joined; undefined if the request lacks a piece. */
export function collectSignedPieces(
  parts: readonly SignedPart[],
  values: SignedParts,
): (string | Uint8Array)[] | undefined {
  const pieces: (string | Uint8Array)[] = []
  for (const part of parts) {
    const piece = part(values)
    if (piece === undefined) return undefined
    const last = pieces.at(-1)
    if (typeof piece === 'string' && typeof last === 'string') pieces[pieces.length - 1] = last + piece
    else pieces.push(piece)
  }
  return pieces
}

/** The delivery id of a scheme that signs none. It is made from the text, because another signature of the same text can be valid too. */
export function toTextId(pieces: readonly (string | Uint8Array)[]): string {
  const hash = createHash('sha256')
  for (const piece of pieces) hash.update(piece)
  return hash.digest('hex')
}

/** The signed text, for people. Of a text with more than 400 bytes: its beginning, its end, and how many bytes are left out. */
export function describeSignedText(pieces: readonly (string | Uint8Array)[]): string {
  const bytes = Buffer.concat(pieces.map((piece) => Buffer.from(piece)))
  if (bytes.length <= 400) return bytes.toString()
  return `${bytes.subarray(0, 300).toString()} … ${bytes.length - 360} bytes … ${bytes.subarray(-60).toString()}`
}

/** The maximum number of entries that are compared. No sender rotates through more keys. */
const maxEntries = 100

/** The signatures that count, in order; empty if there is none with the right name. */
export function readSignatures(header: string, syntax: Syntax | undefined): readonly string[] {
  if (syntax === undefined) return header === '' ? [] : [header]
  if ('prefix' in syntax) {
    const { prefix, isList } = syntax
    if (isList === true) {
      return header.split(/[,;]/, maxEntries).flatMap((entry) => readSignatures(entry.trim(), { prefix }))
    }
    return header.startsWith(prefix) && header.length > prefix.length ? [header.slice(prefix.length)] : []
  }
  return readEntries(header, syntax, syntax.field)
}

/** The values of all entries with this name. */
export function readEntries(header: string, syntax: Exclude<Syntax, { prefix: string }>, name: string): string[] {
  const values: string[] = []
  for (const entry of header.split(syntax.separator, maxEntries)) {
    const at = entry.indexOf(syntax.joint)
    if (at < 0 || entry.slice(0, at).trim() !== name) continue
    const value = entry.slice(at + 1).trim()
    if (value !== '') values.push(value)
  }
  return values
}
