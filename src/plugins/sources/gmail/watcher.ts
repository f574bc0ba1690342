// Watches a mailbox from start to stop: syncs, notifications and renewals run in parallel and share one status.
import type { SourceHost } from '../../../define.ts'
import { Problem, type Sleep, sleepUnlessAborted, type WatchedGmail } from '../shared/kit.ts'
import { type Credentials, readCredentials } from './credentials.ts'
import { type Google, openGoogle } from './google.ts'
import type { MailSink } from './mail.ts'
import { coalesce, isConsentMissing, retryUntilDone } from './pace.ts'
import { keepWatching } from './renewal.ts'
import { createStatusBoard, type GmailStatus, type WatcherPart, toStatusFile } from './status.ts'
import { readNotifiedAccount, toSubscription, toTopic } from './pubsub.ts'
import { startPushReceiver } from './push.ts'
import { syncOnce } from './sync.ts'

type WatcherParts = {
  /** The config directory. */
  readonly dir: string
  readonly gmail: WatchedGmail
  readonly sink: MailSink
  readonly pause?: Sleep
  readonly random?: () => number
  /** `gate`, `verifier`: for the mode `push`. */
} & Pick<SourceHost, 'gate' | 'verifier' | 'log' | 'clock'>

export type MailWatcher = {
  status(): GmailStatus
  /** Resolves with the error when the consent is missing: only a person can give it. */
  readonly consentLost: Promise<Error>
  /** Stops the watcher. Resolves when all its parts have ended. The next start finds the undelivered mails. */
  stop(): Promise<void>
}

const minute = 60_000
const retryMs = [5_000, 15_000, minute, 5 * minute]
/** The interval at which pull and push also poll, because a notification can get lost. */
const fallbackSyncMs = 15 * minute
/** The pause after a pull without a message. */
const idleMs = 1_000
/** The interval of the checks of the subscription. */
const subscriptionCheckMs = 60 * minute
const consentCheckMs = 10_000
/** When refused credentials are tried again: an administrator may have granted the service account its rights meanwhile. */
const consentRetryMs = 5 * minute

export function startWatcher(parts: WatcherParts): MailWatcher {
  const { dir, gmail, log, clock, pause = sleepUnlessAborted } = parts
  const board = createStatusBoard({ file: toStatusFile(dir), account: gmail.account, mode: gmail.mode }, clock)
  const stopping = new AbortController()
  let loseConsent: (error: Error) => void = () => {}
  const consentLost = new Promise<Error>((resolve) => (loseConsent = resolve))
  const running = run()
  return {
    status: board.current,
    consentLost,
    async stop() {
      stopping.abort()
      await running
      board.end()
      await board.waitUntilWritten()
    },
  }

  /**
   * ```
   *            Google refuses the consent, or a part fails permanently
   * watching ──────────────────────────────────────────────────────────▶ waiting
   *    ▲                                                                    │
   *    └── another consent, or after a time limit the same one again ───────┘      `stop` ends both
   * ```
   */
  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      const before = readCredentialsText()
      const ending = new AbortController()
      const signal = AbortSignal.any([stopping.signal, ending.signal])
      try {
        await watch(readCredentials(dir, gmail), signal, () => ending.abort())
      } catch (error) {
        if (stopping.signal.aborted) return
        const part = isConsentMissing(error) ? 'consent' : 'start'
        report(part, error)
        if (isConsentMissing(error)) loseConsent(error)
        await waitForNewConsent(before, part === 'start' ? minute : consentRetryMs)
        // the same consent counts as refused until Google accepts it
        if (part === 'start' || readCredentialsText() !== before) board.setProblem(part, undefined)
      }
    }
  }

  /** Waits for a new consent, up to a time limit. */
  async function waitForNewConsent(before: string, ms: number): Promise<void> {
    const end = clock() + ms
    while (!stopping.signal.aborted && clock() < end && readCredentialsText() === before) {
      await pause(consentCheckMs, stopping.signal).catch(() => undefined)
    }
  }

  /** Runs the parts. The first part that fails permanently ends the others; its error is thrown when all have ended. */
  async function watch(credentials: Credentials, signal: AbortSignal, end: () => void): Promise<void> {
    const tools = { pause, random: parts.random ?? Math.random, signal }
    const google = openGoogle(gmail, { credentials, clock, tools })
    const sync = coalesce(() =>
      retryUntilDone(() => syncNow(google), {
        waits: retryMs,
        pause,
        signal,
        onFailure: (error) => report('sync', error),
      }),
    )
    let failed: unknown
    const supervise = async (work: Promise<unknown>) => {
      try {
        await work
      } catch (error) {
        failed ??= error
        end()
      }
    }
    const everyMs = gmail.mode === 'poll' ? gmail.pollSeconds * 1000 : fallbackSyncMs
    const works = [supervise(repeat(sync, everyMs, signal))]
    if (gmail.mode !== 'poll') {
      works.push(supervise(renew(google, signal)))
      works.push(supervise(repeat(() => checkSubscription(google), subscriptionCheckMs, signal)))
    }
    if (gmail.mode === 'pull') works.push(supervise(pull(google, sync, signal)))
    if (gmail.mode === 'push') works.push(supervise(receive(google, () => void supervise(sync()), signal)))
    await Promise.all(works)
    throw failed
  }

  async function syncNow(google: Google): Promise<void> {
    const { mails, gap } = await syncOnce({ api: google.gmail, sink: parts.sink, gmail, clock, log })
    const now = clock()
    board.setProblem('sync', undefined)
    board.setProblem('consent', undefined)
    board.update({ syncedAt: now, mails: board.current().mails + mails, ...(gap ? { gapAt: now } : {}) })
    if (mails > 0) log.info({ account: gmail.account, mails }, 'new mails were delivered')
  }

  async function repeat(work: () => Promise<void>, ms: number, signal: AbortSignal): Promise<never> {
    for (;;) {
      await work()
      await pause(ms, signal)
    }
  }

  function renew(google: Google, signal: AbortSignal): Promise<never> {
    return keepWatching({
      api: google.gmail,
      gmail,
      clock,
      pause,
      signal,
      onFailure: (error) => report('watch', error),
      onRenewed(watchExpiresAt) {
        board.setProblem('watch', undefined)
        board.update({ watchExpiresAt, topic: toTopic(gmail) })
      },
    })
  }

  /** Reports a subscription that gets no notifications: the mailbox is still synced, but late. */
  async function checkSubscription({ pubsub }: Google): Promise<void> {
    try {
      const problem = await pubsub.findSubscriptionProblem(toSubscription(gmail), toTopic(gmail))
      if (problem === undefined) board.setProblem('subscription', undefined)
      else report('subscription', new Problem('gmail-unavailable', problem))
    } catch (error) {
      // not reported: an account that may pull from a subscription may lack the permission to read its settings
      if (isConsentMissing(error)) throw error
    }
  }

  /** Pulls notifications. Each only starts a sync, because notifications come late, twice and out of order. It is acknowledged after the sync. */
  async function pull({ pubsub }: Google, sync: () => Promise<void>, signal: AbortSignal): Promise<never> {
    const subscription = toSubscription(gmail)
    for (;;) {
      const received = await retryUntilDone(() => pubsub.pull(subscription), {
        waits: retryMs,
        pause,
        signal,
        onFailure: (error) => report('pull', error),
      })
      board.setProblem('pull', undefined)
      if (received.some(({ data }) => readNotifiedAccount(data) === gmail.account)) await sync()
      const ackIds = received.map(({ ackId }) => ackId)
      if (ackIds.length === 0) await pause(idleMs, signal)
      // an unacknowledged notification comes again, and starts a sync that finds nothing
      else await pubsub.acknowledge(subscription, ackIds).catch((error: unknown) => report('pull', error))
    }
  }

  async function receive({ plainCall }: Google, onNotification: () => void, signal: AbortSignal): Promise<never> {
    const receiver = await retryUntilDone(
      () =>
        startPushReceiver({
          gmail,
          call: plainCall,
          clock,
          onNotification,
          gate: parts.gate,
          verifier: parts.verifier,
          log,
        }),
      {
        waits: [minute],
        pause,
        signal,
        onFailure: (error) => report('push', error),
      },
    )
    board.setProblem('push', undefined)
    try {
      return await new Promise<never>((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason))
        // the signal may have been aborted while the server began to listen
        if (signal.aborted) reject(signal.reason)
      })
    } finally {
      receiver.close()
    }
  }

  function report(part: WatcherPart, error: unknown): void {
    const said = error instanceof Error ? error.message : 'It failed.'
    if (part === 'consent' && board.current().problems.includes(said)) return
    board.setProblem(part, said)
    const fields = { account: gmail.account, part, cause: describeCause(error) }
    // the file is written before the log line: its reader may run "hookloom gmail status" at once
    void board.waitUntilWritten().then(() => log.error(fields, `Gmail: ${said}`))
  }

  /** The credentials as one text; empty if they cannot be read. Another text means other credentials. */
  function readCredentialsText(): string {
    try {
      return JSON.stringify(readCredentials(dir, gmail))
    } catch {
      return ''
    }
  }
}

/** The error code in the cause, such as ECONNREFUSED. */
function describeCause(error: unknown): string | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if ('code' in cause && typeof cause.code === 'string' && cause !== error) return cause.code
  }
  return undefined
}
