// The attachments of a mail by IMAP: where the server has them, and their contents.
import type { ImapFlow, MessageStructureObject } from 'imapflow'
import { z } from 'zod'
import type { FileLimits, SourceFile } from '../../../define.ts'
import { type ImapConfig, tryParseJson } from '../shared/kit.ts'
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

/** The contents of the files. Undefined if the mail is gone from its folder, or if the server numbers the mails of the folder in another way now. */
export async function* readImapFiles(
  imap: ImapConfig,
  refs: readonly string[],
  { maxBytes, signal }: FileLimits,
): AsyncGenerator<Uint8Array | undefined> {
  const client = await connect(imap, signal, maxLiteralBytes)
  try {
    for (const ref of refs) yield await readFile(client, ref, maxBytes)
  } catch (error) {
    signal.throwIfAborted()
    throw toFailure(error, imap)
  } finally {
    client.close()
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
