// Who changed what, in the view of acts: after a restart too, with the files that a save changed.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { describeFilled } from './filled.ts'
import { findBarriers, shoot, show, startStage, type Stage, transform } from './stage.ts'

const wait = { timeout: 60_000 }
const module = 'hooks/transforms/review.ts'
const operator = 'operator-token-0123456789abcdef-012'
const config = {
  hooks: {
    mappings: [
      { id: 'review', match: { path: 'review' }, transform: { module: 'review.ts' }, deliver: false, retain: true },
    ],
  },
  budgets: { daily: { turns: 5 } },
  tokens: { ops: { token: operator, may: ['operate'] } },
}

async function act({ gateway }: Stage, path: string, body: object = {}, token = operator): Promise<number> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const answer = await fetch(`${gateway.adminUrl}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  await answer.arrayBuffer()
  return answer.status
}

const row = (page: Page, text: string | RegExp) => page.locator('.act', { hasText: text })
const open = (stage: Stage, hash = 'view=acts') => stage.open({ hash })

describeFilled('the view of acts', (fill) => {
  test('acts stand there with their actor, target and outcome, and a save with its diff, after a restart too', async () => {
    const { dir } = await fill({ config })
    const files = { [module]: transform }
    const first = await startStage({ dir, files })
    let stage = first
    try {
      const parked = await first.post('review', { title: 'one', bad: true })
      for (const title of ['two', 'three']) await first.post('review', { title })
      const readGeneration = async () => (await first.ask('/api/health'))['generation']
      const before = await readGeneration()
      writeFileSync(join(dir, module), transform.replace("'Review '", "'Look at <b>\u202E '"))
      await expect.poll(readGeneration, wait).not.toBe(before)
      expect(await act(first, '/api/pauses', { what: 'all', reason: 'a release', by: 'ada' })).toBe(200)
      expect(await act(first, '/api/resume', { what: 'all', by: 'ada' })).toBe(200)
      expect(await act(first, '/api/budgets/daily/raise?turns=3')).toBe(200)
      expect(await act(first, `/api/deliveries/${parked}/retry`)).toBe(200)
      expect(await act(first, '/api/pauses', { what: 'mapping:none' })).toBe(404)
      expect(await act(first, '/api/publish')).toBe(401)

      for (const at of ['before', 'after'] as const) {
        const page = await open(stage)
        await row(page, /tokens\.ops paused all by: ada, reason: a release/).waitFor(wait)
        await row(page, /tokens\.ops resumed all/).waitFor(wait)
        await row(page, /tokens\.ops raised the budget daily turns: 3/).waitFor(wait)
        await row(page, /tokens\.ops paused mapping:none\s+refused: /).waitFor(wait)
        await row(page, /tokens\.ops published the save that waited\s+refused: /).waitFor(wait)
        await row(page, /gateway\.token made a code for the page/)
          .first()
          .waitFor(wait)
        await row(page, /opened the page as/)
          .first()
          .waitFor(wait)
        // an act with two entries is one row, and the newest is first
        expect(await row(page, /paused all/).count()).toBe(1)
        const texts = await page.locator('.act').allInnerTexts()
        const find = (text: string) => texts.findIndex((each) => each.includes(text))
        expect(find('raised the budget')).toBeLessThan(find('resumed all'))
        expect(find('resumed all')).toBeLessThan(find('paused all'))
        // nothing is said about the hashes before they are checked
        expect(await page.getByText('The hashes of').count()).toBe(0)
        await page.getByRole('button', { name: 'verify the log' }).click()
        await page.getByText(/^The hashes of the entries 1 to \d+ fit\.$/).waitFor(wait)

        const save = row(page, `a save saved ${module}`)
        await save.getByText('what it changed').click()
        const added = save.getByRole('region', { name: module }).locator('.line.added')
        await added.waitFor(wait)
        expect(await added.innerText()).toContain("'Look at <b>⟨202e⟩ '")
        await save.getByText('review.ts: 2 of the last 2 deliveries became different.').waitFor(wait)
        expect(await findBarriers(page)).toEqual([])
        await shoot(page, `acts-${at}`)
        await save.getByRole('link', { name: 'replay it' }).click()
        await page.locator('.report[aria-busy=false]').waitFor(wait)
        await page.goBack()
        await row(page, /retried/)
          .getByRole('link', { name: parked })
          .click()
        await page.locator(`#row-${parked}[aria-selected=true]`).waitFor(wait)

        await show(page, 'view=acts')
        const kinds = page.getByRole('group', { name: 'Kind of act' })
        await kinds.getByRole('link', { name: 'paused' }).click()
        await expect.poll(() => page.locator('.act').count(), wait).toBe(3)
        await kinds.getByRole('link', { name: 'all' }).click()
        await row(page, /raised the budget/)
          .getByRole('link', { name: 'tokens.ops' })
          .click()
        await expect.poll(() => page.locator('.act').count(), wait).toBe(6)
        expect(await row(page, 'opened the page').count()).toBe(0)
        await page.getByRole('button', { name: 'Remove the filter by tokens.ops' }).click()
        await row(page, /opened the page as/)
          .first()
          .waitFor(wait)
        if (at === 'after') break
        await page.context().close()
        await first.gateway.stop()
        stage = await startStage({ dir }, first.browser)
      }
      expect([...first.errors, ...stage.errors]).toEqual([])
    } finally {
      if (stage !== first) await stage.close()
      await first.close()
    }
  })

  test('a log of 230 acts is shown in parts, and no filter hides an older act', async () => {
    const { dir } = await fill({
      config,
      work: async (store) => {
        const by = { kind: 'token', name: 'tokens.old' } as const
        await store.audit({ by, act: 'budget.raise', target: 'daily', outcome: 'done' })
        for (let n = 1; n <= 230; n += 1)
          await store.audit({
            by: { kind: 'token', name: 'tokens.ci' },
            act: 'pause',
            target: `mapping:m${n}`,
            outcome: 'done',
          })
      },
    })
    const stage = await startStage({ dir, files: { [module]: transform } })
    try {
      const page = await open(stage)
      await row(page, 'paused mapping:m230').waitFor(wait)
      expect(await page.locator('.act').count()).toBeLessThanOrEqual(100)
      for (const rest of [200, 233]) {
        await page.getByRole('button', { name: 'show 100 more' }).click()
        await expect.poll(() => page.locator('.act').count(), wait).toBeGreaterThanOrEqual(rest - 1)
      }
      await row(page, 'tokens.old raised the budget daily').waitFor(wait)
      const numbers = (await page.locator('.act').allInnerTexts()).flatMap(
        (text) => /:m(\d+)$/.exec(text.trim())?.[1] ?? [],
      )
      expect(numbers).toEqual(Array.from({ length: 230 }, (_, n) => String(230 - n)))
      await show(page, 'view=acts&act=raised')
      await row(page, 'tokens.old raised the budget daily').waitFor(wait)
      await expect.poll(() => page.locator('.act').count(), wait).toBe(1)
      expect(stage.errors).toEqual([])
    } finally {
      await stage.close()
    }
  })
})
