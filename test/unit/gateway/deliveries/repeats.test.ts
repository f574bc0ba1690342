import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { silentLog } from '../../../../src/base/log.ts'
import { Problem } from '../../../../src/core/model/problem.ts'
import { createRepeats } from '../../../../src/gateway/deliveries/repeats.ts'
import type { Repetition } from '../../../../src/store/records.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function createStage() {
  const written: (readonly Repetition[])[] = []
  const store = {
    isAway: false,
    async noteRepeats(repeats: readonly Repetition[]) {
      if (store.isAway) throw new Problem('store-unavailable', 'The disk is full.')
      written.push(repeats)
    },
  }
  let now = 0
  let counted = 0
  const repeats = createRepeats({ store, clock: () => (now += 1), meter: () => void (counted += 1), log: silentLog })
  const noteRepeat = (deliveryId: string, bodyDiffered = false) =>
    repeats.note({ deliveryId, bodyDiffered, method: 'POST', hook: 'in', label: 'in' })
  return { written, store, repeats, noteRepeat, counted: () => counted }
}

describe('repetitions of deliveries', () => {
  test('all repetitions within one second are one write, with one entry for each delivery', async () => {
    const { written, noteRepeat } = createStage()
    noteRepeat('a')
    noteRepeat('b')
    noteRepeat('a', true)
    noteRepeat('a')
    expect(written).toEqual([])
    await vi.advanceTimersByTimeAsync(1_000)
    expect(written).toEqual([
      [
        { deliveryId: 'a', times: 3, lastAt: 4, bodyDiffered: true },
        { deliveryId: 'b', times: 1, lastAt: 2, bodyDiffered: false },
      ],
    ])
    await vi.advanceTimersByTimeAsync(10_000)
    expect(written).toHaveLength(1)
  })

  test('repetitions wait while the store is unavailable, and are written later', async () => {
    const { written, store, noteRepeat } = createStage()
    store.isAway = true
    noteRepeat('a')
    await vi.advanceTimersByTimeAsync(3_000)
    noteRepeat('a')
    expect(written).toEqual([])
    store.isAway = false
    await vi.advanceTimersByTimeAsync(1_000)
    expect(written).toEqual([[{ deliveryId: 'a', times: 2, lastAt: 2, bodyDiffered: false }]])
  })

  test('a write waits for the one before it, and a stop waits for both', async () => {
    const { written, store, repeats, noteRepeat } = createStage()
    let endFirst = () => {}
    const { noteRepeats } = store
    store.noteRepeats = async (first) => {
      store.noteRepeats = noteRepeats
      await new Promise<void>((resolve) => (endFirst = resolve))
      await noteRepeats(first)
    }
    noteRepeat('a')
    await vi.advanceTimersByTimeAsync(1_000)
    noteRepeat('b')
    await vi.advanceTimersByTimeAsync(1_000)
    expect(written).toEqual([])
    const stopped = repeats.stop()
    endFirst()
    await stopped
    expect(written.flat().map(({ deliveryId }) => deliveryId)).toEqual(['a', 'b'])
  })

  test('a stop writes all repetitions, and an unavailable store does not delay it', async () => {
    const { written, store, repeats, noteRepeat } = createStage()
    for (let at = 0; at < 2_500; at += 1) noteRepeat(`d-${at}`)
    await repeats.stop()
    expect(written.map(({ length }) => length)).toEqual([1_000, 1_000, 500])
    store.isAway = true
    noteRepeat('late')
    await repeats.stop()
    expect(vi.getTimerCount()).toBe(0)
  })

  test('while the store is unavailable, the repetitions of ten thousand deliveries wait, and those of further deliveries are only counted', async () => {
    const { written, store, repeats, noteRepeat, counted } = createStage()
    store.isAway = true
    for (let at = 0; at < 12_000; at += 1) noteRepeat(`d-${at}`)
    noteRepeat('d-0')
    store.isAway = false
    await repeats.stop()
    expect(counted()).toBe(12_001)
    expect(written.flat()).toHaveLength(10_000)
    expect(written.flat()[0]).toMatchObject({ deliveryId: 'd-0', times: 2 })
  })
})
