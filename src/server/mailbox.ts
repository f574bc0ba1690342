// The watched mailbox inside the gateway: begins, ends and begins anew with what `hooks.gmail` says.
import { readState } from '../gmail/http-sink.ts'
import type { MailSink } from '../gmail/mail.ts'
import { toStateFile } from '../gmail/mail.ts'
import type { GmailStatus } from '../gmail/status.ts'
import { type MailWatcher, startWatcher } from '../gmail/watcher.ts'
import type { Config } from '../model/config.ts'
import { isWatched, type WatchedGmail } from '../model/gmail-config.ts'
import { createClientOf } from './client.ts'
import { createInbox, type InboxParts } from './inbox.ts'
import type { Throttle } from './throttle.ts'

export type MailboxParts = Omit<InboxParts, 'account'> & {
  /** The config directory. */
  readonly dir: string
  /** `HOOKLOOM_SKIP_GMAIL=1`: `hookloom gmail run` or somebody else watches. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** That of failed signatures: a push without a valid token counts as one. */
  readonly signers: Throttle
}

export type Mailbox = {
  /** Watches what this configuration names, if anything. What it names already is let alone. */
  apply(config: Config): void
  /** Undefined while nothing is watched. */
  status(): GmailStatus | undefined
  /** What does not work now, for /readyz. */
  problems(): { readonly detail: string }[]
  stop(): Promise<void>
}

export function createMailbox(parts: MailboxParts): Mailbox {
  const { dir, env, signers, clock, log } = parts
  let watched = ''
  let watcher: MailWatcher | undefined
  let isStopping = false
  let last: Promise<void> = Promise.resolve()

  function toSink({ account }: WatchedGmail): MailSink {
    const inbox = createInbox({ ...parts, account })
    // where `gmail run` has watched until now, the gateway goes on
    return { ...inbox, state: async () => (await inbox.state()) ?? readState(toStateFile(dir), account) }
  }

  async function change(gmail: WatchedGmail | undefined, trustedProxies: readonly string[]): Promise<void> {
    await watcher?.stop()
    watcher = undefined
    if (gmail === undefined || isStopping) return
    log.info({ account: gmail.account, mode: gmail.mode }, 'the mailbox is watched')
    const gate = { ...signers, clientOf: createClientOf(trustedProxies) }
    watcher = startWatcher({ dir, gmail, sink: toSink(gmail), gate, log, clock })
  }

  return {
    apply({ hooks, server: { trustedProxies } }) {
      const isOn = hooks.enabled && env['HOOKLOOM_SKIP_GMAIL'] !== '1'
      const gmail = isOn && isWatched(hooks.gmail) ? hooks.gmail : undefined
      const wanted = gmail === undefined ? '' : JSON.stringify([gmail, trustedProxies])
      if (wanted === watched || isStopping) return
      watched = wanted
      last = last.then(() => change(gmail, trustedProxies))
    },
    status: () => watcher?.status(),
    problems: () => (watcher?.status().problems ?? []).map((problem) => ({ detail: `Gmail: ${problem}` })),
    async stop() {
      isStopping = true
      await last
      await watcher?.stop()
    },
  }
}
