// The fields of a form, each decoded in the charset that is named for it.
import { isUtf8 } from 'node:buffer'
import { type Charset, findCharset, utf8, windows1252 } from '../../base/charset.ts'
import { isJsonObject, tryParseJson } from '../../base/json.ts'
import { Problem } from './problem.ts'
import { requireCharset } from './syntax.ts'

/**
 * A field as it was sent: texts with one character for each byte, because a form of 1 MB may have 350,000 fields, and a string costs less than a
 * buffer. `charset`: the one that its own part of a multipart form names.
 */
export type RawField = { readonly name: string; readonly value: string; readonly charset?: string | undefined }

/** The texts of names and values. */
export type FormDecoder = {
  readName(field: RawField): string
  readValue(field: RawField): string
}

/**
 * The charset of a value is, in this order: the one that its part names; the one that the field `charsets` names for it, as SendGrid sends it;
 * `declared`, the one of the media type. A value without any is UTF-8. If it is not, it has the charset that the field `_charset_` or `charset`
 * names, else windows-1252, as in browsers. Throws `media-type-unsupported` and `body-invalid`.
 */
export function createFormDecoder(fields: readonly RawField[], declared: Charset | undefined): FormDecoder {
  const own = new Map<string, string>()
  for (const { name, value } of fields) if (name.length <= '_charset_'.length) own.set(name, value)
  const readOwn = (name: string) => own.get(name) ?? ''
  const fallback = findCharset(readOwn('_charset_')) ?? findCharset(readOwn('charset')) ?? windows1252
  const listed = tryParseJson(readOwn('charsets'))
  const readListed = (field: RawField) => {
    if (!isJsonObject(listed)) return undefined
    const name = readName(field)
    const label = Object.hasOwn(listed, name) ? listed[name] : undefined
    return typeof label === 'string' ? findCharset(label) : undefined
  }
  const decode = (raw: string, charset: Charset | undefined) => {
    const isNamed = charset !== undefined && charset !== utf8
    // other charsets, such as UTF-16, write other characters with these bytes
    if (isAscii(raw) && (!isNamed || charset.isSingleByte)) return raw
    const bytes = Buffer.from(raw, 'latin1')
    const text = isNamed
      ? charset.decode(bytes)
      : (utf8.decode(bytes) ?? fallback.decode(bytes) ?? windows1252.decode(bytes))
    if (text === undefined)
      throw new Problem('body-invalid', 'A field of the form is not in the charset that is named for it.')
    return text
  }
  const readName = ({ name }: RawField) => decode(name, declared)
  return {
    readName,
    readValue: (field) => {
      const ofPart = field.charset === undefined ? undefined : requireCharset(field.charset)
      return decode(field.value, ofPart ?? readListed(field) ?? declared)
    },
  }
}

function isAscii(raw: string): boolean {
  return !/[\u0080-\u00ff]/.test(raw)
}

/** The fields of a URL-encoded form, not decoded. */
export function splitUrlEncoded(bytes: Uint8Array): RawField[] {
  return toRaw(bytes)
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => {
      const at = pair.indexOf('=')
      const [name, value] = at < 0 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)]
      return { name: unescapeRaw(name), value: unescapeRaw(value) }
    })
}

/** Whether the bytes of a URL-encoded form are UTF-8, also those that are percent-encoded. */
export function isUtf8Form(bytes: Uint8Array): boolean {
  const raw = toRaw(bytes)
  return !/%[89a-f]|[\u0080-\u00ff]/i.test(raw) || isUtf8(Buffer.from(unescapeRaw(raw), 'latin1'))
}

function toRaw({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('latin1')
}

function unescapeRaw(raw: string): string {
  if (!/[+%]/.test(raw)) return raw
  return raw
    .replaceAll('+', ' ')
    .replaceAll(/%([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}
