// A mail that is no longer where it was: in another folder, or with another number. It is known by all of its bytes: a sender chooses each header of a
// mail, also its Message-ID, and must not make a run read a file of another mail.
import { createHash } from 'node:crypto'
import type { ImapFlow } from 'imapflow'
import { z } from 'zod'
import { isMissingFolder, isRefusal } from './connection.ts'
import { maxSourceBytes } from './message.ts'

/** The place of a mail on the server. */
export type MailPlace = { readonly folder: string; readonly uidValidity: string; readonly uid: number }

/** What a mail keeps when it is moved. `receivedAt`: in milliseconds since the epoch. */
export const MailMark = z.object({ digest: z.string(), size: z.int().positive(), receivedAt: z.number() })
export type MailMark = z.infer<typeof MailMark>

const dayMs = 86_400_000
/** What a search costs at most. Other runs wait for their files meanwhile. */
const maxFolders = 50
const maxCandidates = 5
const searchMs = 30_000
/** Folders where the owner of a mail puts what is not wanted, or is not received. */
const skipped: ReadonlySet<string> = new Set(['\\Trash', '\\Junk', '\\Drafts', '\\Sent'])

/** Undefined if not all bytes of the mail were read. */
export function toMailMark(
  source: Uint8Array,
  { size, receivedAt }: Pick<MailMark, 'size' | 'receivedAt'>,
): MailMark | undefined {
  if (source.length !== size || Number.isNaN(receivedAt)) return undefined
  return { digest: createHash('sha256').update(source).digest('base64url'), size, receivedAt }
}

/** Searches the folders of the mailbox for the mail. Undefined if none of them has it. */
export async function findMovedMail(
  client: ImapFlow,
  mark: MailMark,
  clock: () => number,
): Promise<MailPlace | undefined> {
  const until = clock() + searchMs
  const all = (await client.list()).filter(
    ({ flags, specialUse }) => !flags.has('\\Noselect') && !skipped.has(specialUse ?? ''),
  )
  for (const { path } of all.slice(0, maxFolders)) {
    if (clock() >= until) return undefined
    const found = await findInFolder(client, mark, path)
    if (found !== undefined) return found
  }
  return undefined
}

async function findInFolder(client: ImapFlow, mark: MailMark, folder: string): Promise<MailPlace | undefined> {
  const { size, receivedAt, digest } = mark
  try {
    const box = await client.mailboxOpen(folder, { readOnly: true })
    // the server compares days, of a time zone of its own
    const since = new Date(receivedAt - dayMs)
    const before = new Date(receivedAt + 2 * dayMs)
    const found = await client.search({ larger: size - 1, smaller: size + 1, since, before }, { uid: true })
    for (const uid of (found || []).slice(-maxCandidates)) {
      const message = await client.fetchOne(String(uid), { source: { maxLength: maxSourceBytes } }, { uid: true })
      const source = message === false ? undefined : message.source
      if (source !== undefined && toMailMark(source, mark)?.digest === digest)
        return { folder, uidValidity: String(box.uidValidity), uid }
    }
  } catch (error) {
    if (!isMissingFolder(error) && !isRefusal(error)) throw error
  }
  return undefined
}
