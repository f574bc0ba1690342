// Stores a delivery with its outcome. A new delivery gets a row; a parked delivery already has one.
import type { Delivery } from '../model/delivery.ts'
import type { Log, Meter } from '../model/log.ts'
import type { Hook } from '../pipeline/hook.ts'
import type { Appended, DedupeKey, Settlement } from '../store/records.ts'
import type { CursorMoves } from '../store/cursors.ts'
import type { Clock, Store } from '../store/store.ts'
import { type Repeats, toRepeatedDelivery } from './repeats.ts'
import type { SenderNotes } from './senders/notes.ts'
import type { ShapeLearner } from './shapes/learner.ts'
import { logDelivery } from './log-lines.ts'
import type { OnParked } from './listeners.ts'
import { toDeliveryRow } from './settlement.ts'
import { toRepeatedAnswer, toWaitingAnswer } from './answers.ts'
import type { Answer } from '../pipeline/answer.ts'

export type DeliveryWriter = {
  /** The state of the delivery before it is settled. */
  readonly state: 'pending' | 'parked'
  /** The answer for a delivery that was parked before and that no mapping takes now: it stays parked. */
  readonly ifUnmatched?: Answer
  /** Called for a delivery whose transform still runs. `isOurs`: this request, and no other one, settles the delivery. */
  storePending(settlement: Settlement): Promise<{ answer: Answer; isOurs: boolean }>
  settle(settlement: Settlement, answer: Answer): Promise<{ answer: Answer }>
  /** `moved`: nothing is stored, because a cursor of `moves` has another value. */
  settleWith(moves: CursorMoves, settlement: Settlement, answer: Answer): Promise<{ answer: Answer } | 'moved'>
}

type WriterParts = {
  readonly store: Pick<Store, 'append' | 'appendAll' | 'claimsAppended' | 'settle'>
  readonly repeats: Pick<Repeats, 'note'>
  readonly senders: Pick<SenderNotes, 'noteAccepted'>
  readonly shapes: Pick<ShapeLearner, 'note'>
  readonly clock: Clock
  /** Called while jobs are being stored, if a claim can already find them; otherwise when they are stored. */
  readonly lookForNew: (jobs: Settlement['jobs'], cancel: Settlement['cancel']) => void
  /** Called when jobs are stored. */
  readonly onAccepted: (jobs: Settlement['jobs']) => void
  readonly onParked?: OnParked
  readonly meter: Meter
  readonly log: Log
}

type NewRequest = {
  readonly hook: Hook
  /** See `toHookLabel`. */
  readonly label: string
  readonly client: string
  readonly dedupe: DedupeKey | undefined
  /** Whether the request was refused when it arrived. */
  readonly isLate: boolean
}

/** The writer of a delivery that is not stored yet. */
export function createNewWriter(
  parts: WriterParts,
  delivery: Delivery,
  { hook, label, client, dedupe, isLate }: NewRequest,
): DeliveryWriter {
  const toRow = (settlement: Settlement, answer: Answer) => toDeliveryRow(delivery, { settlement, answer, dedupe })

  async function append(settlement: Settlement, answer: Answer): Promise<{ answer: Answer; isOurs: boolean }> {
    const claimsAppended = parts.store.claimsAppended()
    const appending = parts.store.append(toRow(settlement, answer))
    if (claimsAppended) parts.lookForNew(settlement.jobs, settlement.cancel)
    const appended = await appending
    if (!claimsAppended) parts.lookForNew(settlement.jobs, settlement.cancel)
    return noteAppended(appended, settlement, answer)
  }

  function noteAppended(appended: Appended, settlement: Settlement, answer: Answer) {
    if (appended.kind === 'duplicate') {
      parts.repeats.note(toRepeatedDelivery(delivery, hook, appended.first))
      return { answer: toRepeatedAnswer(appended.first), isOurs: false }
    }
    const now = parts.clock()
    const seconds = isLate ? undefined : (now - delivery.receivedAt) / 1_000
    parts.meter('deliveries', { outcome: settlement.state, hook: label }, seconds)
    logDelivery(parts, delivery, settlement, { now, before: isLate ? 'refused' : undefined, hook })
    if (!isLate) parts.senders.noteAccepted(delivery, { hook, label, client, mappingId: settlement.mappingId })
    parts.shapes.note(delivery, hook)
    parts.onAccepted(settlement.jobs)
    return { answer, isOurs: true }
  }
  return {
    state: 'pending',
    storePending: (settlement) => append(settlement, toWaitingAnswer(delivery.id, 'pending')),
    settle: append,
    async settleWith(moves, settlement, answer) {
      const appended = await parts.store.appendAll([toRow(settlement, answer)], moves)
      if (appended === 'moved') return appended
      parts.lookForNew(settlement.jobs, settlement.cancel)
      return noteAppended(appended[0] ?? { kind: 'stored' }, settlement, answer)
    },
  }
}

/** The writer of a delivery that was parked before. */
export function createParkedWriter(
  parts: WriterParts,
  delivery: Delivery,
  { hook, firstAnswer }: { hook: Hook; firstAnswer: Answer },
): DeliveryWriter {
  function noteSettled(isSettled: boolean | 'moved', settlement: Settlement, answer: Answer): { answer: Answer } {
    if (isSettled === false) return { answer: firstAnswer }
    parts.lookForNew(settlement.jobs, settlement.cancel)
    parts.onAccepted(settlement.jobs)
    logDelivery(parts, delivery, settlement, { now: parts.clock(), before: 'parked', hook })
    return { answer }
  }
  return {
    state: 'parked',
    ifUnmatched: firstAnswer,
    storePending: async () => ({ answer: firstAnswer, isOurs: true }),
    async settle(settlement, answer) {
      return noteSettled(await parts.store.settle(delivery.id, settlement), settlement, answer)
    },
    async settleWith(moves, settlement, answer) {
      const settled = await parts.store.settle(delivery.id, settlement, moves)
      return settled === 'moved' ? settled : noteSettled(settled, settlement, answer)
    },
  }
}
