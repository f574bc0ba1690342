// What the operator is told about the outbox of a sender. What was told is in the store, so that a restart neither loses nor repeats a message.
import type { Log } from '../../model/log.ts'
import type { HookState } from '../../recover/outbox.ts'
import type { Clock, Store } from '../../store/store.ts'
import { type RecoverSource, toOutboxCursor } from './pass.ts'

/** The times are milliseconds since the epoch. */
type OutboxState = {
  /** Why the sender does not call the hook; undefined if it does. */
  readonly off?: string | undefined
  /** When the sender called the hook again after it did not. */
  readonly onAt?: number | undefined
}

type Notice = { readonly cause: string; readonly text: string }

/** `after`: the state when the message is queued. `untold`: the state if it could not be queued; undefined if the state then stays the same. */
type Step = {
  readonly notice?: Notice | undefined
  readonly after: OutboxState
  readonly untold?: OutboxState | undefined
}

export type RecoveryNotices = {
  /** Reports a sender that no longer calls the hook, once for each reason, until it calls the hook again. A crash may repeat the message. */
  noteHook(source: RecoverSource & { readonly turnsOn: boolean }, state: HookState): Promise<void>
}

type NoticesParts = {
  readonly store: Pick<Store, 'appendAll' | 'cursor'>
  /** Queues a message to the operator. Resolves to false if it could not be queued now; the next pass tries again. */
  readonly alert: (notice: Notice) => Promise<boolean>
  readonly clock: Clock
  readonly log: Log
}

export function createRecoveryNotices({ store, alert, clock, log }: NoticesParts): RecoveryNotices {
  /** The message is queued before the state is noted: after a crash in between, the same cause is queued again, at most once an hour. */
  async function update(source: RecoverSource, step: (before: OutboxState) => Step | undefined): Promise<void> {
    const name = `${toOutboxCursor(source)} state`
    for (;;) {
      const from = await store.cursor(name)
      const judged = step(readState(from))
      if (judged === undefined) return
      const { notice, after, untold } = judged
      const isTold = notice === undefined || (await alert({ ...notice, cause: `${name} ${notice.cause}` }))
      const next = isTold ? after : untold
      if (next === undefined) return
      if ((await store.appendAll([], { name, from, to: JSON.stringify(next) })) !== 'moved') return
    }
  }

  return {
    async noteHook(source, state) {
      const { sender, path, turnsOn } = source
      await update(source, (before) => {
        if (state.isOn) {
          if (before.off === undefined) return undefined
          log.info({ sender, hook: path }, `${sender} calls the hook "${path}" again.`)
          return { after: { ...before, off: undefined, onAt: clock() } }
        }
        if (before.off === state.why) return undefined
        const move = turnsOn ? 'The gateway turns it on again.' : 'Turn it on there, or set recover.turnOn.'
        const text = `Hookloom: ${sender} does not call the hook "${path}" any more. ${state.why} ${move}`
        log.error({ sender, hook: path }, text)
        // the times in a reason are left out: a sender that extends a pause again and again causes one message an hour
        const cause = `off ${before.onAt ?? ''} ${state.why.replace(/\d+/g, '#')}`
        return { notice: { cause, text }, after: { ...before, off: state.why } }
      })
    },
  }
}

function readState(text: string | undefined): OutboxState {
  if (text === undefined) return {}
  // as: only this file writes the cursor
  if (text.startsWith('{')) return JSON.parse(text) as OutboxState
  // an earlier version wrote "on" or the reason
  return text === 'on' ? {} : { off: text }
}
