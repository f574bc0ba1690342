// Bytes of a mail as text, in the charset that it names or the one that it has.

/**
 * Text that is valid UTF-8 beyond ASCII is UTF-8, whatever the header says: Gmail has mostly recoded it already. Plain seven-bit bytes
 * go by the header, since ISO-2022-JP is nothing else.
 */
export function toText(bytes: Uint8Array, charset = 'utf-8'): string {
  const isSevenBit = bytes.every((byte) => byte < 0x80)
  const utf8 = isSevenBit ? undefined : tryDecode(bytes, 'utf-8', true)
  return utf8 ?? tryDecode(bytes, charset, false) ?? tryDecode(bytes, 'windows-1252', false) ?? ''
}

/** `=?utf-8?Q?caf=C3=A9?=` of a header (RFC 2047) as `café`. */
export function decodeWords(header: string): string {
  return header
    .replace(/(\?=)\s+(?==\?)/g, '$1')
    .replace(
      /=\?([\w.:-]{1,40})(?:\*[\w-]*)?\?([bq])\?([^?\s]*)\?=/gi,
      (word, charset: string, form: string, text: string) => {
        const bytes = form.toLowerCase() === 'b' ? Buffer.from(text, 'base64') : toQuotedBytes(text)
        return tryDecode(bytes, charset, false) ?? word
      },
    )
}

function toQuotedBytes(text: string): Uint8Array {
  const escaped = text
    .replaceAll('_', ' ')
    .replace(/=([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(escaped, 'latin1')
}

/** Undefined where the charset is not known, or where the bytes are none of it and that is `fatal`. */
function tryDecode(bytes: Uint8Array, charset: string, fatal: boolean): string | undefined {
  try {
    const decoder = new TextDecoder(charset, { fatal })
    // as a stream: in one go, Node 20 takes windows-1252 for ISO 8859-1 and loses its quotation marks
    return decoder.decode(bytes, { stream: true }) + decoder.decode()
  } catch {
    return undefined
  }
}
