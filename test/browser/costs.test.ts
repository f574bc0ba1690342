// What runs cost: the strip above the list and the view of two weeks, with a store that already has 5,000 deliveries, on each engine.
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import type { Store } from '../../src/store/store.ts'
import { claimOne } from '../contract/jobs.ts'
import { newDelivery, newJob } from '../contract/stage.ts'
import { describeFilled } from './filled.ts'
import { findBarriers, mappings, pricedModels, shoot, show, startStage, transform } from './stage.ts'

const wait = { timeout: 60_000 }
const files = { 'hooks/transforms/review.ts': transform }
const config = {
  hooks: { mappings },
  budgets: { daily: { usd: 2, period: '1d', timezone: 'UTC' } },
  models: pricedModels,
}

/** 5,000 runs of today, of which every tenth says what it used, then a dead one and one that waits. */
async function fillStore(store: Store): Promise<void> {
  const at = Date.now()
  for (let n = 0; n < 10; n += 1) {
    const some = Array.from({ length: 500 }, (_, place) => {
      const usage = { inputTokens: 1_000, outputTokens: 100 }
      const model = place % 20 === 0 ? 'mine/opus' : 'mine/free'
      const steps = [
        { name: 'run' as const, state: 'done' as const, at, ...(place % 10 === 0 ? { model, usage } : {}) },
      ]
      return newDelivery({ at, hook: place % 2 === 0 ? 'plain' : 'review', jobs: [newJob({ state: 'done', steps })] })
    })
    await store.appendAll(some, [])
  }
  await store.append(newDelivery({ at, hook: 'plain', jobs: [newJob()] }))
  await store.report(await claimOne(store), { outcome: { kind: 'dead', error: 'the model is gone' } })
  await store.append(newDelivery({ at, hook: 'plain', jobs: [newJob()] }))
  await store.report(await claimOne(store), { outcome: { kind: 'retry', error: 'busy', afterMs: 3_600_000 } })
}

describeFilled('what runs cost', (fill) => {
  test(
    'a strip above the list says what today was, and each of its parts leads to what it counts',
    { timeout: 240_000 },
    async () => {
      const { dir } = await fill({ config, work: fillStore })
      const stage = await startStage({ dir, files })
      try {
        const asked: string[] = []
        const page: Page = await stage.open()
        page.on('request', (request) => request.url().includes('/api/spending') && asked.push(request.url()))
        const strip = page.getByRole('navigation', { name: 'Today' })
        await strip.getByText('today 5,002').waitFor(wait)
        // 250 runs with a price, for 0.002 dollars each
        expect((await strip.getByRole('link').allInnerTexts()).slice(0, 4)).toEqual([
          'today 5,002',
          '2 failed',
          '0 wait',
          '$0.50 of $2.00',
        ])
        expect(await findBarriers(page)).toEqual([])
        await shoot(page, 'today')
        await strip.getByRole('link', { name: 'failed' }).click()
        await page.locator('.cause', { hasText: 'the model is gone' }).waitFor(wait)
        await strip.getByRole('link', { name: 'today' }).click()
        await page.getByRole('button', { name: 'Remove the filter of the time' }).waitFor(wait)
        // what arrives does not make the page count again
        await stage.post('plain', { text: 'one more' })
        await page.locator('.row', { hasText: 'one more' }).waitFor(wait)
        expect(asked.length).toBeLessThan(2)

        await strip.getByRole('link', { name: '$' }).click()
        const view = page.getByRole('region', { name: 'Costs', exact: true })
        await view.getByText('$0.50 today').waitFor(wait)
        await view.getByRole('link', { name: '14 days' }).click()
        await view.getByText('$0.50 in 14 days').waitFor(wait)
        // a day of the columns, and all days again
        await page.locator('.days a').first().click()
        await view.getByText('0 tokens on').waitFor(wait)
        await page.locator('.days a').first().click()
        await view.getByText('$0.50 in 14 days').waitFor(wait)
        const read = (title: string) =>
          page
            .getByRole('region', { name: `Costs by ${title}` })
            .locator('tbody tr')
            .allInnerTexts()
        const toCells = (rows: readonly string[]) => rows.map((row) => row.split('\t').map((cell) => cell.trim()))
        expect(toCells(await read('model'))).toEqual([
          ['mine/opus', '$0.50', '$0.0020', '250', '0', '250,000', '25,000'],
          ['mine/free', 'no price', '1,100 tokens', '250', '0', '250,000', '25,000'],
          ['not known', '–', '–', expect.stringMatching(/^4,50\d$/), '2', '0', '0'],
        ])
        expect(toCells(await read('hook'))[0]).toEqual([
          'plain',
          '$0.50',
          '$0.0020',
          expect.stringMatching(/^2,50\d$/),
          '2',
          '500,000',
          '50,000',
        ])
        expect(await page.locator('.days li').count()).toBe(14)
        expect(await page.locator('.days li').last().innerText()).toContain('$0.50')
        for (const [width, colorScheme] of [
          [360, 'dark'],
          [860, 'light'],
          [1_440, 'dark'],
          [2_560, 'light'],
        ] as const) {
          await page.setViewportSize({ width, height: 900 })
          await page.emulateMedia({ colorScheme })
          expect(await findBarriers(page)).toEqual([])
          expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
          await shoot(page, `costs-${width}`)
        }
        await page.getByRole('region', { name: 'Costs by hook' }).getByRole('link', { name: 'review' }).click()
        await page.locator('.row', { hasText: 'review' }).first().waitFor(wait)
        await show(page, 'view=list')
        await page.setViewportSize({ width: 360, height: 740 })
        await strip.waitFor(wait)
        expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
        await shoot(page, 'today-360')
        expect(stage.errors).toEqual([])
      } finally {
        await stage.close()
      }
    },
  )
})
