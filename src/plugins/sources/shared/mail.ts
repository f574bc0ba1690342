// What the sources of mails have in common: the mail for the hook, and how its headers and texts are read.

/** A file of a mail, whose contents are not read. `bytes`: its size, if the source knows it. */
export type Attachment = { readonly name: string; readonly type: string; readonly bytes?: number }

export type Mail = {
  readonly id: string
  readonly threadId: string
  readonly from: string
  readonly to: string
  readonly subject: string
  /** The time when the mailbox received the mail, in ISO 8601. */
  readonly date: string
  readonly snippet: string
  /** The plain text, and then the names of the attachments; empty if bodies are turned off. */
  readonly body: string
  readonly attachments: readonly Attachment[]
  /** Whether a part of the text is missing. */
  readonly bodyTruncated: boolean
  /** The ids of its labels; of a folder, its name and the flags of the mail. */
  readonly labels: readonly string[]
}

/** The attachments of a mail that are listed. */
export const maxAttachments = 20
/** The maximum length of each header: a mail may have half a megabyte of headers. */
const maxHeaderBytes = 2_000

/** The text of a header, decoded and cut. */
export function readHeaderText(value: string): string {
  return cutBytes(decodeWords(value), maxHeaderBytes)
}

export function toIsoDate(ms: number): string {
  const date = new Date(ms)
  return (Number.isNaN(date.getTime()) ? new Date(0) : date).toISOString()
}

/** The first bytes of a text, without half a character at the end. */
export function cutBytes(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text)
  if (bytes.length <= maxBytes) return text
  let end = maxBytes
  // bytes that continue a character begin with the bits 10
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1
  return bytes.subarray(0, end).toString()
}

/** The text, and a line about the attachments, in at most `maxBytes`. `isCut`: a part of the text is missing. */
export function buildBody(text: string, attachments: readonly Attachment[], maxBytes: number) {
  const line = describeAttachments(attachments)
  const kept = cutBytes(text, Math.max(0, maxBytes - Buffer.byteLength(line)))
  return { body: cutBytes((kept + line).trimStart(), maxBytes), isCut: kept.length < text.length }
}

/** `Attached: invoice.pdf (application/pdf, 34 kB)`. Empty without attachments. */
function describeAttachments(attachments: readonly Attachment[]): string {
  const describeSize = (bytes?: number) => (bytes === undefined ? '' : `, ${Math.ceil(bytes / 1_000)} kB`)
  const texts = attachments.map(({ name, type, bytes }) => `${name || 'a file'} (${type}${describeSize(bytes)})`)
  if (texts.length === maxAttachments) texts.push('and perhaps others')
  return texts.length === 0 ? '' : `\n\nAttached: ${texts.join(', ')}`
}

/** Decodes the encoded words of a header (RFC 2047): `=?utf-8?Q?caf=C3=A9?=` means `café`. */
export function decodeWords(header: string): string {
  return header
    .replace(/(\?=)\s+(?==\?)/g, '$1')
    .replace(
      /=\?([\w.:-]{1,40})(?:\*[\w-]*)?\?([bq])\?([^?\s]*)\?=/gi,
      (word, charset: string, form: string, text: string) => {
        const bytes = form.toLowerCase() === 'b' ? Buffer.from(text, 'base64') : decodeQuotedPrintable(text)
        return tryDecode(bytes, charset, false) ?? word
      },
    )
}

function decodeQuotedPrintable(text: string): Uint8Array {
  const escaped = text
    .replaceAll('_', ' ')
    .replace(/=([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(escaped, 'latin1')
}

/** The text; undefined if the charset is unknown, or if `fatal` is set and the bytes are invalid. */
export function tryDecode(bytes: Uint8Array, charset: string, fatal: boolean): string | undefined {
  try {
    const decoder = new TextDecoder(charset, { fatal })
    // as a stream: otherwise Node 20 decodes windows-1252 as ISO 8859-1 and loses quotation marks
    return decoder.decode(bytes, { stream: true }) + decoder.decode()
  } catch {
    return undefined
  }
}
