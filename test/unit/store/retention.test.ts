// When old deliveries are deleted, and by which gateway.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { silentLog } from '../../../src/model/log.ts'
import { createRetention } from '../../../src/store/retention.ts'
import { createMemoryStore } from '../../../src/store/sqlite/sqlite.ts'

const day = 86_400_000

beforeEach(() => void vi.useFakeTimers({ now: 40 * day }))
afterEach(() => void vi.useRealTimers())

test('old deliveries are deleted a minute after the start and every hour, by the gateway that has the retention duty', async () => {
  const store = createMemoryStore({ clock: Date.now })
  const swept: number[] = []
  const sweep = async (olderThanMs: number) => {
    swept.push(olderThanMs)
    return 0
  }
  let isHeld = false
  const pruned: number[] = []
  const pruneAudit = async (olderThanMs: number) => {
    pruned.push(olderThanMs)
    return 0
  }
  const days = () => ({ retainDays: 30, retainAuditDays: 400 })
  const parts = { store: { ...store, sweep, pruneAudit }, days, log: silentLog }
  const retention = createRetention({ ...parts, duty: { isHeld: () => isHeld } })
  await vi.advanceTimersByTimeAsync(3 * 3_600_000 - 1)
  expect(swept).toEqual([])
  isHeld = true
  await vi.advanceTimersByTimeAsync(1)
  expect([swept, pruned]).toEqual([[30 * day], [400 * day]])
  await retention.stop()
  const another = createRetention({ ...parts, duty: { isHeld: () => true } })
  await vi.advanceTimersByTimeAsync(60_000)
  expect(swept).toHaveLength(2)
  await another.stop()
})
