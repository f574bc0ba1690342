// Reads what is new in one folder, in order, and stores it. The place moves in the commit of the mails. No mail blocks another: the numbers of mails
// that the server cannot return are kept, and asked for again.
import type { FetchMessageObject, ImapFlow } from 'imapflow'
import type { SourceFile, SourceHost, SourceItem } from '../../../define.ts'
import { type ImapConfig, SourceFailure } from '../shared/kit.ts'
import type { Mail } from '../shared/mail.ts'
import { isOverLimit, isRefusal } from './connection.ts'
import { listImapFiles } from './files.ts'
import { maxSourceBytes, parseMail } from './message.ts'
import { type MailPlace, toMailMark } from './moved.ts'
import { findFolderPlace, type FolderPlace, type MailboxPlace, setFolderPlace } from './place.ts'

/** The payload of the hook: one mail for each delivery. Its keys are those of a mail of Gmail. */
type ImapPayload = { readonly source: 'imap'; readonly account: string; readonly messages: readonly [Mail] }

type SyncParts = {
  readonly client: ImapFlow
  readonly imap: ImapConfig
  readonly host: Pick<SourceHost, 'store' | 'clock' | 'log'>
  readonly oversized: Oversized
}

/**
 * The mails whose structure is over a limit of the connection, by folder, UIDVALIDITY and number. They are delivered without files: their sender
 * must not end each connection, and so hold up all later mails.
 */
export type Oversized = Set<string>

/** Flags and labels of mails that are not new for their owner. */
const notNew = new Set(['\\deleted', '\\draft', '\\sent', '\\trash', '\\junk', '\\spam', '$junk'])
/** The number of mails that are stored at a time. */
const batchSize = 10
/** How many numbers are searched for mails at a time: the answer of a server is a line. */
const windowSize = 10_000
/** The number of newest mails that are read after a server has numbered the mails again. */
const maxAfterGap = 100
const hourMs = 3_600_000
/** More mails than these cannot be kept as missed: the server is broken. */
const maxMissed = 50

/** The place after the folder was read, and the number of its mails that the server could not return. */
export async function syncMailFolder(parts: SyncParts, name: string, place: MailboxPlace): Promise<MailboxPlace> {
  const { client, imap, host } = parts
  const box = await client.mailboxOpen(name, { readOnly: true })
  const uidValidity = String(box.uidValidity)
  const newest = await findNewest(client, box)
  const known = findFolderPlace(place, name)
  const account = imap.user
  const at = { folder: name, uidValidity }
  const move = async (to: FolderPlace, mails: readonly NewMail[] = []) => {
    place = setFolderPlace(place, to, host.clock())
    const items = mails.map(({ mail, files }) => toItem({ source: 'imap', account, messages: [mail] }, files))
    await host.store(items, JSON.stringify(place))
    if (mails.length > 0) host.log.info({ account, mails: mails.length }, 'new mails were delivered')
  }
  if (known === undefined) {
    await move({ name, uidValidity, uid: newest, since: host.clock(), missed: [] })
    const log = 'the folder is watched from now on; mails that are already in it are not delivered'
    host.log.info({ account, folder: name }, log)
    return place
  }
  if (known.uidValidity !== uidValidity) {
    host.log.warn({ account, folder: name }, 'the server has numbered the mails again; the newest mails were read')
    // servers keep whole seconds: a mail of the first second of the watch must not count as earlier
    const since = Math.max(place.syncedAt - hourMs, Math.floor(known.since / 1_000) * 1_000)
    // the server compares days, of a time zone of its own. Mails that were delivered already are dropped by their key
    const found = (await search(client, { since: new Date(since - 24 * hourMs) })).slice(-maxAfterGap)
    const read = await readMails(parts, found, at)
    const isSince = ({ mail }: NewMail) => Date.parse(mail.date) >= since
    await move({ ...known, uidValidity, uid: newest, missed: read.missed }, read.mails.filter(isSince))
    return place
  }
  let { uid, missed } = known
  const again = await readMails(parts, missed, at)
  if (again.missed.length < missed.length) {
    ;({ missed } = again)
    await move({ ...known, uid, missed }, again.mails)
  }
  while (uid < newest) {
    const end = Math.min(newest, uid + windowSize)
    const found = await search(client, { uid: `${uid + 1}:${end}` })
    const listed = found.filter((each) => each > known.uid && each <= end)
    for (let start = 0; start < listed.length; start += batchSize) {
      const batch = listed.slice(start, start + batchSize)
      const read = await readMails(parts, batch, at)
      missed = [...missed, ...read.missed]
      if (missed.length > maxMissed)
        throw new SourceFailure(`${imap.host} does not return the mails of the folder "${name}".`)
      uid = batch.at(-1) ?? uid
      await move({ ...known, uid, missed }, read.mails)
    }
    // the numbers of deleted mails are skipped
    uid = end
    place = setFolderPlace(place, { ...known, uid, missed }, host.clock())
  }
  return place
}

/** The number of the newest mail; 0 in an empty folder. */
async function findNewest(client: ImapFlow, { uidNext }: { readonly uidNext?: number }): Promise<number> {
  if (uidNext !== undefined && uidNext > 0) return uidNext - 1
  return (await search(client, { uid: '*' })).at(-1) ?? 0
}

async function search(client: ImapFlow, query: { readonly uid?: string; readonly since?: Date }): Promise<number[]> {
  const found = await client.search(query, { uid: true })
  if (!Array.isArray(found)) throw new SourceFailure(`${client.host} refused a search.`)
  return found.toSorted((one, other) => one - other)
}

/** The Idempotency-Key of a mail. Without the server, because a mailbox may move to another one. */
function toItem(payload: ImapPayload, files: readonly SourceFile[]): SourceItem {
  return { key: `imap:${payload.account}:${payload.messages[0].id}`, payload, files }
}

type NewMail = { readonly mail: Mail; readonly files: readonly SourceFile[] }

/** The mails in order, without those that are not new for their owner, or were deleted meanwhile. `missed`: the server refused to return them. */
async function readMails(
  { client, imap, oversized }: SyncParts,
  uids: readonly number[],
  at: Omit<MailPlace, 'uid'>,
): Promise<{ readonly mails: readonly NewMail[]; readonly missed: number[] }> {
  const mails: NewMail[] = []
  const missed: number[] = []
  for (const uid of uids) {
    const message = await fetchMessage({ ...at, uid }, { client, imap, oversized })
    if (message === 'missed') missed.push(uid)
    else if (message !== undefined) mails.push(...(await readMail(message, { ...at, uid, imap })))
  }
  return { mails, missed }
}

async function fetchMessage(
  { folder, uidValidity, uid }: MailPlace,
  { client, imap, oversized }: Omit<SyncParts, 'host'>,
): Promise<FetchMessageObject | 'missed' | undefined> {
  const name = JSON.stringify([folder, uidValidity, uid])
  const structure = imap.attachments && !oversized.has(name) ? { bodyStructure: true } : {}
  const note = (error: unknown) => {
    if (structure.bodyStructure && isOverLimit(error)) oversized.add(name)
  }
  client.on('error', note)
  try {
    const query = {
      ...structure,
      flags: true,
      labels: true,
      size: true,
      internalDate: true,
      source: { maxLength: maxSourceBytes },
    }
    const message = await client.fetchOne(String(uid), { uid: true, ...query }, { uid: true })
    if (message === false) return undefined
    return message.source === undefined ? 'missed' : message
  } catch (error) {
    note(error)
    if (isRefusal(error)) return 'missed'
    throw error
  } finally {
    client.off('error', note)
  }
}

async function readMail(
  { source, size = 0, internalDate = '', flags = new Set(), labels = new Set(), bodyStructure }: FetchMessageObject,
  { imap, ...place }: MailPlace & { readonly imap: ImapConfig },
): Promise<NewMail[]> {
  const marks = [...flags, ...labels]
  if (source === undefined || marks.some((mark) => notNew.has(mark.toLowerCase()))) return []
  const receivedAt = new Date(internalDate).getTime()
  const mail = await parseMail({ source, size, receivedAt, labels: [...new Set([place.folder, ...marks])] }, imap)
  if (!imap.attachments) return [{ mail, files: [] }]
  return [{ mail, files: listImapFiles(bodyStructure, place, toMailMark(source, { size, receivedAt })) }]
}
