// The attachments of a mail by IMAP: where the server has them, and their contents.
import type { ImapFlow, MessageStructureObject } from 'imapflow'
import { z } from 'zod'
import type { FileLimits, SourceFile, SourceHost, SourceParts } from '../../../define.ts'
import { createSerialQueue, type ImapConfig, tryParseJson } from '../shared/kit.ts'
import { createSharedLogin } from '../shared/login.ts'
import { readHeaderText } from '../shared/mail.ts'
import { listFileParts, maxCountedFiles, type PartReader, readOr } from '../shared/parts.ts'
import { connect, isMissingFolder, isRefusal, toFailure } from './connection.ts'

/** Folder, UIDVALIDITY, number of the mail, and number of the part: RFC 9051, sections 2.3.1.1 and 6.4.5.1. */
const Ref = z.tuple([z.string(), z.string(), z.int().positive(), z.string().regex(/^\d+(?:\.\d+)*$/)])

/** The place of a mail on the server. */
export type MailPlace = { readonly folder: string; readonly uidValidity: string; readonly uid: number }

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

/** The files of a mail, by the structure that its server read. None if the server returned no structure. */
export function listImapFiles(
  structure: MessageStructureObject | undefined,
  { folder, uidValidity, uid }: MailPlace,
): SourceFile[] {
  if (structure === undefined) return []
  return readOr(() => listFileParts(structure, reader, maxCountedFiles), []).map((part) => ({
    name: readHeaderText(nameOf(part)),
    // a mail without parts is its part 1
    ref: JSON.stringify([folder, uidValidity, uid, part.part ?? '1']),
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
 * Reads the contents of files over one connection, one file at a time for all runs. Undefined if the mail is gone from its folder, or if the server
 * numbers the mails of the folder in another way now.
 */
export function createImapFiles(
  imap: ImapConfig,
  { signal: stopped, clock }: Pick<SourceHost, 'signal' | 'clock'>,
): NonNullable<SourceParts['readFiles']> {
  const inTurn = createSerialQueue()
  const login = createSharedLogin(clock, () => connect(imap, stopped, maxLiteralBytes))
  let client: ImapFlow | undefined
  let idle: NodeJS.Timeout | undefined

  async function read(ref: string, { maxBytes, signal }: FileLimits): Promise<Uint8Array | undefined> {
    clearTimeout(idle)
    signal.throwIfAborted()
    const used = client?.usable === true ? client : (client = await login())
    // the rest of a file that nobody wants any more ends with its connection
    const close = () => used.close()
    signal.addEventListener('abort', close, { once: true })
    try {
      signal.throwIfAborted()
      return await readFile(used, ref, maxBytes)
    } catch (error) {
      used.close()
      signal.throwIfAborted()
      throw toFailure(error, imap)
    } finally {
      signal.removeEventListener('abort', close)
      idle = setTimeout(close, idleMs).unref()
    }
  }

  return async function* (refs, limits) {
    for (const ref of refs) yield await inTurn(() => read(ref, limits))
  }
}

async function readFile(client: ImapFlow, ref: string, maxBytes: number): Promise<Uint8Array | undefined> {
  const [folder, uidValidity, uid, part] = Ref.parse(tryParseJson(ref))
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
