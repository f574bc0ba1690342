// Runs waiting deliveries again: those that were pending when their gateway ended, and those that are parked.
import { setTimeout as sleep } from 'node:timers/promises'
import type { DeliveryRecord, OpenDelivery, NewJob, Settlement } from '../store/records.ts'
import type { CursorMoves } from '../store/cursors.ts'
import type { NamedLeases } from '../store/named-leases.ts'
import type { Store, Clock } from '../store/store.ts'
import { toBackoffMs } from '../base/retry.ts'
import type { Delivery } from '../model/delivery.ts'
import type { Log } from '../model/log.ts'
import type { Retain } from '../model/config/mapping.ts'
import { type Decision, parkRefusal, type StoredDecision } from '../pipeline/decision.ts'
import { decide } from '../pipeline/pipeline.ts'
import type { Generation } from '../pipeline/generation.ts'
import { type Hook, isHookOpen } from '../pipeline/hook.ts'
import { Problem } from '../model/problem.ts'
import { buildDelivery } from '../pipeline/delivery.ts'
import { createModuleState, listStateChanges, type ModuleState } from './module-state.ts'
import { movesCursors, writeDecision } from './once.ts'
import { walkWaiting } from './walk.ts'
import { runPending, storeParts } from './parts.ts'
import { logDelivery } from './log-lines.ts'
import type { OnDecided, OnParked } from './listeners.ts'
import { toSettlement } from './settlement.ts'
import { isUnmatched, buildUnmatchedSettlement, type UnmatchedDelivery } from './unmatched.ts'

type RerunnerParts = {
  readonly generation: () => Generation
  readonly acquire: (generation: Generation) => () => void
  readonly store: Store
  /** With leases, only one gateway runs a delivery at a time. Default: there is no other gateway. */
  readonly leases?: Pick<NamedLeases, 'take' | 'release'>
  readonly clock: Clock
  readonly newId: () => string
  /** See `toSettlement`. */
  readonly keepByDefault: Retain
  /** Called when jobs are stored, so that a worker claims them at once. `cancel`: the jobs that the delivery ends. */
  readonly lookForNew: (jobs: readonly NewJob[], cancel: Settlement['cancel']) => void
  /** Called when jobs are stored, after `lookForNew`. */
  readonly onAccepted: (jobs: readonly NewJob[]) => void
  readonly onParked?: OnParked
  readonly onDecided?: OnDecided
  /** Aborted when the gateway begins to stop. */
  readonly stopping?: AbortSignal
  readonly log: Log
}

/** A stored delivery, and the function that turns a decision about it into rows. */
type Settling = {
  readonly delivery: Delivery
  readonly generation: Generation
  readonly toRows: (decision: StoredDecision) => Settlement
}

const backoff = { firstMs: 200, capMs: 30_000 }

export class Rerunner {
  readonly #parts: RerunnerParts
  /** `context.state` of transforms. */
  readonly state: ModuleState
  readonly #stopping: AbortSignal
  readonly #leases: NonNullable<RerunnerParts['leases']>
  /** Deliveries that only this gateway may run now. */
  readonly #claimed = new Set<string>()
  /** Deliveries whose code runs now. */
  readonly #running = new Set<string>()

  constructor(parts: RerunnerParts) {
    this.#parts = parts
    this.state = createModuleState(parts)
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
    const { deliveryId: id } = open
    if (this.#running.has(id)) return 'waiting'
    this.#running.add(id)
    try {
      if (!this.#claimed.has(id)) await this.claim([id])
      // another gateway runs it
      if (!this.#claimed.has(id)) return 'waiting'
      const record = await this.#parts.store.delivery(id)
      // another gateway has settled it since it was read
      if (record?.state !== 'pending' && record?.state !== 'parked') return 'already settled'
      return await this.#rerunClaimed(open, record)
    } catch (error) {
      this.#parts.log.error({ err: error, deliveryId: id }, 'a waiting delivery cannot be read; it stays in its state')
      return 'waiting'
    } finally {
      this.#running.delete(id)
      await this.release([id])
    }
  }

  async #rerunClaimed(open: OpenDelivery, record: DeliveryRecord): Promise<string> {
    const { generation: current, acquire } = this.#parts
    const generation = current()
    const release = acquire(generation)
    try {
      const hook = generation.findHook(open.request.head.path)
      const delivery = readOpenDelivery(open, hook)
      if (delivery instanceof Problem) return await this.#leaveParked(generation, { open, record, decision: delivery })
      const deciding = this.#decide(delivery, generation)
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
    if ((await this.#settle(open.deliveryId, settlement)) === false) return 'already settled'
    const logged = { ...record, id: open.deliveryId, path, method, headers }
    const hook = generation.findHook(path)
    logDelivery(this.#parts, logged, settlement, { now: clock(), before: open.state, hook })
    return settlement.state
  }

  /** Settles a delivery that is already stored. Never rejects: if the outcome cannot be stored, the delivery keeps its state. */
  async settleLate(
    deciding: Promise<Decision>,
    delivery: Delivery,
    generation: Generation,
    before: 'pending' | 'parked' = 'pending',
  ): Promise<string> {
    const { clock, newId, lookForNew, onAccepted, keepByDefault, log } = this.#parts
    const release = this.#parts.acquire(generation)
    this.#running.add(delivery.id)
    try {
      const decided = await deciding
      const decision = parkRefusal(decided)
      // the stop interrupted the code, so this is not a failure: the delivery runs again at the next start
      if (this.#stopping.aborted && decision.kind === 'park') return 'waiting'
      // the sender repeated a parked delivery after an edit, and no mapping takes it now
      if (before === 'parked' && isUnmatched(decision)) return 'waiting'
      const toRows = (decided: StoredDecision) =>
        toSettlement(decided, delivery, { generation, newId, now: clock(), keepByDefault })
      const parts = await storeParts(decision, delivery, {
        generation,
        newId,
        append: async (row) => {
          await this.claim([row.id])
          const appended = await this.#insist(delivery.id, () => this.#parts.store.append(row))
          if (appended.kind === 'duplicate') await this.release([row.id])
          return appended.kind === 'stored'
        },
      })
      const settlement = await this.#settleDecision(decision, { delivery, generation, toRows })
      if (parts.length > 0) void runPending(parts, { store: this.#parts.store, rerunner: this, log })
      if (typeof settlement === 'string') return settlement
      lookForNew(settlement.jobs, settlement.cancel)
      onAccepted(settlement.jobs)
      this.#parts.onDecided?.(delivery, decided, generation)
      logDelivery(this.#parts, delivery, settlement, { now: clock(), before, hook: generation.findHook(delivery.path) })
      return settlement.state
    } catch (error) {
      log.error(
        { err: error, deliveryId: delivery.id },
        'a waiting delivery could not be processed; it stays in its state',
      )
      return 'waiting'
    } finally {
      this.#running.delete(delivery.id)
      release()
      await this.release([delivery.id])
    }
  }

  #decide(delivery: Delivery, generation: Generation): Promise<Decision> {
    const { newId } = this.#parts
    const { read: readState } = this.state
    const hook = generation.findHook(delivery.path)
    return new Promise((resolve) => {
      resolve(decide(delivery, { hook, config: generation.config, newId, serves: true, readState }))
    })
  }

  /** Runs the code again as long as other deliveries change the state that it read. Returns a text, as `rerun` does, if nothing was settled here. */
  async #settleDecision(decision: StoredDecision, settling: Settling): Promise<Settlement | string> {
    const { delivery, generation } = settling
    const changes = listStateChanges(decision)
    if (changes.length === 0) return (await this.#settleIfFresh(decision, settling)) ?? 'already settled'
    return this.state.runInTurn(changes, async () => {
      for (let current = decision; ;) {
        const settled = await this.#settleIfFresh(current, settling)
        if (settled !== 'stale') return settled ?? 'already settled'
        current = parkRefusal(await this.#decide(delivery, generation))
        if (this.#stopping.aborted && current.kind === 'park') return 'waiting'
      }
    })
  }

  /** Settles the delivery. Undefined if another gateway settled it; `stale` if the state that the code read has changed. */
  async #settleIfFresh(decision: StoredDecision, settling: Settling): Promise<Settlement | 'stale' | undefined> {
    const { delivery, toRows } = settling
    const settlement = toRows(decision)
    if (!movesCursors(decision)) return (await this.#settle(delivery.id, settlement)) === false ? undefined : settlement
    const parts = { ...this.#parts, state: this.state }
    const stored = await writeDecision(parts, { decision, deliveryId: delivery.id }, (moves) =>
      this.#settle(delivery.id, settlement, moves),
    )
    if (stored === 'stale') return stored
    if ('instead' in stored) return this.#settleIfFresh(stored.instead, settling)
    return stored.written ? settlement : undefined
  }

  #settle(deliveryId: string, settlement: Settlement, moves?: CursorMoves): Promise<boolean | 'moved'> {
    return this.#insist(deliveryId, () => this.#parts.store.settle(deliveryId, settlement, moves))
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

function toLeaseName(deliveryId: string): string {
  return `delivery/${deliveryId}`
}

/** The stored delivery, or the problem if no mapping can still read its body. */
function readOpenDelivery({ request, deliveryId, receivedAt }: OpenDelivery, hook: Hook): Delivery | Problem {
  try {
    return buildDelivery(request.head, request.body, { hook, id: deliveryId, receivedAt })
  } catch (error) {
    if (error instanceof Problem) return error
    throw error
  }
}
