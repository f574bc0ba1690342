// Turns a message of the Gmail API into the mail for the hook.
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { GmailApi, GmailMessage, MailPart } from './api.ts'
import { tidyText, toVisibleText } from './html.ts'
import type { Mail } from './mail.ts'

/** The maximum length of each header: Gmail allows half a megabyte of headers. */
const maxHeaderBytes = 2_000

type MailOptions = { readonly maxBytes: number; readonly includeBody: boolean }

/** Reads the mails one by one. Each takes milliseconds, so requests are answered in between. */
export async function readMails(messages: readonly GmailMessage[], options: MailOptions): Promise<Mail[]> {
  const mails: Mail[] = []
  for (const message of messages) {
    mails.push(toMail(message, options))
    await nextTurn()
  }
  return mails
}

/** Never throws: a mail whose body cannot be read has only its headers and its snippet. */
export function toMail(message: GmailMessage, options: MailOptions): Mail {
  const { id, threadId, labelIds, internalDate, payload } = message
  const header = (name: string) =>
    readOr(
      () => cutBytes(decodeWords(readHeader(payload, name) ?? ''), maxHeaderBytes),
      () => '',
    )
  const { text, isCut } = readOr(
    () => (options.includeBody ? readBody(payload) : { text: '', isCut: false }),
    () => ({ text: '', isCut: true }),
  )
  const body = cutBytes(text, options.maxBytes)
  return {
    id,
    threadId,
    from: header('from'),
    to: header('to'),
    subject: header('subject'),
    date: toIsoDate(internalDate),
    // Gmail escapes the snippet as HTML
    snippet: readOr(
      () => toVisibleText(message.snippet).text,
      () => tidyText(message.snippet),
    ),
    body,
    bodyTruncated: isCut || body.length < text.length,
    labels: labelIds,
  }
}

/** Reads a part, or returns the default if the part is malformed: the other parts are still read. */
function readOr<T>(read: () => T, instead: () => T): T {
  try {
    return read()
  } catch {
    return instead()
  }
}

function toIsoDate(ms: number): string {
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

function readHeader(part: MailPart | undefined, name: string): string | undefined {
  return part?.headers?.find((header) => header.name.toLowerCase() === name)?.value
}

/** The text that a mail client shows: all parts in order, and of several alternatives the last one with HTML, or else the last readable one. */
function readBody(payload: MailPart | undefined): { text: string; isCut: boolean } {
  const shown = findShownParts(payload, 0).map((part) => {
    if (isStoredApart(part)) return { text: '', isCut: true }
    const text = decodePart(part)
    return hasType(part, 'text/html') ? toVisibleText(text) : { text: tidyText(text).trim(), isCut: false }
  })
  const texts = shown.map(({ text }) => text).filter((text) => text !== '')
  return { text: texts.join('\n\n'), isCut: shown.some(({ isCut }) => isCut) }
}

/** The maximum depth of parts. A real mail has fewer levels. */
const maxLevels = 50

/** The parts with text in reading order, without attachments. Mails inside a mail count as attachments. */
function findShownParts(part: MailPart | undefined, level: number): MailPart[] {
  if (part === undefined || level > maxLevels) return []
  if ((part.filename ?? '') !== '' || hasType(part, 'message/rfc822')) return []
  if (hasType(part, 'text/plain') || hasType(part, 'text/html')) return [part]
  const inside = (part.parts ?? [])
    .map((each) => findShownParts(each, level + 1))
    .filter((texts) => !texts.every(isEmpty))
  if (!hasType(part, 'multipart/alternative')) return inside.flat()
  return inside.findLast((texts) => texts.some((text) => hasType(text, 'text/html'))) ?? inside.at(-1) ?? []
}

function isEmpty(part: MailPart): boolean {
  return !isStoredApart(part) && decodePart(part).trim() === ''
}

/** Whether Gmail stores the text of this part separately, like an attachment. It does so with a large text. */
function isStoredApart({ body }: MailPart): boolean {
  return body?.attachmentId !== undefined && body.data === undefined
}

/** The maximum number of bytes of separately stored texts that are fetched for one mail. */
const maxStoredBytes = 4_194_304

/** Fetches the texts of a mail that Gmail stores separately, if a client shows them, up to `maxStoredBytes`. */
export async function fetchStoredTexts(
  { id, payload }: GmailMessage,
  api: Pick<GmailApi, 'storedText'>,
): Promise<void> {
  let bytes = 0
  for (const { body } of findShownParts(payload, 0).filter(isStoredApart)) {
    bytes += body?.size ?? 0
    if (bytes > maxStoredBytes || body?.attachmentId === undefined) return
    const data = await api.storedText(id, body.attachmentId)
    if (data !== undefined) body.data = data
  }
}

function hasType({ mimeType }: MailPart, type: string): boolean {
  return mimeType?.toLowerCase() === type
}

function decodePart(part: MailPart | undefined): string {
  const [, charset] = /charset\s*=\s*"?([^";\s]+)/i.exec(readHeader(part, 'content-type') ?? '') ?? []
  return decodeText(Buffer.from(part?.body?.data ?? '', 'base64url'), charset)
}

/**
 * Non-ASCII text that is valid UTF-8 is read as UTF-8, no matter which charset the header has: Gmail has usually recoded it. Text of seven-bit
 * bytes is read in the charset of the header, because it may be ISO-2022-JP.
 */
function decodeText(bytes: Uint8Array, charset = 'utf-8'): string {
  const isSevenBit = bytes.every((byte) => byte < 0x80)
  const utf8 = isSevenBit ? undefined : tryDecode(bytes, 'utf-8', true)
  return utf8 ?? tryDecode(bytes, charset, false) ?? tryDecode(bytes, 'windows-1252', false) ?? ''
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
function tryDecode(bytes: Uint8Array, charset: string, fatal: boolean): string | undefined {
  try {
    const decoder = new TextDecoder(charset, { fatal })
    // as a stream: otherwise Node 20 decodes windows-1252 as ISO 8859-1 and loses quotation marks
    return decoder.decode(bytes, { stream: true }) + decoder.decode()
  } catch {
    return undefined
  }
}
