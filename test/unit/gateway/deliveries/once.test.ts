import { describe, expect, test } from 'vitest'
import { readDurationMs } from '../../../../src/base/time.ts'
import { createModuleState } from '../../../../src/gateway/deliveries/module-state.ts'
import { writeDecision } from '../../../../src/gateway/deliveries/once.ts'
import { silentLog } from '../../../../src/base/log.ts'
import type { Decision } from '../../../../src/core/mapping/decision.ts'
import { createMemoryStore } from '../../../../src/store/sqlite/sqlite.ts'
import { newDelivery } from '../../../contract/stage.ts'

const hour = 3_600_000
const once = { name: 'issue.ts/hash', key: 'issue:1', forMs: hour }

function toDecision(key: typeof once): Decision {
  const reasons = { mappingId: 'm', transformHash: undefined, retain: undefined, trace: [], log: [] }
  return { kind: 'accept', actions: [], response: undefined, once: key, ...reasons }
}

const taken = (by: string, until: number) =>
  `a duplicate of ${by}, which has the dedupe key "issue:1" until ${new Date(until).toISOString()}`

function openStage() {
  let now = 1_700_000_000_000
  const clock = () => now
  const store = createMemoryStore({ clock })
  const parts = { store, clock, state: createModuleState({ store, clock, log: silentLog }) }
  const write = async (deliveryId: string, key = once) => {
    const stored = await writeDecision(parts, { decision: toDecision(key), deliveryId }, async (moves) =>
      (await store.appendAll([newDelivery({ at: now })], moves)) === 'moved' ? 'moved' : deliveryId,
    )
    return stored !== 'stale' && 'instead' in stored ? stored.instead.why : stored
  }
  return { store, write, pass: (ms: number) => void (now += ms) }
}

describe('the dedupe key of an action', () => {
  test('the dedupe key of an action is taken until it expires, and free again afterwards', async () => {
    const { write, pass } = openStage()
    expect(await write('a')).toEqual({ written: 'a' })
    pass(hour - 1)
    expect(await write('b')).toBe(taken('a', 1_700_000_000_000 + hour))
    pass(1)
    expect(await write('c')).toEqual({ written: 'c' })
    expect(await write('d')).toContain('a duplicate of c')
  })

  test('an expiry with a fraction of a millisecond is rounded, so that the key can be read again', async () => {
    const { write } = openStage()
    const forMs = readDurationMs('1.0592581m') ?? 0
    await write('a', { ...once, forMs })
    expect(await write('b', { ...once, forMs })).toContain('a duplicate of a')
  })

  test('the delivery that has a dedupe key may be stored again, because the result of its first commit may be unknown', async () => {
    const { write } = openStage()
    await write('a')
    expect(await write('a')).toEqual({ written: 'a' })
  })

  test('of several deliveries with one dedupe key at the same moment, only one gets the key, and the same key of another module is free', async () => {
    const { write } = openStage()
    const all = await Promise.all(['a', 'b', 'c', 'd'].map((id) => write(id)))
    expect(all.filter((each) => typeof each === 'object')).toHaveLength(1)
    expect(await write('e', { ...once, name: 'other.ts/hash' })).toEqual({ written: 'e' })
  })
})
