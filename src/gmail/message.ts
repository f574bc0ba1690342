// A message of the Gmail API as the mail that the hook gets.
import type { Message, Part } from './api.ts'
import { decodeWords, toText } from './charset.ts'
import { dropInvisible, toVisibleText } from './html.ts'
import type { Mail } from './mail.ts'

/** Of each header. Gmail takes half a megabyte of them, and the hook has no room for that. */
const maxHeaderBytes = 2_000

export function toMail(message: Message, options: { maxBytes: number; includeBody: boolean }): Mail {
  const { id, threadId, labelIds, internalDate, payload } = message
  const header = (name: string) => cutBytes(decodeWords(readHeader(payload, name) ?? ''), maxHeaderBytes)
  const { text, isCut } = options.includeBody ? toBody(payload) : { text: '', isCut: false }
  const body = cutBytes(text, options.maxBytes)
  return {
    id,
    threadId,
    from: header('from'),
    to: header('to'),
    subject: header('subject'),
    date: new Date(internalDate).toISOString(),
    // Gmail escapes it as HTML
    snippet: toVisibleText(message.snippet).text,
    body,
    bodyTruncated: isCut || body.length < text.length,
    labels: labelIds,
  }
}

/** The first bytes of a text, never half a character. */
export function cutBytes(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text)
  if (bytes.length <= maxBytes) return text
  let end = maxBytes
  // bytes that continue a character begin with the bits 10
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1
  return bytes.subarray(0, end).toString()
}

function readHeader(part: Part | undefined, name: string): string | undefined {
  return part?.headers?.find((header) => header.name.toLowerCase() === name)?.value
}

/** The text part, else what the HTML part shows. */
function toBody(payload: Part | undefined): { text: string; isCut: boolean } {
  const parts = toTextParts(payload)
  const [plain, html] = ['text/plain', 'text/html'].map((type) => parts.filter((part) => isOf(part, type)))
  const [first] = plain ?? []
  if (first !== undefined && hasText(first)) return { text: dropInvisible(decode(first)).trim(), isCut: false }
  const [page] = html ?? []
  if (page !== undefined && hasText(page)) return toVisibleText(decode(page))
  // a part that Gmail keeps apart is there, and is not read
  return { text: '', isCut: parts.some((part) => part.body?.attachmentId !== undefined) }
}

/** In reading order, attachments left out. Mails inside a mail are attachments of their own. */
function toTextParts(payload: Part | undefined): Part[] {
  const found: Part[] = []
  const open = payload === undefined ? [] : [payload]
  for (let part = open.pop(); part !== undefined; part = open.pop()) {
    if ((part.filename ?? '') !== '' || isOf(part, 'message/rfc822')) continue
    if (isOf(part, 'text/plain') || isOf(part, 'text/html')) found.push(part)
    open.push(...(part.parts ?? []).toReversed())
  }
  return found
}

function isOf({ mimeType }: Part, type: string): boolean {
  return mimeType?.toLowerCase() === type
}

function hasText(part: Part): boolean {
  return part.body?.data !== undefined && decode(part).trim() !== ''
}

function decode(part: Part): string {
  const [, charset] = /charset\s*=\s*"?([^";\s]+)/i.exec(readHeader(part, 'content-type') ?? '') ?? []
  return toText(Buffer.from(part.body?.data ?? '', 'base64url'), charset)
}
