import { describe, expect, test } from 'vitest'
import type { StoredDelivery } from '../../../../src/gateway/deliveries/listeners.ts'
import { createModuleState } from '../../../../src/gateway/deliveries/module-state.ts'
import { createSettler, type Settling } from '../../../../src/gateway/deliveries/settle.ts'
import { silentLog } from '../../../../src/base/log.ts'
import { Problem } from '../../../../src/core/model/problem.ts'
import type { Decision, StoredDecision } from '../../../../src/core/mapping/decision.ts'
import type { StateChange } from '../../../../src/core/mapping/state.ts'
import { createMemoryStore } from '../../../../src/store/sqlite/sqlite.ts'
import { toGeneration, toTestDelivery, toTestId } from '../../core/mapping/decide.ts'

const generation = toGeneration([{ match: { path: 'in' }, messageTemplate: 'Say {{text}}' }])
const reasons = { mappingId: 'mapping-1', transformHash: 'a', retain: undefined, trace: [], log: [] }

function toSkip(why: string, state: readonly StateChange[] = []): StoredDecision {
  return { ...reasons, kind: 'skip', isByCode: true, why, state }
}

function openStage() {
  const clock = () => 1_700_000_000_000
  const store = createMemoryStore({ clock })
  const state = createModuleState({ store, clock, log: silentLog })
  const stored: StoredDelivery[] = []
  const decided: Decision[] = []
  const settler = createSettler({
    store,
    state,
    clock,
    newId: toTestId,
    keepByDefault: false,
    lookForNew() {},
    onStored: (each) => void stored.push(each),
    onRepeated() {},
    onDecided: (_delivery, decision) => void decided.push(decision),
  })
  /** Settles a new delivery. `again`: the decision of the code when it runs again. */
  const settle = (decision: Decision, again: Decision[] = []) => {
    const delivery = { ...toTestDelivery('in', { text: 'hi' }), id: toTestId() }
    const hook = generation.findHook('in')
    const settling: Settling<string | undefined> = {
      delivery,
      hook,
      generation,
      review: (each) => (each.kind === 'refuse' ? each.problem : each),
      async write(settlement, reviewed, moves) {
        const arriving = { delivery, hook, client: '', isLate: false, dedupe: undefined }
        const answer = { status: 200, body: reviewed.kind === 'skip' ? reviewed.why : '' }
        const written = await settler.append(arriving, { settlement, answer }, moves)
        return written === 'moved' ? written : { ...written, outcome: written.outcome.body }
      },
      again: async () => again.shift() ?? { outcome: 'later' },
    }
    return settler.settle(decision, settling)
  }
  return { store, state, stored, decided, settle }
}

describe('a decision that is based on state', () => {
  const name = { module: 'a.ts', key: 'k' }

  test('a decision that read an old value is not stored: the code runs again, and its next decision is', async () => {
    const { state, stored, decided, settle } = openStage()
    const read = await state.read(name)
    const old = toSkip('old', [{ ...name, json: '1', forMs: 60_000, read }])
    expect(await settle(old)).toBe('old')
    const fresh = toSkip('fresh', [{ ...name, json: '2', forMs: 60_000, read: await state.read(name) }])
    expect(await settle(old, [fresh])).toBe('fresh')
    expect(await state.read(name)).toMatchObject({ json: '2' })
    expect(decided).toEqual([old, fresh])
    expect(stored).toHaveLength(2)
  })

  test('a delivery whose code takes too long to run again is settled later, and no listener is told of it now', async () => {
    const { state, stored, decided, settle } = openStage()
    const read = await state.read(name)
    const old = toSkip('old', [{ ...name, json: '1', forMs: 60_000, read }])
    await settle(old)
    expect(await settle(old)).toBe('later')
    expect([stored.length, decided.length]).toEqual([1, 1])
  })
})

test('a refusal stores nothing, and only the listeners of decisions are told of it', async () => {
  const { store, stored, decided, settle } = openStage()
  const problem = new Problem('payload-invalid', 'no')
  const refusal: Decision = { ...reasons, kind: 'refuse', problem }
  await expect(settle(refusal)).rejects.toBe(problem)
  expect(decided).toEqual([refusal])
  expect(stored).toEqual([])
  expect((await store.counts()).deliveries).toMatchObject({ accepted: 0, skipped: 0, parked: 0 })
})
