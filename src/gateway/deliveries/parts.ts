// The parts of a batch whose list is too long for one commit: each is a delivery of its own.
import { hash } from 'node:crypto'
import type { Delivery } from '../../core/model/delivery.ts'
import type { Log } from '../../base/log.ts'
import type { StoredDecision } from '../../core/mapping/decision.ts'
import { buildDelivery } from '../../core/mapping/delivery.ts'
import type { Generation } from '../generation/generation.ts'
import { listParts } from '../../core/mapping/items.ts'
import type { NewDelivery, OpenDelivery } from '../../store/records.ts'
import type { Store } from '../../store/store.ts'
import { toDeliveryRow, toPendingSettlement } from './settlement.ts'
import { toWaitingAnswer } from './answers.ts'

type PartsInput = {
  readonly generation: Generation
  readonly newId: () => string
  /** Stores a pending delivery that only this gateway may run. Returns false if it is stored already. */
  readonly append: (row: NewDelivery) => Promise<boolean>
}

/**
 * Stores the parts as pending deliveries; none if the decision has no parts. Call it before the batch is settled: if the process ends in between, the
 * batch is split again, and the parts that are stored already are duplicates. Returns the ids of the new ones.
 */
export async function storeParts(
  decision: StoredDecision,
  delivery: Delivery,
  { generation, newId, append }: PartsInput,
): Promise<readonly string[]> {
  if (decision.kind !== 'skip' || decision.splits === undefined) return []
  const { path, receivedAt } = delivery
  const hook = generation.findHook(path)
  const stored: string[] = []
  let index = 0
  for (const { head, body } of listParts(delivery, decision.splits)) {
    const part = buildDelivery(head, body, { hook, id: newId(), receivedAt })
    const settlement = toPendingSettlement(part, generation.id, decision.mappingId)
    const dedupe = { hook: path, key: `part:${delivery.id} ${index}`, bodyHash: hash('sha256', body, 'hex') }
    const row = toDeliveryRow(part, { settlement, answer: toWaitingAnswer(part.id, 'pending'), dedupe })
    if (await append(row)) stored.push(part.id)
    index += 1
  }
  return stored
}

type RunParts = {
  readonly store: Pick<Store, 'openDeliveries'>
  readonly rerunner: {
    rerun(open: OpenDelivery): Promise<unknown>
    release(deliveryIds: readonly string[]): Promise<void>
  }
  readonly log: Log
}

/** Runs pending deliveries in their order. One that does not run here stays pending, and runs at the next start or in another gateway. Never rejects. */
export async function runPending(ids: readonly string[], { store, rerunner, log }: RunParts): Promise<void> {
  for (const id of ids) {
    try {
      const [open] = await store.openDeliveries({ id, state: 'pending', limit: 1 })
      if (open !== undefined) await rerunner.rerun(open)
      else await rerunner.release([id])
    } catch (error) {
      log.error(
        { err: error, deliveryId: id },
        'a stored delivery could not be processed; it runs in another gateway or at the next start',
      )
      // otherwise no other gateway could run it while this one lives
      await rerunner.release([id])
    }
  }
}
