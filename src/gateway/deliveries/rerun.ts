// Runs waiting deliveries again: those that were pending when their gateway ended, and those that are parked.
import { setTimeout as sleep } from 'node:timers/promises'
import type { DeliveryRecord, OpenDelivery } from '../../store/records.ts'
import type { NamedLeases } from '../../store/named-leases.ts'
import type { Store, Clock } from '../../store/store.ts'
import { formatCommand } from '../../base/shell.ts'
import { toBackoffMs } from '../../base/retry.ts'
import { within } from '../../base/time.ts'
import type { Delivery } from '../../core/model/delivery.ts'
import type { Log } from '../../base/log.ts'
import { type Decision, parkRefusal } from '../../core/mapping/decision.ts'
import type { Generation } from '../generation/generation.ts'
import { type Hook, isHookOpen } from '../../core/mapping/hook.ts'
import { Problem, toProblemRecord } from '../../core/model/problem.ts'
import { buildDelivery } from '../../core/mapping/delivery.ts'
import { walkWaiting } from './walk.ts'
import { runPending, storeParts } from './parts.ts'
import type { Deciding, Settler, Settling } from './settle.ts'
import { isUnmatched, buildUnmatchedSettlement, type ReadableDelivery, type UnmatchedDelivery } from './unmatched.ts'

type RerunnerParts = {
  readonly generation: () => Generation
  readonly acquire: (generation: Generation) => () => void
  readonly store: Pick<Store, 'append' | 'delivery' | 'openDeliveries' | 'countInState'>
  readonly settler: Settler
  /** With leases, only one gateway runs a delivery at a time. Default: there is no other gateway. */
  readonly leases?: Pick<NamedLeases, 'take' | 'release'>
  readonly clock: Clock
  readonly newId: () => string
  /** Aborted when the gateway begins to stop. */
  readonly stopping?: AbortSignal
  readonly log: Log
}

const backoff = { firstMs: 200, capMs: 30_000 }
/** A call of the operator waits no longer for the end of a run. */
const maxWaitMs = 5_000

export class Rerunner {
  readonly #parts: RerunnerParts
  readonly #stopping: AbortSignal
  readonly #leases: NonNullable<RerunnerParts['leases']>
  /** Deliveries that only this gateway may run now. */
  readonly #claimed = new Set<string>()
  /** Deliveries whose code runs now, each with the end of the run. */
  readonly #running = new Map<string, Promise<void>>()

  constructor(parts: RerunnerParts) {
    this.#parts = parts
    this.#leases = parts.leases ?? { take: async (names) => [...names], release: async () => {} }
    this.#stopping = parts.stopping ?? new AbortController().signal
  }

  /** Claims deliveries, so that no other gateway runs them until `rerun` or `settleLate` ends. Call it before they are stored as pending. */
  async claim(deliveryIds: readonly string[]): Promise<void> {
    const taken = new Set(await this.#leases.take(deliveryIds.map(toLeaseName)))
    for (const id of deliveryIds) if (taken.has(toLeaseName(id))) this.#claimed.add(id)
  }

  async release(deliveryIds: readonly string[]): Promise<void> {
    const mine = deliveryIds.filter((id) => this.#claimed.delete(id))
    if (mine.length > 0) await this.#leases.release(mine.map(toLeaseName))
  }

  /** Runs the deliveries that a gateway left pending, oldest first. Those that run here or in another gateway are left out. */
  async resumePending(): Promise<void> {
    const { store, log } = this.#parts
    let settled = 0
    const isSkipped = (deliveryId: string) => this.#running.has(deliveryId)
    for await (const open of walkWaiting({ store, query: { state: 'pending' }, isSkipped })) {
      if (this.#stopping.aborted) return
      if ((await this.rerun(open)) !== 'waiting') settled += 1
    }
    if (settled === 0) return
    log.info({ deliveries: settled }, 'deliveries that were pending at the last stop ran again')
  }

  /** Runs a delivery through the current generation. Returns its new state, `already settled`, or `waiting` if it is still open. */
  async rerun(open: OpenDelivery): Promise<string> {
    const { deliveryId } = open
    return this.#running.has(deliveryId) ? 'waiting' : this.#track(deliveryId, this.#rerunFree(open))
  }

  /**
   * Waits for the end of a run of this delivery, at most some seconds. A call of the operator does so first: what was repaired before the call may be newer than
   * what the run has seen.
   */
  async waitForRun(deliveryId: string): Promise<void> {
    const run = this.#running.get(deliveryId)
    if (run !== undefined) await within(maxWaitMs, run)
  }

  async #track<Result>(deliveryId: string, running: Promise<Result>): Promise<Result> {
    if (this.#running.has(deliveryId)) return running
    const forget = () => void this.#running.delete(deliveryId)
    this.#running.set(deliveryId, running.then(forget, forget))
    return running
  }

  async #rerunFree(open: OpenDelivery): Promise<string> {
    const { deliveryId: id } = open
    try {
      if (!this.#claimed.has(id)) await this.claim([id])
      // another gateway runs it
      if (!this.#claimed.has(id)) return 'waiting'
      const record = await this.#parts.store.delivery(id)
      // another gateway has settled it since it was read
      if (record?.state !== 'pending' && record?.state !== 'parked') return 'already settled'
      const { request } = open
      if (request === undefined) return await this.#parkDamaged(open, record)
      return await this.#rerunClaimed({ ...open, request }, record)
    } catch (error) {
      this.#parts.log.error({ err: error, deliveryId: id }, 'a waiting delivery cannot be read; it stays in its state')
      return 'waiting'
    } finally {
      await this.release([id])
    }
  }

  /** Such a delivery never runs. It stays until somebody drops it. */
  async #parkDamaged({ deliveryId, hook, state: before }: OpenDelivery, record: DeliveryRecord): Promise<string> {
    const { generation, settler, log } = this.#parts
    const problem = buildDamagedRequest(deliveryId)
    log.error({ deliveryId, why: problem.message }, 'a waiting delivery is damaged in the store, and was not run')
    if (before === 'parked' && record.problem?.code === problem.code) return 'waiting'
    const { id } = generation()
    const { mappingId, trace } = record
    const settlement = { state: 'parked', mappingId, generation: id, jobs: [], trace, log: [] } as const
    const delivery = { ...record, id: deliveryId, path: hook, method: 'POST', headers: {} }
    const waiting = { delivery, hook: generation().findHook(hook), before }
    const write = () => settler.complete(waiting, { ...settlement, problem: toProblemRecord(problem) })
    return (await this.#insist(deliveryId, write)) === false ? 'already settled' : 'parked'
  }

  async #rerunClaimed(open: ReadableDelivery, record: DeliveryRecord): Promise<string> {
    const { generation: current, acquire } = this.#parts
    const generation = current()
    const release = acquire(generation)
    try {
      const hook = generation.findHook(open.request.head.path)
      const delivery = readOpenDelivery(open, hook)
      if (delivery instanceof Problem) return await this.#leaveParked(generation, { open, record, decision: delivery })
      const deciding = this.#decide({ delivery, hook, generation })
      const decision = await deciding.catch(() => undefined)
      const maySkip = record.mappingId === undefined && isHookOpen(hook, delivery.admitted)
      if (decision !== undefined && isUnmatched(decision) && !maySkip)
        return await this.#leaveParked(generation, { open, record, decision })
      return await this.settleLate(deciding, delivery, generation, open.state)
    } finally {
      release()
    }
  }

  /** An edit deletes nothing that was accepted: the delivery stays parked until a mapping takes it. */
  async #leaveParked(
    generation: Generation,
    { open, record, decision }: Pick<UnmatchedDelivery, 'open' | 'record' | 'decision'>,
  ): Promise<string> {
    const { clock } = this.#parts
    const { path, method, headers } = open.request.head
    // the generation that decided, not the live one: a save that went live meanwhile runs the deliveries that another generation parked
    const unmatched = { open, record, decision, generation: generation.id, now: clock() }
    const settlement = buildUnmatchedSettlement(unmatched)
    const delivery = { ...record, id: open.deliveryId, path, method, headers }
    const waiting = { delivery, hook: generation.findHook(path), before: open.state }
    const isSettled = await this.#insist(open.deliveryId, () => this.#parts.settler.complete(waiting, settlement))
    return isSettled === false ? 'already settled' : settlement.state
  }

  /** Settles a delivery that is already stored. Never rejects: if the outcome cannot be stored, the delivery keeps its state. */
  settleLate(
    deciding: Promise<Decision>,
    delivery: Delivery,
    generation: Generation,
    before: 'pending' | 'parked' = 'pending',
  ): Promise<string> {
    return this.#track(delivery.id, this.#settle(deciding, { delivery, generation, before }))
  }

  async #settle(
    deciding: Promise<Decision>,
    { delivery, generation, before }: Pick<Deciding, 'delivery' | 'generation'> & { before: 'pending' | 'parked' },
  ): Promise<string> {
    const { store, settler, newId, log } = this.#parts
    const release = this.#parts.acquire(generation)
    try {
      const decision = await deciding
      const parts = await storeParts(parkRefusal(decision), delivery, {
        generation,
        newId,
        append: async (row) => {
          await this.claim([row.id])
          const appended = await this.#insist(delivery.id, () => store.append(row))
          if (appended.kind === 'duplicate') await this.release([row.id])
          return appended.kind === 'stored'
        },
      })
      const hook = generation.findHook(delivery.path)
      const state = await settler.settle(decision, this.#toSettling({ delivery, hook, generation }, before))
      if (parts.length > 0) void runPending(parts, { store, rerunner: this, log })
      return state
    } catch (error) {
      log.error(
        { err: error, deliveryId: delivery.id },
        'a waiting delivery could not be processed; it stays in its state',
      )
      return 'waiting'
    } finally {
      release()
      await this.release([delivery.id])
    }
  }

  /** The outcome is a text, as of `rerun`. */
  #toSettling({ delivery, hook, generation }: Deciding, before: 'pending' | 'parked'): Settling<string> {
    return {
      delivery,
      hook,
      generation,
      review: (decided) => {
        const decision = parkRefusal(decided)
        // the stop interrupted the code, so this is not a failure: the delivery runs again at the next start
        if (this.#stopping.aborted && decision.kind === 'park') return { outcome: 'waiting' }
        // the sender repeated a parked delivery after an edit, and no mapping takes it now
        if (before === 'parked' && isUnmatched(decision)) return { outcome: 'waiting' }
        return decision
      },
      write: async (settlement, _decision, moves) => {
        const complete = () => this.#parts.settler.complete({ delivery, hook, before }, settlement, moves)
        const settled = await this.#insist(delivery.id, complete)
        if (settled === 'moved') return settled
        return { isStored: settled, outcome: settled ? settlement.state : 'already settled' }
      },
      again: (deciding) => deciding,
    }
  }

  #decide(deciding: Deciding): Promise<Decision> {
    return new Promise((resolve) => {
      resolve(this.#parts.settler.decide(deciding))
    })
  }

  /** Tries again until the store accepts the write or the gateway stops: otherwise the delivery would wait for the next start. */
  async #insist<Result>(deliveryId: string, write: () => Promise<Result>): Promise<Result> {
    const { log } = this.#parts
    for (let failures = 0; ; failures += 1) {
      try {
        return await write()
      } catch (error) {
        if (this.#stopping.aborted) throw error
        const why = error instanceof Problem ? { why: error.message } : { err: error }
        log.warn(
          { deliveryId, ...why },
          'the outcome of a waiting delivery could not be stored; the gateway tries again',
        )
        await sleep(toBackoffMs(failures, backoff), undefined, { signal: this.#stopping }).catch(() => undefined)
      }
    }
  }
}

function buildDamagedRequest(deliveryId: string): Problem {
  return new Problem(
    'row-damaged',
    'Its request is damaged in the store: it does not have its checksum. Ask the sender to send it again, then drop it: ' +
      formatCommand`hookloom drop ${deliveryId}`,
  )
}

function toLeaseName(deliveryId: string): string {
  return `delivery/${deliveryId}`
}

/** The stored delivery, or the problem if no mapping can still read its body. */
function readOpenDelivery({ request, deliveryId, receivedAt }: ReadableDelivery, hook: Hook): Delivery | Problem {
  try {
    return buildDelivery(request.head, request.body, { hook, id: deliveryId, receivedAt })
  } catch (error) {
    if (error instanceof Problem) return error
    throw error
  }
}
