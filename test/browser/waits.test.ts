// What waits says why, in the time zone of the reader, and is not called a failure.
import { expect, test } from 'vitest'
import { describeFilled } from './filled.ts'
import { findBarriers, openTab, shoot, startStage } from './stage.ts'

const wait = { timeout: 60_000 }
const timezoneId = 'Asia/Tokyo'
const mapping = { id: 'plain', match: { path: 'plain' }, messageTemplate: 'Say {{text}}', deliver: false, retain: true }
const config = {
  hooks: { mappings: [mapping] },
  budgets: { daily: { turns: 1, period: '1d', timezone: 'UTC' } },
  agents: { defaults: { budgets: ['daily'] }, list: [{ id: 'main', default: true }] },
}

describeFilled('what waits', (fill) => {
  test('a run that waits for a budget is not tried again, and every time of the page is that of the reader', async () => {
    const { dir } = await fill({ config })
    const stage = await startStage({ dir })
    try {
      const first = await stage.post('plain', { text: 'one' })
      const page = await stage.open({ timezoneId })
      await page.locator(`#row-${first}.done`).waitFor(wait)
      const second = await stage.post('plain', { text: 'two' })
      await page.locator(`#row-${second}`).getByText('for the budget daily').waitFor(wait)
      await page.locator(`#row-${second}`).click()
      const banner = page.getByRole('region', { name: 'Problem' })
      await banner.getByText('for the budget "daily"').waitFor(wait)
      const { budgets } = (await stage.ask('/api/budgets')) as { budgets: { endsAt: string }[] }
      const ends = new Date(budgets[0]?.endsAt ?? '')
      const clock = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium', timeZone: timezoneId }).format(ends)
      const said = await banner.innerText()
      expect(said).toMatch(/^waits for the budget "daily"/)
      expect(said).toMatch(new RegExp(`resets at (\\d+ \\w{3} )?${clock}\\.`))
      await openTab(page, 'Trace')
      await page.locator('.pipe').getByText(`waits until`).waitFor(wait)
      expect(await page.locator('body').innerText()).not.toMatch(/will be tried again|\d\d:\d\d(:\d\d(\.\d+)?)?Z/)
      // the age in the row, its title, and the trace are the same moment in the same zone
      const received = (await page.locator('.pipe time').first().innerText()).replace(/^.* /, '')
      for (const place of [page.locator(`#row-${second} time`), page.locator('.title time')]) {
        expect(await place.getAttribute('title')).toContain(received)
      }
      await shoot(page, 'waits')
      expect(await findBarriers(page)).toEqual([])
      expect(stage.errors).toEqual([])
    } finally {
      await stage.close()
    }
  })
})
