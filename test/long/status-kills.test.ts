// A thousand series from seeds: kills of the gateway, faults of GitHub or GitLab, and runs that fail or are cancelled, at the steps that set a commit status.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { findStatusFaults } from '../unit/gateway/jobs/status-stage.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

test.each(['github', 'gitlab'] as const)(
  'no seeded series of kills leaves a commit status of %s pending or sets it twice',
  { timeout: 1_200_000 },
  async (forge) => {
    const faults: string[] = []
    for (let seed = 1; seed <= 1_000; seed += 1) faults.push(...(await findStatusFaults(seed, forge)))
    expect(faults).toEqual([])
  },
)
