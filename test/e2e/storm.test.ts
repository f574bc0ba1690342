// The short form of test/long/storm.test.ts.
import { expect, test } from 'vitest'
import { whyNoCluster } from './fleet.ts'
import { weather } from './storm.ts'

const skipped = whyNoCluster === undefined ? '' : ` (skipped: ${whyNoCluster})`
const seed = Number(process.env['HOOKLOOM_SEED'] ?? Date.now() % 1_000_000)

test.skipIf(whyNoCluster !== undefined)(
  `three gateways on one Postgres lose and repeat nothing while one is killed, the database restarts and code changes${skipped}`,
  { timeout: 180_000 },
  async () => {
    const count = await weather({ seed, kills: 2, restarts: 1, cuts: 3, pauses: 0, rate: 20 }).catch(
      (error: unknown) => {
        throw new Error(`It failed with HOOKLOOM_SEED=${seed}.`, { cause: error })
      },
    )
    expect(count).toBeGreaterThan(20)
  },
)
