// The attachments of a mail by IMAP: where the server has them, and their contents.
import type { ImapFlow, MessageStructureObject } from 'imapflow'
import { z } from 'zod'
import type { FileLimits, SourceFile, SourceHost, SourceParts } from '../../../define.ts'
import { createSerialQueue, type ImapConfig, tryParseJson } from '../shared/kit.ts'
import { createSharedLogin } from '../shared/login.ts'
import { readHeaderText } from '../shared/mail.ts'
import { listFileParts, maxCountedFiles, type PartReader, readOr } from '../shared/parts.ts'
import { connect, isMissingFolder, isRefusal, toFailure } from './connection.ts'
import { findMovedMail, MailMark, type MailPlace } from './moved.ts'

/** Folder, UIDVALIDITY, number of the mail, and number of the part: RFC 9051, sections 2.3.1.1 and 6.4.5.1. Then how the mail is found if it was moved. */
const Ref = z.tuple([
  z.string(),
  z.string(),
  z.int().positive(),
  z.string().regex(/^\d+(?:\.\d+)*$/),
  MailMark.optional(),
])

/** A server may ignore that a part of a file was asked for, and return all of it. */
const maxLiteralBytes = 48 * 1024 * 1024

const reader: PartReader<MessageStructureObject> = {
  typeOf: ({ type }) => type,
  isAttachment: (part) => part.disposition === 'attachment' || nameOf(part) !== '',
  partsOf: ({ childNodes = [] }) => childNodes,
  textOf: () => undefined,
  fileOf: (part) => ({ name: readHeaderText(nameOf(part)) }),
}

function nameOf({ dispositionParameters, parameters }: MessageStructureObject): string {
  return dispositionParameters?.['filename'] || parameters?.['name'] || ''
}

/** The files of a mail, by the structure that its server read. None if the server returned no structure. `mark`: of a mail that can be found again. */
export function listImapFiles(
  structure: MessageStructureObject | undefined,
  { folder, uidValidity, uid }: MailPlace,
  mark: MailMark | undefined,
): SourceFile[] {
  if (structure === undefined) return []
  return readOr(() => listFileParts(structure, reader, maxCountedFiles), []).map((part) => ({
    name: readHeaderText(nameOf(part)),
    // a mail without parts is its part 1
    ref: JSON.stringify([folder, uidValidity, uid, part.part ?? '1', ...(mark === undefined ? [] : [mark])]),
    ...(part.size !== undefined && { bytes: part.encoding === 'base64' ? toDecodedBytes(part.size) : part.size }),
  }))
}

/** Lines of 76 characters of base64, with CRLF, have 57 bytes each: RFC 2045, section 6.8. */
function toDecodedBytes(size: number): number {
  return Math.floor((size / 78) * 57)
}

/** A connection that reads no file for this time is closed. */
const idleMs = 10_000

/**
 * Reads the contents of files over one connection, one file at a time for all runs. Undefined if the mail is in no folder any more, or if it was moved
 * and has no mark.
 */
export function createImapFiles(
  imap: ImapConfig,
  { signal: stopped, clock }: Pick<SourceHost, 'signal' | 'clock'>,
): NonNullable<SourceParts['readFiles']> {
  const inTurn = createSerialQueue()
  const login = createSharedLogin(clock, () => connect(imap, stopped, maxLiteralBytes))
  let client: ImapFlow | undefined
  let idle: NodeJS.Timeout | undefined

  async function read(
    ref: string,
    moved: MovedMails,
    { maxBytes, signal }: FileLimits,
  ): Promise<Uint8Array | undefined> {
    signal.throwIfAborted()
    clearTimeout(idle)
    const used = client?.usable === true ? client : (client = await login())
    // the rest of a file that nobody wants any more ends with its connection
    const close = () => used.close()
    signal.addEventListener('abort', close, { once: true })
    try {
      signal.throwIfAborted()
      const [folder, uidValidity, uid, part, mark] = Ref.parse(tryParseJson(ref))
      const content = await readFile(used, { folder, uidValidity, uid }, { part, maxBytes })
      if (content !== undefined || mark === undefined) return content
      if (!moved.has(mark.digest)) moved.set(mark.digest, await findMovedMail(used, mark, clock))
      const place = moved.get(mark.digest)
      return place && (await readFile(used, place, { part, maxBytes }))
    } catch (error) {
      signal.throwIfAborted()
      used.close()
      throw toFailure(error, imap)
    } finally {
      signal.removeEventListener('abort', close)
      idle = setTimeout(close, idleMs).unref()
    }
  }

  return async function* (refs, limits) {
    const moved: MovedMails = new Map()
    for (const ref of refs) yield await inTurn(() => read(ref, moved, limits))
  }
}

/** Where the mails of a run were found, by their digests, so that a mail with several files is searched for once. */
type MovedMails = Map<string, MailPlace | undefined>

async function readFile(
  client: ImapFlow,
  { folder, uidValidity, uid }: MailPlace,
  { part, maxBytes }: Pick<FileLimits, 'maxBytes'> & { readonly part: string },
): Promise<Uint8Array | undefined> {
  try {
    const box = await client.mailboxOpen(folder, { readOnly: true })
    if (String(box.uidValidity) !== uidValidity) return undefined
    const options = { uid: true, decodeText: false, maxBytes: maxBytes + 1 }
    const { content } = await client.download(String(uid), part, options)
    if (content === undefined) return undefined
    const chunks: Uint8Array[] = []
    for await (const chunk of content) chunks.push(chunk)
    return Buffer.concat(chunks)
  } catch (error) {
    // a part that the server cannot read must not hold up the run for ever
    if (isMissingFolder(error) || isRefusal(error)) return undefined
    throw error
  }
}
