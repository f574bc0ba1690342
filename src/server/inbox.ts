// Mails of a watched mailbox into the gateway: their deliveries and the place in the mailbox are one commit, then they run through the pipe.
import { cursorName, gmailHook, type GmailPayload, type MailSink, parseState, toMailKey } from '../gmail/mail.ts'
import type { Log } from '../model/log.ts'
import type { Generation } from '../pipeline/generation.ts'
import type { Clock, NewDelivery, Store } from '../store/store.ts'
import { toWaitingAnswer } from './answer.ts'
import { toDelivery, toLocalHead } from './delivery.ts'
import { toDedupe } from './duplicates.ts'
import type { Rerunner } from './rerun.ts'
import { toPending, toRow } from './settlement.ts'

export type InboxParts = {
  readonly account: string
  readonly generation: () => Generation
  readonly store: Pick<Store, 'appendAll' | 'cursor' | 'open'>
  readonly rerunner: Pick<Rerunner, 'rerun'>
  readonly clock: Clock
  readonly newId: () => string
  readonly log: Log
}

/** What is stored and does not run, since the process ends, is pending: the next start runs it. */
export function createInbox(parts: InboxParts): MailSink {
  const { account, generation, store, rerunner, clock, newId, log } = parts
  const name = cursorName(account)
  let running: Promise<unknown> = Promise.resolve()

  async function runAll(ids: readonly string[]): Promise<void> {
    for (const id of ids) {
      try {
        const [open] = await store.open({ id, state: 'pending', limit: 1 })
        if (open !== undefined) await rerunner.rerun(open)
      } catch (error) {
        log.error({ err: error, deliveryId: id }, 'a stored mail could not be run; it waits for the next start')
      }
    }
  }

  return {
    async state() {
      const value = await store.cursor(name)
      return value === undefined ? undefined : parseState(value)
    },
    async deliver(payloads, state) {
      const current = generation()
      const rows = payloads.map((payload) =>
        toMailRow(payload, { generation: current, id: newId(), receivedAt: clock() }),
      )
      const appended = await store.appendAll(rows, { name, value: JSON.stringify(state) })
      const ids = rows.flatMap(({ id }, index) => (appended[index]?.kind === 'stored' ? [id] : []))
      // in the order of the mails, and not in the way of the next sync
      running = running.then(() => runAll(ids))
    },
  }
}

/** The row that the same mail would have had over HTTP, with the same key: one that comes both ways is one delivery. */
function toMailRow(
  payload: GmailPayload,
  { generation, id, receivedAt }: { generation: Generation; id: string; receivedAt: number },
): NewDelivery {
  const hook = generation.hook(gmailHook)
  const prefix = generation.config.hooks.path
  const headers = { 'content-type': 'application/json', 'idempotency-key': toMailKey(payload) }
  const head = toLocalHead(hook, { prefix, path: gmailHook, headers })
  const body = Buffer.from(JSON.stringify(payload))
  // nobody signed it: the gateway fetched it itself
  const admitted = { token: true, signedFor: [] }
  const delivery = toDelivery({ ...head, admitted }, body, { hook, id, receivedAt })
  const settlement = toPending(delivery, generation.id)
  return toRow(delivery, { settlement, answer: toWaitingAnswer(id, 'pending'), dedupe: toDedupe(delivery)?.key })
}
