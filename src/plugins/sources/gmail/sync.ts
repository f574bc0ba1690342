// One sync of a mailbox: delivers every new mail since the stored position, in order. The position moves with the last mail. No mail blocks
// another: if one cannot be fetched, the position stays, and the others are delivered. The sync ends when no mail of a group of `concurrency`
// mails can be fetched.
import { type Log, Problem, type WatchedGmail } from '../shared/kit.ts'
import type { AddedMessage, GmailApi, GmailMessage } from './api.ts'
import { readOr } from '../shared/parts.ts'
import { listGmailFiles } from './files.ts'
import type { GmailPayload, GmailState, MailFiles, MailSink } from './mail.ts'
import { fetchStoredTexts, readMails } from './message.ts'
import { isConsentMissing } from './pace.ts'

type SyncParts = {
  readonly api: GmailApi
  readonly sink: MailSink
  readonly gmail: WatchedGmail
  readonly clock: () => number
  readonly log: Log
}
/** `gap`: the history had expired, so recent mails were fetched instead. */
export type SyncResult = { readonly mails: number; readonly gap: boolean }

/** Labels of mails that are not new for their owner: trash, spam, drafts and sent mails. */
const notNew = ['SPAM', 'TRASH', 'DRAFT', 'SENT']
/** The number of mails that are fetched at a time. */
const concurrency = 5
/** The number of mails that are kept in memory at a time. */
const chunkSize = 50
/** The number of newest mails of each label that are fetched after a gap. */
const maxAfterGap = 100
const hourMs = 3_600_000
/** The maximum number of pages of a search that are read for the mails of one chunk. */
const maxPages = 10

export async function syncOnce(parts: SyncParts): Promise<SyncResult> {
  const { api, sink, gmail, clock, log } = parts
  const syncedAt = clock()
  const state = await sink.state()
  if (state === undefined) {
    const { historyId } = await api.profile()
    await sink.deliver([], { historyId, syncedAt })
    log.info(
      { account: gmail.account },
      'the mailbox is watched from now on; mails that are already in it are not delivered',
    )
    return { mails: 0, gap: false }
  }
  const since = await listSince(api, state.historyId)
  const found = since ?? (await listRecent(parts, state))
  const next: GmailState = { historyId: found.historyId, syncedAt }
  if (since === undefined) {
    const lookedUp = found.added.length
    log.warn(
      { account: gmail.account, lookedUp },
      'the history in Gmail has expired; the newest mails were fetched instead',
    )
  }
  const wanted = found.added.filter(
    ({ labels }) => !isNotNew(labels) && (since === undefined || isWanted(labels, gmail)),
  )
  let mails = 0
  const failures: unknown[] = []
  for (let at = 0; at < wanted.length; at += chunkSize) {
    const { payloads, files, failed, isDown } = await fetchMails(
      parts,
      wanted.slice(at, at + chunkSize),
      next.historyId,
    )
    failures.push(...failed)
    const isLast = at + chunkSize >= wanted.length
    // the position stays until the last mail is durable: repeated mails are dropped by their key
    const refused = await catchRefusal(sink.deliver(payloads, isLast && failures.length === 0 ? next : state, files))
    if (refused !== undefined) failures.push(refused)
    mails += payloads.length
    if (isDown) break
  }
  if (failures.length > 0) throw failures[0]
  if (wanted.length === 0) await sink.deliver([], next)
  return { mails, gap: since === undefined }
}

/** Runs the delivery. Returns the reason why some mails were refused, because they must not block the others; undefined if none was refused. */
async function catchRefusal(delivering: Promise<void>): Promise<Problem | undefined> {
  try {
    await delivering
    return undefined
  } catch (error) {
    if (error instanceof Problem && error.code === 'payload-invalid') return error
    throw error
  }
}

type NewMessages = { readonly added: readonly AddedMessage[]; readonly historyId: string }

/** Every message that was added since the position, once; undefined if the history has expired. */
async function listSince(api: GmailApi, since: string): Promise<NewMessages | undefined> {
  const added = new Map<string, AddedMessage>()
  for (let pageToken: string | undefined; ;) {
    const page = await api.history(since, pageToken)
    if (page === 'expired') return undefined
    for (const one of page.added) if (!added.has(one.id)) added.set(one.id, one)
    if (page.next === undefined) return { added: [...added.values()], historyId: page.historyId }
    pageToken = page.next
  }
}

/** The newest mails since an hour before the last sync; a known mail is dropped by its key. */
async function listRecent({ api, gmail }: SyncParts, { syncedAt }: GmailState): Promise<NewMessages> {
  // the position is read before the list: the next sync finds the mails that arrive in between
  const { historyId } = await api.profile()
  const after = Math.floor((syncedAt - hourMs) / 1000)
  const ids = new Set<string>()
  for (const labelId of gmail.labels) {
    const page = await api.list(`after:${after}`, { max: maxAfterGap, labelId })
    for (const id of page.ids) ids.add(id)
  }
  // Gmail lists the newest mails first
  const added = [...ids].toReversed().map((id) => ({ id, labels: [] }))
  return { added, historyId }
}

/** `failed`: the reasons why mails could not be fetched. `isDown`: all fetches at the same time failed, so no more were tried. */
type FetchedMails = {
  readonly payloads: readonly GmailPayload[]
  readonly files: MailFiles
  readonly failed: readonly unknown[]
  readonly isDown: boolean
}

async function fetchMails(parts: SyncParts, wanted: readonly AddedMessage[], historyId: string): Promise<FetchedMails> {
  const { gmail } = parts
  const messages: GmailMessage[] = []
  const failed: unknown[] = []
  let isDown = false
  for (let at = 0; at < wanted.length && !isDown; at += concurrency) {
    const asked = wanted.slice(at, at + concurrency).map(({ id }) => fetchMessage(id, parts))
    const settled = await Promise.allSettled(asked)
    for (const one of settled) {
      if (one.status === 'rejected') failed.push(rethrowFatal(one.reason))
      else if (one.value !== undefined) messages.push(one.value)
    }
    isDown = settled.every(({ status }) => status === 'rejected')
  }
  const matching = await pickMatching(parts, messages)
  const mails = await readMails(matching, gmail)
  const payloads = mails.map((mail) => ({
    source: 'gmail' as const,
    account: gmail.account,
    historyId,
    messages: [mail] as const,
  }))
  const listFiles = (message: GmailMessage) => readOr(() => listGmailFiles(message), [])
  const files = new Map(
    gmail.attachments ? payloads.map((payload, at) => [payload, matching.slice(at, at + 1).flatMap(listFiles)]) : [],
  )
  return { payloads, files, failed, isDown }
}

/** The mail; undefined if it was deleted after it was listed, or is not new for its owner. */
async function fetchMessage(id: string, { api, gmail }: SyncParts): Promise<GmailMessage | undefined> {
  const message = await api.message(id, gmail.includeBody || gmail.attachments ? 'full' : 'metadata')
  if (message === undefined || isNotNew(message.labelIds)) return undefined
  if (gmail.includeBody) await fetchStoredTexts(message, api)
  return message
}

/** Throws again a failure that concerns every mail: the consent is missing, or the watcher stops. */
function rethrowFatal(error: unknown): unknown {
  if (isConsentMissing(error) || (error instanceof Error && error.name === 'AbortError')) throw error
  return error
}

/** Picks the mails that match the operator's search. Only Gmail can evaluate a search, so Gmail is asked. */
async function pickMatching(
  { api, gmail }: SyncParts,
  messages: readonly GmailMessage[],
): Promise<readonly GmailMessage[]> {
  if (gmail.query === undefined || messages.length === 0) return messages
  const times = messages.map(({ internalDate }) => Math.floor(internalDate / 1000))
  // without the end, the newest mails of a long backlog would fill the pages
  const query = `(${gmail.query}) after:${Math.min(...times) - 1} before:${Math.max(...times) + 2}`
  const open = new Set(messages.map(({ id }) => id))
  let pageToken: string | undefined
  for (let page = 0; page < maxPages && open.size > 0; page++) {
    const listed = await api.list(query, { max: 500, pageToken })
    for (const id of listed.ids) open.delete(id)
    if (listed.next === undefined) break
    pageToken = listed.next
  }
  return messages.filter(({ id }) => !open.has(id))
}

function isNotNew(labels: readonly string[]): boolean {
  return labels.some((label) => notNew.includes(label))
}

/** Whether a mail arrived with one of the watched labels. A mail that its owner has archived since then still counts. */
function isWanted(labels: readonly string[], { labels: wanted }: WatchedGmail): boolean {
  return labels.some((label) => wanted.includes(label))
}
