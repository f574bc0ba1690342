// The attachments of a mail at Google: which part they are, and their contents.
import { z } from 'zod'
import type { FileLimits, SourceFile, SourceHost } from '../../../define.ts'
import { tryParseJson, type WatchedGmail } from '../shared/kit.ts'
import { listFileParts, maxCountedFiles } from '../shared/parts.ts'
import type { GmailApi, GmailMessage, MailPart } from './api.ts'
import { readCredentials } from './credentials.ts'
import { openGoogle } from './google.ts'
import { partReader } from './message.ts'

/**
 * The id of a mail, and the id of a part, which never changes:
 * https://developers.google.com/workspace/gmail/api/reference/rest/v1/users.messages#MessagePart
 */
const Ref = z.tuple([z.string().min(1), z.string()])

/** The files of a mail. Throws if its parts are malformed. */
export function listGmailFiles({ id, payload }: GmailMessage): SourceFile[] {
  return listFileParts(payload ?? {}, partReader, maxCountedFiles).flatMap((part) => {
    const { partId, body } = part
    if (partId === undefined) return []
    return [{ ...partReader.fileOf(part), ref: JSON.stringify([id, partId]), bytes: body?.size }]
  })
}

/** The contents of the files. Undefined for a mail that was deleted. Throws as the calls to Gmail do. */
export async function* readGmailFiles(
  gmail: WatchedGmail,
  refs: readonly string[],
  { host: { dir, clock, pause }, signal }: { readonly host: SourceHost } & Pick<FileLimits, 'signal'>,
): AsyncGenerator<Uint8Array | undefined> {
  const tools = { pause, random: Math.random, signal }
  const { gmail: api } = openGoogle(gmail, { credentials: readCredentials(dir, gmail), clock, tools })
  let last: { readonly id: string; readonly message: GmailMessage | undefined } | undefined
  for (const ref of refs) {
    const [id, partId] = Ref.parse(tryParseJson(ref))
    if (last?.id !== id) last = { id, message: await api.message(id, 'full') }
    yield await readPart(api, id, findPart(last.message?.payload, partId))
  }
}

function findPart(top: MailPart | undefined, partId: string): MailPart | undefined {
  const open = top === undefined ? [] : [top]
  for (let part = open.pop(); part !== undefined; part = open.pop()) {
    if (part.partId === partId) return part
    open.push(...(part.parts ?? []))
  }
  return undefined
}

/** A part without an attachment id has its whole content in `data`: the same page, MessagePartBody. */
async function readPart(api: GmailApi, id: string, part: MailPart | undefined): Promise<Uint8Array | undefined> {
  const { attachmentId, data } = part?.body ?? {}
  const text = data ?? (attachmentId === undefined ? undefined : await api.storedText(id, attachmentId))
  return text === undefined ? undefined : Buffer.from(text, 'base64url')
}
