// A body in another charset, or a multipart form, becomes a body that everything behind reads as UTF-8. Signatures are checked before.
import { isUtf8 } from 'node:buffer'
import { type Charset, findMarkedCharset, utf8, windows1252 } from '../../base/charset.ts'
import type { SentValue } from '../../base/json.ts'
import { stringify } from '../../base/sent-json.ts'
import { buildFormPayload } from './body.ts'
import { createFormDecoder, isUtf8Form, splitUrlEncoded } from './form.ts'
import { parseMultipart } from './multipart.ts'
import { Problem } from './problem.ts'
import { type Accepts, chooseSyntax, isFormType, readCharset, requireCharset, type SentBody } from './syntax.ts'

type ConvertedBody = { readonly bytes: Uint8Array<ArrayBuffer>; readonly contentType: string }

/**
 * Converts a multipart form, a form that is not UTF-8 and a form with `jsonFields` to JSON, and another body that is not UTF-8 to UTF-8. Undefined: the body stays the
 * same. The content type of the media type names the charset of a body that only a token let in. For a proved body, which must not change with
 * a header that nobody signed, it counts only if the bytes are not UTF-8, and only if each byte is one character in it: it can change a
 * letter, but not where a field ends. Throws `media-type-unsupported` and `body-invalid`.
 */
export function convertBody(sent: SentBody, accepts: Accepts): ConvertedBody | undefined {
  const marked = findMarkedCharset(sent.bytes)
  if (marked !== undefined) {
    const type = (sent.contentType ?? '').replaceAll(/;\s*charset=[^;]*/gi, '')
    const contentType = `${type === '' ? 'application/json' : type}; charset=utf-8`
    const bytes = encode(marked, sent.bytes)
    return convertBody({ ...sent, bytes, contentType }, accepts) ?? { bytes, contentType }
  }
  const syntax = chooseSyntax(sent, accepts)
  const declared = findDeclared(sent)
  if (syntax === 'multipart') return toJson(parseMultipart(sent, declared, accepts.listJsonFields?.()))
  if (syntax === 'form') return convertForm(sent.bytes, declared, accepts.listJsonFields?.())
  const charset = (syntax === 'xml' ? findXmlCharset(sent, declared) : declared) ?? findDefault(sent)
  if (charset === undefined || charset === utf8) return undefined
  const [media = ''] = (sent.contentType ?? '').split(';', 1)
  const contentType = syntax === 'json' ? 'application/json' : `${media}; charset=utf-8`
  return { bytes: encode(charset, sent.bytes), contentType }
}

function encode(charset: Charset, bytes: Uint8Array): Buffer<ArrayBuffer> {
  const text = charset.decode(bytes)
  if (text === undefined)
    throw new Problem('body-invalid', 'The body is not in the charset that its content type or its declaration names.')
  return Buffer.from(text)
}

function toJson(payload: SentValue): ConvertedBody {
  return { bytes: Buffer.from(stringify(payload)), contentType: 'application/json' }
}

function findDeclared({ bytes, contentType, isProved }: SentBody): Charset | undefined {
  const label = readCharset(contentType)
  if (label === undefined) return undefined
  if (!isProved) return requireCharset(label)
  if (isUtf8(bytes)) return undefined
  const charset = requireCharset(label)
  if (charset === utf8 || charset.isSingleByte) return charset
  throw new Problem(
    'media-type-unsupported',
    'The charset of a signed body must be utf-8, or one with a byte for each character.',
  )
}

/** The charset of a body of JSON that is declared as a form is that of a form: PowerShell sends Latin-1 without a word. */
function findDefault({ bytes, contentType }: SentBody): Charset | undefined {
  return isFormType(contentType) && !isUtf8(bytes) ? windows1252 : undefined
}

const xmlDeclaration = /^(?:\u00ef\u00bb\u00bf)?\s*<\?xml[^>]{1,200}?\sencoding\s*=\s*["']([\w.:-]{1,40})["']/

/** The content type takes precedence over the declaration (RFC 7303), except for a proved body, whose bytes are signed. */
function findXmlCharset({ bytes, isProved }: SentBody, declared: Charset | undefined): Charset | undefined {
  if (declared !== undefined && !isProved) return declared
  const label = xmlDeclaration.exec(Buffer.from(bytes.subarray(0, 300)).toString('latin1'))?.[1]
  if (label === undefined) return declared
  // a declaration that can be read as ASCII is not in UTF-16
  return /^utf-?16/i.test(label) ? undefined : requireCharset(label)
}

/** A form whose bytes are UTF-8, also those that are percent-encoded, stays the same, unless the hook names fields with JSON. */
function convertForm(
  bytes: Uint8Array,
  declared: Charset | undefined,
  jsonFields: readonly string[] = [],
): ConvertedBody | undefined {
  if (jsonFields.length === 0 && (declared === undefined || declared === utf8) && isUtf8Form(bytes)) return undefined
  const fields = splitUrlEncoded(bytes)
  const { readName, readValue } = createFormDecoder(fields, declared)
  const named = fields.map((field): [string, string] => [readName(field), readValue(field)])
  return toJson(buildFormPayload(named, jsonFields))
}
