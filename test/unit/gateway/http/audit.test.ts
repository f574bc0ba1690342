import { expect, test, vi } from 'vitest'
import { createAuditor } from '../../../../src/gateway/http/audit.ts'
import { silentLog } from '../../../../src/base/log.ts'
import type { Store } from '../../../../src/store/store.ts'

const by = { kind: 'command', name: 'a test' } as const

test.each(Array.from({ length: 12 }, (_, index) => index + 1))(
  'an entry is stored even if it is noted %i microtasks after the store took the previous entry',
  async (ticks) => {
    const stored: string[] = []
    const audit: Store['audit'] = async (entry) => {
      if (stored.push(entry.act) === 1) void noteLater()
      return { number: stored.length, at: 0, entry: '', hash: '' }
    }
    const auditor = createAuditor({ store: { audit }, gateway: 'a', isLoggedAsInfo: false, log: silentLog })
    const noteLater = async () => {
      for (let tick = 0; tick < ticks; tick += 1) await undefined
      auditor.note({ by, act: 'second', outcome: 'done' })
    }
    auditor.note({ by, act: 'first', outcome: 'done' })
    await vi.waitFor(() => expect(stored).toEqual(['first', 'second']), { timeout: 1_000 })
  },
)
