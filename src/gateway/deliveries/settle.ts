// Settles deliveries: decides, and stores the decision together with the state and the dedupe key that it is based on. If another delivery was first,
// the code runs again until its decision is based on the newest values.
import { forgetPayload } from '../../core/model/body.ts'
import type { Retain } from '../../core/model/mapping.ts'
import type { Delivery } from '../../core/model/delivery.ts'
import { Problem } from '../../core/model/problem.ts'
import type { Answer } from '../../core/mapping/answer.ts'
import type { Decision, StoredDecision } from '../../core/mapping/decision.ts'
import type { Generation } from '../generation/generation.ts'
import type { Hook } from '../../core/mapping/hook.ts'
import { decide } from '../../core/mapping/pipeline.ts'
import type { CursorMove } from '../../store/cursors.ts'
import type { Appended, DedupeKey, NewDelivery, Settlement } from '../../store/records.ts'
import type { Clock, Store } from '../../store/store.ts'
import { toRepeatedAnswer } from './answers.ts'
import type { Arriving, OnDecided, OnRepeated, OnStored, Waiting } from './listeners.ts'
import { listStateChanges, type ModuleState } from './module-state.ts'
import { writeDecision } from './once.ts'
import { toDeliveryRow, toSettlement } from './settlement.ts'

type SettlerParts = {
  readonly store: Pick<Store, 'append' | 'appendAll' | 'claimsAppended' | 'settle' | 'cursor'>
  /** `context.state` of transforms. */
  readonly state: ModuleState
  readonly clock: Clock
  readonly newId: () => string
  /** See `toSettlement`. */
  readonly keepByDefault: Retain
  /** Called while jobs are being stored, if a claim can already find them; otherwise when they are stored. `cancel`: the jobs that the delivery ends. */
  readonly lookForNew: (jobs: Settlement['jobs'], cancel: Settlement['cancel']) => void
  readonly onStored: OnStored
  readonly onRepeated: OnRepeated
  readonly onDecided: OnDecided
}

/** A delivery, and the parts that its decision needs. */
export type Deciding = { readonly delivery: Delivery; readonly hook: Hook; readonly generation: Generation }

/** `isStored`: this call, and no other request or gateway, has stored the delivery or its outcome. */
type Written<Outcome> = { readonly isStored: boolean; readonly outcome: Outcome }

/** How a delivery is settled: for a sender that waits for the answer, or for nobody. */
export type Settling<Outcome> = Deciding & {
  /** The decision to store; the problem with which the request is refused; or the outcome of a delivery that stays as it is. */
  review(decision: Decision): StoredDecision | Problem | { readonly outcome: Outcome }
  /** Calls `store`, unless the queue of an action is full. */
  readonly inQueue?: <Result>(decision: Decision, store: () => Promise<Result>) => Promise<Result>
  /** Stores the rows of a decision. `moved`: nothing is stored, because a cursor of `moves` has another value. */
  write(
    settlement: Settlement,
    decision: StoredDecision,
    moves: readonly CursorMove[],
  ): Promise<Written<Outcome> | 'moved'>
  /** Waits for code that runs again. Returns the outcome of a delivery that is settled later. */
  again(deciding: Promise<Decision>): Promise<Decision | { readonly outcome: Outcome }>
}

type ArrivingRow = Arriving & { readonly dedupe: DedupeKey | undefined }
type FirstOutcome = { readonly settlement: Settlement; readonly answer: Answer }

export type Settler = {
  decide(deciding: Deciding): Decision | Promise<Decision>
  /** Stores a decision, or the one that replaces it. Throws the refusal of `review`. */
  settle<Outcome>(decision: Decision, settling: Settling<Outcome>): Promise<Outcome>
  /** Stores a new delivery, and returns its answer. `moved`: nothing is stored, because a cursor of `moves` has another value. */
  append(arriving: ArrivingRow, first: FirstOutcome): Promise<Written<Answer>>
  append(arriving: ArrivingRow, first: FirstOutcome, moves: readonly CursorMove[]): Promise<Written<Answer> | 'moved'>
  /** Stores the outcome of a delivery that has a row. Resolves to false if another request or gateway has settled it. */
  complete(waiting: Waiting, settlement: Settlement, moves?: readonly CursorMove[]): Promise<boolean | 'moved'>
}

export function createSettler(parts: SettlerParts): Settler {
  const { store, state, clock, newId, keepByDefault, lookForNew, onStored, onRepeated, onDecided } = parts

  function decideNow({ delivery, hook }: Deciding): Decision | Promise<Decision> {
    return decide(delivery, { hook, newId, serves: true, readState: state.read })
  }

  async function settleFresh<Outcome>(decision: Decision, settling: Settling<Outcome>): Promise<Outcome> {
    const { delivery, generation, inQueue, again } = settling
    for (let current = decision; ;) {
      const attempt = () => storeIfFresh(current, settling)
      const written = await (inQueue === undefined ? attempt() : inQueue(current, attempt))
      if (written !== 'stale') {
        if (written.isStored) onDecided(delivery, current, generation)
        return written.outcome
      }
      const next = await again(Promise.resolve(decideNow(settling)))
      if ('outcome' in next) return next.outcome
      current = next
    }
  }

  /** `stale`: nothing is stored, because other deliveries have changed the state that the decision is based on. */
  async function storeIfFresh<Outcome>(
    decision: Decision,
    settling: Settling<Outcome>,
  ): Promise<Written<Outcome> | 'stale'> {
    const { delivery, generation } = settling
    const reviewed = settling.review(decision)
    if (reviewed instanceof Problem) {
      onDecided(delivery, decision, generation)
      throw reviewed
    }
    if ('outcome' in reviewed) return { isStored: false, outcome: reviewed.outcome }
    const settlement = toSettlement(reviewed, delivery, { generation, newId, now: clock(), keepByDefault })
    // every object that waits for the disk is copied by each garbage collection
    forgetPayload(delivery.body)
    const given = { decision: reviewed, deliveryId: delivery.id }
    const stored = await writeDecision({ store, clock, state }, given, (moves) =>
      settling.write(settlement, reviewed, moves),
    )
    if (stored === 'stale') return stored
    return 'written' in stored ? stored.written : storeIfFresh(stored.instead, settling)
  }

  function append(arriving: ArrivingRow, first: FirstOutcome): Promise<Written<Answer>>
  function append(
    arriving: ArrivingRow,
    first: FirstOutcome,
    moves: readonly CursorMove[],
  ): Promise<Written<Answer> | 'moved'>
  async function append(
    { delivery, hook, client, isLate, dedupe }: ArrivingRow,
    { settlement, answer }: FirstOutcome,
    moves: readonly CursorMove[] = [],
  ): Promise<Written<Answer> | 'moved'> {
    const row = toDeliveryRow(delivery, { settlement, answer, dedupe })
    const appended = await (moves.length === 0 ? appendAlone(row) : appendMoving(row, moves))
    if (appended === 'moved') return appended
    if (appended.kind === 'duplicate') {
      onRepeated({ delivery, hook, client, isLate, first: appended.first })
      return { isStored: false, outcome: toRepeatedAnswer(appended.first) }
    }
    onStored({ kind: 'new', delivery, hook, client, isLate, settlement, at: clock() })
    return { isStored: true, outcome: answer }
  }

  async function appendAlone(row: NewDelivery): Promise<Appended> {
    const claimsAppended = store.claimsAppended()
    const appending = store.append(row)
    if (claimsAppended) lookForNew(row.jobs, row.cancel)
    const appended = await appending
    if (!claimsAppended) lookForNew(row.jobs, row.cancel)
    return appended
  }

  async function appendMoving(row: NewDelivery, moves: readonly CursorMove[]): Promise<Appended | 'moved'> {
    const appended = await store.appendAll([row], moves)
    if (appended === 'moved') return appended
    lookForNew(row.jobs, row.cancel)
    return appended[0] ?? { kind: 'stored' }
  }

  return {
    decide: decideNow,
    settle(decision, settling) {
      const changes = listStateChanges(decision)
      if (changes.length === 0) return settleFresh(decision, settling)
      return state.runInTurn(changes, () => settleFresh(decision, settling))
    },
    append,
    async complete({ delivery, hook, before }, settlement, moves = []) {
      const settled = await store.settle(delivery.id, settlement, moves)
      if (settled !== true) return settled
      lookForNew(settlement.jobs, settlement.cancel)
      onStored({ kind: 'settled', delivery, hook, before, settlement, at: clock() })
      return settled
    },
  }
}
