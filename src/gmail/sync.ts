// One sync of a mailbox: from the place where it was left, every new mail once, in order; the place moves with the last of them.
// No mail holds up another: one that cannot be fetched keeps the place where it is, and all others are delivered.
import type { Log } from '../model/log.ts'
import type { WatchedGmail } from '../model/gmail-config.ts'
import { Problem } from '../model/problem.ts'
import type { Added, GmailApi, Message } from './api.ts'
import type { GmailPayload, GmailState, MailSink } from './mail.ts'
import { readMails } from './message.ts'
import { isConsentMissing } from './pace.ts'

export type SyncParts = {
  readonly api: GmailApi
  readonly sink: MailSink
  readonly gmail: WatchedGmail
  readonly clock: () => number
  readonly log: Log
}
/** `gap`: Gmail no longer knew what came since; recent mails were looked up in its place. */
export type Synced = { readonly mails: number; readonly gap: boolean }

/** What is no new mail for its owner: thrown away, not yet sent, or his own. */
const notNew = ['SPAM', 'TRASH', 'DRAFT', 'SENT']
/** Mails that are fetched at once, and held in memory at once. */
const concurrency = 5
const chunkSize = 50
/** After a gap: the newest of what came since. */
const mostAfterGap = 100
const hourMs = 3_600_000
/** Pages of a search that are looked through for the mails of one chunk. */
const mostPages = 10

export async function syncOnce(parts: SyncParts): Promise<Synced> {
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
    const { payloads, failed, isDown } = await fetchMails(parts, wanted.slice(at, at + chunkSize), next.historyId)
    failures.push(...failed)
    const isLast = at + chunkSize >= wanted.length
    // until the last mail is durable the place stays where it was: what comes again is dropped by its key
    const refused = await toRefused(sink.deliver(payloads, isLast && failures.length === 0 ? next : state))
    if (refused !== undefined) failures.push(refused)
    mails += payloads.length
    if (isDown) break
  }
  if (failures.length > 0) throw failures[0]
  if (wanted.length === 0) await sink.deliver([], next)
  return { mails, gap: since === undefined }
}

/** Why mails were refused that may not hold up the others; undefined where none was. */
async function toRefused(delivering: Promise<void>): Promise<Problem | undefined> {
  try {
    await delivering
    return undefined
  } catch (error) {
    if (error instanceof Problem && error.code === 'payload-invalid') return error
    throw error
  }
}

type Found = { readonly added: readonly Added[]; readonly historyId: string }

/** Every message that was added since, once; undefined where Gmail no longer knows. */
async function listSince(api: GmailApi, since: string): Promise<Found | undefined> {
  const added = new Map<string, Added>()
  for (let pageToken: string | undefined; ;) {
    const page = await api.history(since, pageToken)
    if (page === 'expired') return undefined
    for (const one of page.added) if (!added.has(one.id)) added.set(one.id, one)
    if (page.next === undefined) return { added: [...added.values()], historyId: page.historyId }
    pageToken = page.next
  }
}

/** What is in the mailbox since it was last asked, with an hour to spare; a mail that is known already is dropped by its key. */
async function listRecent({ api, gmail }: SyncParts, { syncedAt }: GmailState): Promise<Found> {
  // the place first: what comes while the list is made is found by the next sync
  const { historyId } = await api.profile()
  const after = Math.floor((syncedAt - hourMs) / 1000)
  const ids = new Set<string>()
  for (const labelId of gmail.labels) {
    const page = await api.list(`after:${after}`, { max: mostAfterGap, labelId })
    for (const id of page.ids) ids.add(id)
  }
  // Gmail lists the newest first
  const added = [...ids]
    .slice(0, mostAfterGap)
    .toReversed()
    .map((id) => ({ id, labels: [] }))
  return { added, historyId }
}

/** `failed`: why mails could not be fetched. `isDown`: several were asked for at once and none came, so no more were. */
type Fetched = {
  readonly payloads: readonly GmailPayload[]
  readonly failed: readonly unknown[]
  readonly isDown: boolean
}

async function fetchMails(parts: SyncParts, wanted: readonly Added[], historyId: string): Promise<Fetched> {
  const { api, gmail } = parts
  const format = gmail.includeBody ? 'full' : 'metadata'
  const messages: Message[] = []
  const failed: unknown[] = []
  let isDown = false
  for (let at = 0; at < wanted.length && !isDown; at += concurrency) {
    const asked = wanted.slice(at, at + concurrency).map(({ id }) => api.message(id, format))
    const settled = await Promise.allSettled(asked)
    for (const one of settled) {
      if (one.status === 'rejected') failed.push(toPassable(one.reason))
      // one that is gone was deleted meanwhile
      else if (one.value !== undefined && !isNotNew(one.value.labelIds)) messages.push(one.value)
    }
    isDown = settled.every(({ status }) => status === 'rejected')
  }
  const mails = await readMails(await pickMatching(parts, messages), gmail)
  const payloads = mails.map((mail) => ({
    source: 'gmail' as const,
    account: gmail.account,
    historyId,
    messages: [mail] as const,
  }))
  return { payloads, failed, isDown }
}

/** A failure that other mails need not have. Throws where nothing can go on: the consent is gone, or the watcher ends. */
function toPassable(error: unknown): unknown {
  if (isConsentMissing(error) || (error instanceof Error && error.name === 'AbortError')) throw error
  return error
}

/** Those that the operator's search finds. Gmail alone knows what a search means, so it is asked. */
async function pickMatching({ api, gmail }: SyncParts, messages: readonly Message[]): Promise<readonly Message[]> {
  if (gmail.query === undefined || messages.length === 0) return messages
  const oldest = Math.min(...messages.map(({ internalDate }) => internalDate))
  const query = `(${gmail.query}) after:${Math.floor(oldest / 1000) - 1}`
  const open = new Set(messages.map(({ id }) => id))
  let pageToken: string | undefined
  for (let page = 0; page < mostPages && open.size > 0; page++) {
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

/** By the labels with which it came: a mail that its owner has archived since is still a new mail. */
function isWanted(labels: readonly string[], { labels: wanted }: WatchedGmail): boolean {
  return labels.some((label) => wanted.includes(label))
}
