// Turns a message of the Gmail API into the mail for the hook.
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { GmailApi, GmailMessage, MailPart } from './api.ts'
import { tidyText, toVisibleText } from '../shared/html.ts'
import { buildBody, type Mail, readHeaderText, toIsoDate, tryDecode } from '../shared/mail.ts'
import { findShownParts, listAttachments, type PartReader, readOr, readShownText } from '../shared/parts.ts'

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
  const header = (name: string) => readOr(() => readHeaderText(readHeader(payload, name) ?? ''), '')
  const { text, isCut } = readOr(
    () => (options.includeBody ? readShownText(payload ?? {}, partReader) : { text: '', isCut: false }),
    { text: '', isCut: true },
  )
  const attachments = readOr(() => listAttachments(payload ?? {}, partReader), [])
  const cut = buildBody(text, options.includeBody ? attachments : [], options.maxBytes)
  return {
    id,
    threadId,
    from: header('from'),
    to: header('to'),
    subject: header('subject'),
    date: toIsoDate(internalDate),
    // Gmail escapes the snippet as HTML
    snippet: readOr(() => toVisibleText(message.snippet).text, tidyText(message.snippet)),
    body: cut.body,
    bodyTruncated: isCut || cut.isCut,
    attachments,
    labels: labelIds,
  }
}

function readHeader(part: MailPart | undefined, name: string): string | undefined {
  return part?.headers?.find((header) => header.name.toLowerCase() === name)?.value
}

export const partReader: PartReader<MailPart> = {
  typeOf: ({ mimeType }) => mimeType?.toLowerCase() ?? '',
  isAttachment: ({ filename }) => (filename ?? '') !== '',
  partsOf: ({ parts }) => parts ?? [],
  textOf: (part) => (isStoredApart(part) ? undefined : decodePart(part)),
  fileOf: ({ filename = '', body }) => ({
    name: readHeaderText(filename),
    ...(body?.size !== undefined && { bytes: body.size }),
  }),
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
  for (const { body } of findShownParts(payload ?? {}, partReader).filter(isStoredApart)) {
    bytes += body?.size ?? 0
    if (bytes > maxStoredBytes || body?.attachmentId === undefined) return
    const data = await api.storedText(id, body.attachmentId)
    if (data !== undefined) body.data = data
  }
}

function decodePart(part: MailPart): string {
  const [, charset] = /charset\s*=\s*"?([^";\s]+)/i.exec(readHeader(part, 'content-type') ?? '') ?? []
  return decodeText(Buffer.from(part.body?.data ?? '', 'base64url'), charset)
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
