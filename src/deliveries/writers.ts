// Stores a delivery whose sender waits for the answer. A new delivery gets a row; a parked delivery already has one.
import type { Delivery } from '../model/delivery.ts'
import type { Answer } from '../pipeline/answer.ts'
import type { Hook } from '../pipeline/hook.ts'
import type { CursorMove } from '../store/cursors.ts'
import type { Appended, Settlement } from '../store/records.ts'
import { toRepeatedAnswer, toWaitingAnswer } from './answers.ts'
import type { OnRepeated } from './listeners.ts'
import type { ArrivingDelivery, Settler, Written } from './settle.ts'

export type DeliveryWriter = {
  /** The state of the delivery before it is settled. */
  readonly before: 'pending' | 'parked'
  /** The answer for a delivery that was parked before and that no mapping takes now: it stays parked. */
  readonly ifUnmatched?: Answer
  /** Called for a delivery whose transform still runs. */
  storePending(settlement: Settlement): Promise<Written<Answer>>
  /** `moved`: nothing is stored, because a cursor of `moves` has another value. */
  write(settlement: Settlement, answer: Answer, moves: readonly CursorMove[]): Promise<Written<Answer> | 'moved'>
}

/** The writer of a delivery that is not stored yet. */
export function createNewWriter(
  { settler, onRepeated }: { readonly settler: Pick<Settler, 'append'>; readonly onRepeated: OnRepeated },
  arriving: ArrivingDelivery,
): DeliveryWriter {
  const { append } = settler
  function toWritten(appended: Appended, answer: Answer): Written<Answer> {
    if (appended.kind === 'stored') return { isStored: true, outcome: answer }
    const { delivery, hook, client, isLate } = arriving
    onRepeated({ delivery, hook, client, isLate, first: appended.first })
    return { isStored: false, outcome: toRepeatedAnswer(appended.first) }
  }
  return {
    before: 'pending',
    async storePending(settlement) {
      const answer = toWaitingAnswer(arriving.delivery.id, 'pending')
      return toWritten(await append(arriving, { settlement, answer }), answer)
    },
    async write(settlement, answer, moves) {
      const appended = await append(arriving, { settlement, answer }, moves)
      return appended === 'moved' ? appended : toWritten(appended, answer)
    },
  }
}

/** The writer of a delivery that was parked before. `firstAnswer`: the answer if another request settles it first. */
export function createParkedWriter(
  { settler }: { readonly settler: Pick<Settler, 'complete'> },
  { delivery, hook, firstAnswer }: { readonly delivery: Delivery; readonly hook: Hook; readonly firstAnswer: Answer },
): DeliveryWriter {
  return {
    before: 'parked',
    ifUnmatched: firstAnswer,
    storePending: async () => ({ isStored: true, outcome: firstAnswer }),
    async write(settlement, answer, moves) {
      const settled = await settler.complete({ delivery, hook, before: 'parked' }, settlement, moves)
      return settled === 'moved' ? settled : { isStored: settled, outcome: settled ? answer : firstAnswer }
    },
  }
}
