// The list is a contiguous part of the store: after a restart, with 5,000 deliveries, and with two gateways on one store.
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { newId } from '../../src/base/id.ts'
import { newDelivery, newJob, parked } from '../contract/stage.ts'
import { describeFilled } from './filled.ts'
import { shoot, show, startStage, type Stage, transform } from './stage.ts'

const wait = { timeout: 60_000 }
const files = { 'hooks/transforms/review.ts': transform }
const stored = 5_400

/** The oldest one is parked and waits for nothing that a gateway could do. */
function buildDeliveries() {
  const start = Date.now() - 86_400_000
  return Array.from({ length: stored }, (_, n) => {
    const at = start + n * 10_000
    const id =
      at
        .toString(16)
        .padStart(12, '0')
        .replace(/^(.{8})/, '$1-') + newId().slice(13)
    const state = n === 0 ? parked({ mappingId: 'plain', waitsFor: undefined }) : { jobs: [newJob({ state: 'done' })] }
    return newDelivery({ at, id, hook: 'plain', ...state })
  })
}

const countRows = (page: Page) =>
  page
    .locator('.rows .row')
    .first()
    .getAttribute('aria-setsize')
    .then(Number, () => 0)
const scrollDown = (page: Page) => page.evaluate("document.getElementById('list').scrollTop = 1e7")

describeFilled('the list as a part of the store', (fill) => {
  test('a changed old delivery gets no row below the newest ones, the list says how many are older, goes on after 5,000, and has what another gateway takes', async () => {
    const deliveries = buildDeliveries()
    const { dir, another } = await fill({ deliveries })
    const stages: Stage[] = [await startStage({ dir, files })]
    const [stage] = stages
    if (another !== undefined) stages.push(await startStage({ dir: another(), files }, stage?.browser))
    try {
      const page = await stage?.open()
      if (stage === undefined || page === undefined) throw new Error('no page')
      const end = page.locator('.list-end')
      // one row of the list is the heading of a day at most
      await end.getByText('5,200 older.').waitFor(wait)
      const before = await countRows(page)
      expect(before).toBeGreaterThanOrEqual(200)
      await stage.ask(`/api/deliveries/${deliveries[0]?.id}/drop`, 'POST')
      await end.getByText('One of them changed: show it').waitFor(wait)
      expect([await countRows(page), await page.locator(`#row-${deliveries[0]?.id}`).count()]).toEqual([before, 0])
      await shoot(page, 'range-below')
      await end.getByRole('link', { name: 'show it' }).click()
      await page.locator('#detail').getByText('dropped').first().waitFor(wait)
      await show(page, '')

      // a new delivery, of the other gateway if there is one, comes to the top and ends in sight
      const id = (await stages.at(-1)?.post('plain', { text: 'from another' })) ?? ''
      await page.locator(`#row-${id}.done`).waitFor(wait)
      await expect
        .poll(async () => (await scrollDown(page), end.innerText()), wait)
        .toMatch(/^40[01] older. show 40[01] more/)
      await shoot(page, 'range-full')
      await end.getByRole('button', { name: /^show 40[01] more$/ }).click()
      await expect
        .poll(async () => (await scrollDown(page), page.locator(`#row-${deliveries[0]?.id}`).count()), wait)
        .toBe(1)
      // every delivery has a row; the others are headings of days
      const rows =
        (await countRows(page)) -
        (await page.evaluate<number>(
          'new Set([...Array(2)].map((_, n) => new Date(Date.now() - n * 864e5).toDateString())).size - 1',
        ))
      expect(rows).toBe(stored + 1)
      expect(await end.count()).toBe(0)
      expect(stages.flatMap(({ errors }) => errors)).toEqual([])
    } finally {
      for (const each of stages.toReversed()) await each.close()
    }
  })
})
