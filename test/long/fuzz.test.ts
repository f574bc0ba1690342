// The campaigns of `property/fuzz.test.ts` for a minute in all, or `HOOKLOOM_FUZZ_SECONDS`.
import { beforeAll, expect, test } from 'vitest'
import { count } from '../counts.ts'
import { readDeliveryId } from '../e2e/answers.ts'
import { post } from '../e2e/wire.ts'
import { createTargets, targetNames } from '../property/fuzz-targets.ts'
import { runCampaign } from '../property/mutations.ts'
import { seed } from '../seed.ts'

const eachMs = (Number(process.env['HOOKLOOM_FUZZ_SECONDS'] ?? 60) * 1_000) / targetNames.length
let made: Awaited<ReturnType<typeof createTargets>>

beforeAll(async () => {
  made = await createTargets()
})

for (const name of targetNames) {
  test(`no change of ${name} breaks a promise`, { timeout: 2 * eachMs + 120_000 }, async (context) => {
    const target = made.targets.get(name)
    if (target === undefined) throw new Error('there is no such target')
    const end = performance.now() + eachMs
    const { done, fault } = await runCampaign(target, { seed, goesOn: () => performance.now() < end })
    expect({ seed, fault }).toEqual({ seed, fault: undefined })
    readDeliveryId(await post(made.gateway.port, '/hooks/wake', { text: 'x' }))
    count(context, { changed: done })
  })
}
