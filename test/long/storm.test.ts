// Kills, pauses longer than a lease, restarts of the database and cut connections, while code changes; see storm.ts.
import { expect, test } from 'vitest'
import { whyNoCluster } from '../e2e/fleet.ts'
import { runStorm } from './storm.ts'

const skipped = whyNoCluster === undefined ? '' : ` (skipped: ${whyNoCluster})`
const seed = Number(process.env['HOOKLOOM_SEED'] ?? Date.now() % 1_000_000)

test.skipIf(whyNoCluster !== undefined)(
  `a storm over three gateways on one Postgres loses no acknowledged delivery, repeats no effect and keeps the order${skipped}`,
  { timeout: 1_200_000 },
  async () => {
    const count = await runStorm({ seed, kills: 30, restarts: 5, cuts: 20, pauses: 5, rate: 25 }).catch(
      (error: unknown) => {
        throw new Error(`It failed with HOOKLOOM_SEED=${seed}.`, { cause: error })
      },
    )
    expect(count).toBeGreaterThan(1_000)
  },
)
