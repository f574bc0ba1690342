// The counts of the last hour: they come from the store, so they survive a restart and are those of all gateways.
import { expect, test } from 'vitest'
import { newDelivery, parked } from '../contract/stage.ts'
import { describeFilled } from './filled.ts'
import { startStage, type Stage, transform } from './stage.ts'

const wait = { timeout: 60_000 }
const minuteMs = 60_000
const files = { 'hooks/transforms/review.ts': transform }

/** 5,000 deliveries of the last fifty minutes, and two that are older. */
function buildHour() {
  const now = Date.now()
  const buildOne = (minutes: number, n: number) =>
    newDelivery({
      at: now - minutes * minuteMs + n,
      id: `${n}`.padStart(8, '0'),
      hook: 'plain',
      ...(n % 1_000 === 7 ? parked({ mappingId: 'plain', waitsFor: undefined }) : {}),
    })
  return [
    buildOne(2_000, 0),
    buildOne(70, 1),
    ...Array.from({ length: 5_000 }, (_, n) => buildOne(50 - n / 100, n + 2)),
  ]
}

describeFilled('the last hour after a restart', (fill) => {
  test('5,000 deliveries that an earlier process stored are counted, and what only the memory has says since when', async () => {
    const { dir, another } = await fill({ deliveries: buildHour() })
    const stages: Stage[] = [await startStage({ dir, files })]
    if (another !== undefined) stages.push(await startStage({ dir: another(), files }, stages[0]?.browser))
    const [stage] = stages
    try {
      const page = await stage?.open({ hash: 'view=hooks' })
      const card = page?.getByRole('article', { name: 'Hook plain' })
      await card?.getByText('In the last hour: 5,000 deliveries, 5 parked.').waitFor(wait)
      // a delivery that another gateway takes counts too
      await stages.at(-1)?.post('plain', { text: 'new' })
      await page?.reload()
      await card?.getByText('In the last hour: 5,001 deliveries, 5 parked.').waitFor(wait)
      await stage?.post('plain', '{"text":')
      await page?.reload()
      await card?.getByText(/In the last hour: 5,001 deliveries, 5 parked\. Since \d\d:\d\d: 1 refused\./).waitFor(wait)
      await page?.getByRole('navigation', { name: 'Views' }).getByRole('link', { name: 'health' }).click()
      const hour = page?.getByRole('region', { name: 'The last hour' })
      await hour?.getByText(/refused since \d\d:\d\d/).waitFor(wait)
      await hour?.getByText(/^Runs a minute since \d\d:\d\d/).waitFor(wait)
      expect((await hour?.locator('.legend').first().innerText())?.replaceAll(/\s+/g, ' ')).toMatch(
        /accepted 4,996 skipped 0 parked 5/,
      )
      expect(stages.flatMap(({ errors }) => errors)).toEqual([])
    } finally {
      for (const each of stages.toReversed()) await each.close()
    }
  })
})
