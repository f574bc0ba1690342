// Deliveries that wait run again: what was pending when the process ended, and what is parked.
import type { Delivery } from '../model/delivery.ts'
import type { Log } from '../model/log.ts'
import type { Decision } from '../pipeline/decision.ts'
import type { Generation } from '../pipeline/generation.ts'
import { decide } from '../pipeline/pipeline.ts'
import type { Clock, OpenDelivery, Store } from '../store/store.ts'
import { toDeliveryAgain } from './delivery.ts'
import { hasWork, type LastingDecision, toSettlement } from './settlement.ts'

export type RerunnerParts = {
  readonly generation: () => Generation
  readonly hold: (generation: Generation) => () => void
  readonly store: Store
  readonly clock: Clock
  readonly newId: () => string
  readonly accepted: () => void
  readonly log: Log
}

const pageSize = 100

export class Rerunner {
  readonly #parts: RerunnerParts

  constructor(parts: RerunnerParts) {
    this.#parts = parts
  }

  /** What the process before this one left pending, oldest first: all that came before `startedAt`. */
  async resumePending(startedAt: number): Promise<void> {
    const { store, log } = this.#parts
    for (;;) {
      const page = (await store.open({ limit: pageSize, state: 'pending' })).filter(
        (open) => open.receivedAt < startedAt,
      )
      let settled = 0
      for (const open of page) if ((await this.rerun(open)) !== 'waiting') settled += 1
      if (settled > 0) log.info({ deliveries: settled }, 'deliveries that were pending at the last stop ran again')
      // what could not be settled stands at the head of the next page as well: going on would be a circle
      if (page.length < pageSize || settled < page.length) return
    }
  }

  /** The delivery's state after the current generation had it again. */
  async rerun(open: OpenDelivery): Promise<string> {
    const generation = this.#parts.generation()
    try {
      const delivery = toDeliveryAgain(open, generation)
      return await this.settleLate(decide(generation, delivery, this.#parts.newId), delivery, generation)
    } catch (error) {
      const { deliveryId } = open
      this.#parts.log.error(
        { err: error, deliveryId },
        'a waiting delivery cannot be read any more; it goes on waiting',
      )
      return 'waiting'
    }
  }

  /** Settles a delivery that is stored already. Never rejects: what cannot be written now is still waiting on disk. */
  async settleLate(deciding: Promise<Decision>, delivery: Delivery, generation: Generation): Promise<string> {
    const { store, clock, newId, accepted, log } = this.#parts
    const letGo = this.#parts.hold(generation)
    try {
      const decision = toLasting(await deciding)
      const settlement = toSettlement(decision, delivery, { generation: generation.id, newId, now: clock() })
      if (!(await store.settle(delivery.id, settlement))) return 'settled already'
      if (hasWork(settlement)) accepted()
      return settlement.state
    } catch (error) {
      log.error({ err: error, deliveryId: delivery.id }, 'a waiting delivery could not be settled; it goes on waiting')
      return 'waiting'
    } finally {
      letGo()
    }
  }
}

/** The sender was answered 200 long ago: what would be its fault is now the operator's to see. */
function toLasting(decision: Decision): LastingDecision {
  return decision.kind === 'refuse' ? { ...decision, kind: 'park', waitsFor: undefined } : decision
}
