// Watches the mailbox of the gateway. The watch follows the configuration and the duty of this gateway.
import {
  toCursorName,
  gmailHook,
  type GmailPayload,
  type MailSink,
  parseState,
  toMailKey,
  toStateFile,
} from '../gmail/mail.ts'
import type { Delivery } from '../../core/model/delivery.ts'
import type { Generation } from '../generation/generation.ts'
import type { Hook } from '../../core/mapping/hook.ts'
import type { NewDelivery } from '../../store/records.ts'
import type { Duty } from '../../store/named-leases.ts'
import type { Clock, Store } from '../../store/store.ts'
import { toWaitingAnswer } from './answers.ts'
import { toPendingSettlement, toDeliveryRow } from './settlement.ts'
import { buildDelivery, toLocalHead } from '../../core/mapping/delivery.ts'
import { readDedupe } from './duplicates.ts'
import { createIntake, type IntakeParts } from './intake.ts'
import { type Repeats, toRepeatedDelivery } from './repeats.ts'
import { readMailboxState } from '../gmail/http-sink.ts'
import type { GmailStatus } from '../gmail/status.ts'
import type { MailWatcher } from '../gmail/watcher.ts'
import type { Config } from '../../model/config/config.ts'
import { isWatched, type WatchedGmail } from '../../model/config/gmail.ts'
import type { PushGate } from '../gmail/push.ts'

type MailboxParts = Omit<InboxParts, 'account'> & {
  /** The config directory. */
  readonly dir: string
  /** With `HOOKLOOM_SKIP_GMAIL=1`, the gateway does not watch the mailbox, because `hookloom gmail run` does. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Only the gateway with this duty watches the mailbox. */
  readonly duty: Duty
  /** Counts pushes without a valid token for each client. */
  readonly pushGate: (trustedProxies: readonly string[]) => PushGate
}

type Mailbox = {
  /**
   * Watches the mailbox of this configuration, if this gateway has the duty; otherwise no mailbox is watched. Does nothing if this mailbox is
   * watched already.
   */
  apply(config: Config): void
  /** The state of the watch; undefined if no mailbox is watched. */
  status(): GmailStatus | undefined
  /** The problems of the mailbox, for /readyz. */
  problems(): { readonly detail: string }[]
  stop(): Promise<void>
}

export function createMailbox(parts: MailboxParts): Mailbox {
  const { dir, env, duty, pushGate, clock, log } = parts
  let watched = ''
  let watcher: MailWatcher | undefined
  let isStopping = false
  let last: Promise<void> = Promise.resolve()

  function createSink({ account }: WatchedGmail): MailSink {
    const inbox = createInbox({ ...parts, account })
    // the first sync continues where `gmail run` stopped
    return { ...inbox, state: async () => (await inbox.state()) ?? readMailboxState(toStateFile(dir), account) }
  }

  async function switchWatcher(gmail: WatchedGmail | undefined, trustedProxies: readonly string[]): Promise<void> {
    await watcher?.stop()
    watcher = undefined
    if (gmail === undefined || isStopping) return
    log.info({ account: gmail.account, mode: gmail.mode }, 'the gateway watches the mailbox')
    // loaded on demand, because few gateways need this large module
    const { startWatcher } = await import('../gmail/watcher.ts')
    watcher = startWatcher({ dir, gmail, sink: createSink(gmail), gate: pushGate(trustedProxies), log, clock })
  }

  return {
    apply({ hooks, server: { trustedProxies } }) {
      const isOn = hooks.enabled && env['HOOKLOOM_SKIP_GMAIL'] !== '1' && duty.isHeld()
      const gmail = isOn && isWatched(hooks.gmail) ? hooks.gmail : undefined
      const wanted = gmail === undefined ? '' : JSON.stringify([gmail, trustedProxies])
      if (wanted === watched || isStopping) return
      watched = wanted
      last = last.then(() => switchWatcher(gmail, trustedProxies))
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

type InboxParts = IntakeParts & {
  readonly account: string
  readonly generation: () => Generation
  readonly store: Pick<Store, 'cursor'>
  readonly repeats: Pick<Repeats, 'note'>
  readonly clock: Clock
  readonly newId: () => string
}

export function createInbox(parts: InboxParts): MailSink {
  const { account, generation, store, repeats, clock, newId } = parts
  const intake = createIntake(parts)
  const name = toCursorName(account)
  /** The value of the cursor when it was last read or moved here. */
  let place: string | undefined

  return {
    async state() {
      place = await store.cursor(name)
      return place === undefined ? undefined : parseState(place)
    },
    async deliver(payloads, state) {
      const current = generation()
      const mails = payloads.map((payload) =>
        buildMail(payload, { generation: current, id: newId(), receivedAt: clock() }),
      )
      const to = JSON.stringify(state)
      const appended = await intake.storeAndRun(
        mails.map(({ row }) => row),
        { name, from: place, to },
      )
      // not a Problem: the sync begins again at the new cursor
      if (appended === 'moved')
        throw new Error('Another process moved the position in the mailbox. The next sync begins there.')
      for (const [index, { delivery, hook }] of mails.entries()) {
        const what = appended[index]
        if (what?.kind === 'duplicate') repeats.note(toRepeatedDelivery(delivery, hook, what.first))
      }
      place = to
    },
  }
}

/** Makes a pending delivery of a mail. Its key is the same as over HTTP, so a mail that comes both ways is one delivery. */
function buildMail(
  payload: GmailPayload,
  { generation, id, receivedAt }: { generation: Generation; id: string; receivedAt: number },
): { delivery: Delivery; hook: Hook; row: NewDelivery } {
  const hook = generation.findHook(gmailHook)
  const prefix = generation.config.hooks.path
  const headers = { 'content-type': 'application/json', 'idempotency-key': toMailKey(payload) }
  const head = toLocalHead(hook, { prefix, path: gmailHook, headers })
  const body = Buffer.from(JSON.stringify(payload))
  // the gateway fetched the mail itself, so there is no signature
  const admitted = { token: true, signedFor: [] }
  const delivery = buildDelivery({ ...head, admitted }, body, { hook, id, receivedAt })
  const settlement = toPendingSettlement(delivery, generation.id)
  const answer = toWaitingAnswer(id, 'pending')
  return { delivery, hook, row: toDeliveryRow(delivery, { settlement, answer, dedupe: readDedupe(delivery)?.key }) }
}
