// The fields of a form, each decoded in the charset that is named for it.
import { type Charset, findCharset, utf8, windows1252 } from '../../base/charset.ts'
import { isJsonObject, tryParseJson } from '../../base/json.ts'
import { Problem } from './problem.ts'
import { requireCharset } from './syntax.ts'

/** A field as it was sent. `charset`: the one that its own part of a multipart form names. */
export type RawField = { readonly name: Uint8Array; readonly value: Uint8Array; readonly charset?: string | undefined }

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
  const own = new Map<string, Uint8Array>()
  for (const { name, value } of fields) if (name.byteLength <= 9) own.set(Buffer.from(name).toString('latin1'), value)
  const readOwn = (name: string) => Buffer.from(own.get(name) ?? []).toString('latin1')
  const fallback = findCharset(readOwn('_charset_')) ?? findCharset(readOwn('charset')) ?? windows1252
  const listed = tryParseJson(readOwn('charsets'))
  const readListed = (name: string) => {
    const label = isJsonObject(listed) && Object.hasOwn(listed, name) ? listed[name] : undefined
    return typeof label === 'string' ? findCharset(label) : undefined
  }
  const decode = (bytes: Uint8Array, charset: Charset | undefined) => {
    const isNamed = charset !== undefined && charset !== utf8
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
      return decode(field.value, ofPart ?? readListed(readName(field)) ?? declared)
    },
  }
}

/** The fields of a URL-encoded form, not decoded. */
export function splitUrlEncoded(bytes: Uint8Array): RawField[] {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
  return text
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => {
      const at = pair.indexOf('=')
      const [name, value] = at < 0 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)]
      return { name: unescapeBytes(name), value: unescapeBytes(value) }
    })
}

/** The bytes of a text with one character for each byte. */
export function unescapeBytes(text: string): Buffer {
  const raw = text
    .replaceAll('+', ' ')
    .replaceAll(/%([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(raw, 'latin1')
}
