// Stores a decision together with the dedupe key that its transform set, and with its changes of `context.state`, in the transaction that
// stores the delivery. So two gateways cannot both accept one key.
import type { OnceKey } from '../../core/model/transform.ts'
import { type CursorMove, oncePrefix } from '../../store/cursors.ts'
import type { Clock, Store } from '../../store/store.ts'
import type { Decision } from '../../core/mapping/decision.ts'
import { listStateChanges, type ModuleState } from './module-state.ts'

type Accepted = Extract<Decision, { kind: 'accept' }>

/** The delivery that has the key, and the time until which it has the key, in milliseconds since the epoch. */
type Taken = { readonly deliveryId: string; readonly until: number }

export type DecisionParts = {
  readonly store: Pick<Store, 'cursor'>
  readonly state: Pick<ModuleState, 'planMoves' | 'noteStored'>
  readonly clock: Clock
}

/**
 * Stores a decision. `write` moves the cursors in its transaction, and returns `moved` if another delivery was first. If another delivery has
 * the dedupe key, returns a decision to store instead. If the state that the code read has changed, returns `stale`: the code must run again.
 * In both cases nothing is written.
 */
export async function writeDecision<Written>(
  { store, state, clock }: DecisionParts,
  { decision, deliveryId }: { readonly decision: Decision; readonly deliveryId: string },
  write: (moves: readonly CursorMove[]) => Promise<Written | 'moved'>,
): Promise<{ readonly written: Written } | { readonly instead: Extract<Decision, { kind: 'skip' }> } | 'stale'> {
  const changes = listStateChanges(decision)
  for (;;) {
    const moves: CursorMove[] = []
    if (decision.kind === 'accept' && decision.once !== undefined) {
      const { name: key, forMs } = decision.once
      const name = `${oncePrefix}${key}`
      const from = await store.cursor(name)
      const taken = readTaken(from)
      if (taken !== undefined && taken.until > clock() && taken.deliveryId !== deliveryId)
        return { instead: toSkippedDecision(decision, decision.once, taken) }
      moves.push({ name, from, to: `${clock() + forMs} ${deliveryId}`, ifStored: true })
    }
    const stateMoves = await state.planMoves(changes)
    if (stateMoves === undefined) return 'stale'
    const written = await write([...moves, ...stateMoves])
    if (written === 'moved') continue
    void state.noteStored(changes)
    return { written }
  }
}

function readTaken(value: string | undefined): Taken | undefined {
  const [, until, deliveryId] = /^(\d+) (.+)$/.exec(value ?? '') ?? []
  return until === undefined || deliveryId === undefined ? undefined : { until: Number(until), deliveryId }
}

/** The decision about a delivery whose key is taken: it is skipped, and its log says why. */
function toSkippedDecision(
  { mappingId, transformHash, retain, trace, log }: Accepted,
  { key }: OnceKey,
  { deliveryId, until }: Taken,
): Extract<Decision, { kind: 'skip' }> {
  const why = `a duplicate of ${deliveryId}, which has the dedupe key ${JSON.stringify(key)} until ${new Date(until).toISOString()}`
  return { kind: 'skip', isByCode: true, why, mappingId, transformHash, retain, trace, log: [...log, why] }
}
