// Watches the folders of a mailbox over one connection: the server reports the mails of the first folder by IDLE, and all folders are polled.
import type { ImapFlow } from 'imapflow'
import type { PassFailure, SourceHost } from '../../../define.ts'
import { type ImapConfig, type Sleep, SourceFailure } from '../shared/kit.ts'
import { connect, isMissingFolder, isRefusal, toFailure } from './connection.ts'
import { type MailboxPlace, parsePlace } from './place.ts'
import { type Oversized, syncMailFolder } from './sync.ts'

type WatchParts = {
  readonly imap: ImapConfig
  readonly host: Pick<SourceHost, 'place' | 'store' | 'clock' | 'log' | 'pause'>
  readonly signal: AbortSignal
  /** Kept for the next connections. */
  readonly oversized: Oversized
  /** Called with the current problems, one sentence each, when they may have changed. */
  readonly onProblems: (problems: readonly string[]) => void
}

/** A connection that ends after this time is no failure: servers end silent connections, and restart. */
const shortMs = 60_000
/** The place is stored this often without new mails too, because its time limits what is read again after a change of numbers. */
const refreshMs = 15 * 60_000

/** Watches until the connection or the signal ends. */
export async function watchMailbox(parts: WatchParts): Promise<PassFailure | undefined> {
  const { imap, host, signal, oversized, onProblems } = parts
  const oversizedBefore = oversized.size
  let connectedAt: number | undefined
  let client: ImapFlow | undefined
  try {
    const text = await host.place()
    client = await connect(imap, signal)
    connectedAt = host.clock()
    await watch(client, text === undefined ? { syncedAt: connectedAt, folders: [] } : parsePlace(text), parts)
    return undefined
  } catch (error) {
    // a mail that ended the connection does not end the next one
    if (signal.aborted || oversized.size > oversizedBefore) return undefined
    const isEnd = connectedAt !== undefined && client?.usable === false && host.clock() - connectedAt >= shortMs
    if (isEnd && !(error instanceof SourceFailure)) return undefined
    const { message: problem, retryAfterMs } = toFailure(error, imap)
    return { problem, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) }
  } finally {
    onProblems([])
    client?.close()
  }
}

/** Never resolves: it rejects when the connection or the signal ends. */
async function watch(client: ImapFlow, place: MailboxPlace, parts: WatchParts): Promise<never> {
  const { imap, host, signal, oversized, onProblems } = parts
  const { folders, pollSeconds, host: server } = imap
  const news = listen(client, signal)
  // the first folder is read last, so that it is the one that the server reports about
  const order = [...new Set(folders)].toReversed()
  const kept = place.folders.filter(({ name }) => folders.includes(name))
  place = { ...place, folders: kept }
  let storedAt: number | undefined
  for (;;) {
    news.clear()
    const problems: string[] = []
    for (const name of order) {
      try {
        place = await syncMailFolder({ client, imap, host, oversized }, name, place)
      } catch (error) {
        if (!isRefusal(error)) throw error
        problems.push(describeRefusal(name, isMissingFolder(error)))
      }
    }
    for (const { name, missed } of place.folders)
      if (missed.length > 0) problems.push(`${server} does not return ${missed.length} of the mails of "${name}".`)
    onProblems(problems)
    // stored after each connection: then the gateway knows that the last failure is over
    if (storedAt === undefined || host.clock() - storedAt >= refreshMs) {
      storedAt = host.clock()
      place = { ...place, syncedAt: storedAt }
      await host.store([], JSON.stringify(place))
    }
    await news.wait(pollSeconds * 1_000, host.pause)
  }
}

function describeRefusal(name: string, isMissing: boolean): string {
  const what = isMissing ? 'does not exist' : 'cannot be opened'
  return `The folder "${name}" of hooks.imap.folders ${what}. The other folders are watched.`
}

/** Notices new mails, and the end of the connection. */
function listen(client: ImapFlow, signal: AbortSignal) {
  let isNew = false
  let wake = () => {}
  client.on('exists', ({ count, prevCount }) => {
    isNew ||= count > prevCount
    if (isNew) wake()
  })
  client.once('close', () => wake())
  return {
    clear() {
      isNew = false
    },
    /** Waits for a new mail in the selected folder, at most `ms`. Rejects when the connection or the signal ends. */
    async wait(ms: number, pause: Sleep): Promise<void> {
      const ending = new AbortController()
      const woken = new Promise<void>((resolve) => (wake = resolve))
      if (!isNew && client.usable) {
        // the next command ends it. Without IDLE, the folders are polled only
        if (client.capabilities.has('IDLE')) void client.idle().catch(() => undefined)
        await Promise.race([woken, pause(ms, AbortSignal.any([signal, ending.signal])).catch(() => undefined)])
        ending.abort()
      }
      signal.throwIfAborted()
      if (!client.usable) throw new Error('The connection has ended.')
    },
  }
}

/** What `hookloom doctor` asks: logs in, and opens each folder. */
export async function probeMailbox(imap: ImapConfig, signal: AbortSignal): Promise<{ ok: boolean; detail: string }> {
  let client: ImapFlow | undefined
  try {
    client = await connect(imap, signal)
    for (const name of imap.folders) {
      const failure = await client.mailboxOpen(name, { readOnly: true }).then(() => undefined, String)
      if (failure !== undefined)
        return { ok: false, detail: `The folder "${name}" of hooks.imap.folders cannot be opened.` }
    }
    const idle = client.capabilities.has('IDLE') ? 'reports new mails' : `is asked every ${imap.pollSeconds} s`
    return { ok: true, detail: `${imap.host} accepts the password, has the folders, and ${idle}.` }
  } catch (error) {
    return { ok: false, detail: toFailure(error, imap).message }
  } finally {
    client?.close()
  }
}
