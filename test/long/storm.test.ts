// Kills, pauses longer than a lease, restarts of the database and cut connections, while code changes; see storm.ts.
import { expect, test } from 'vitest'
import { whyNoCluster } from '../e2e/fleet.ts'
import { count } from '../counts.ts'
import { seed, withSeed } from '../seed.ts'
import { runStorm } from './storm.ts'

const skipped = whyNoCluster === undefined ? '' : ` (skipped: ${whyNoCluster})`
const faults = { kills: 30, restarts: 5, cuts: 20, pauses: 5 }

test.skipIf(whyNoCluster !== undefined)(
  `a storm over three gateways on one Postgres loses no acknowledged delivery, repeats no effect and keeps the order${skipped}`,
  { timeout: 1_200_000 },
  async (context) => {
    const { acknowledged, unknown, repeated } = await withSeed(() => runStorm({ seed, ...faults, rate: 25 }))
    expect(acknowledged).toBeGreaterThan(1_000)
    count(context, { acknowledged, lost: 0, twice: 0, ...faults, unknown, 'repeated turns': repeated })
  },
)
