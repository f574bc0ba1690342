// A failing run is tried now: from the opened delivery, and for a whole group. Another turn is asked for while one has not ended.
import { expect, test } from 'vitest'
import type { NewDelivery } from '../../src/store/records.ts'
import { claimOne } from '../contract/jobs.ts'
import { newDelivery, newJob, request } from '../contract/stage.ts'
import { describeFilled } from './filled.ts'
import { findBarriers, shoot, show, startStage, transform } from './stage.ts'

const wait = { timeout: 60_000 }
const hourMs = 3_600_000

describeFilled('runs that fail', (fill) => {
  test('a failing run is tried now, alone or with its group, and "run again" asks while a run has not ended', async () => {
    const failing: NewDelivery[] = Array.from({ length: 3 }, () =>
      newDelivery({ at: Date.now(), hook: 'plain', jobs: [newJob()], request: request(), ringSize: 9 }),
    )
    const { dir } = await fill({
      work: async (store) => {
        for (const each of failing) {
          await store.append(each)
          const outcome = { kind: 'retry', error: 'ECONNREFUSED 127.0.0.1:4040', afterMs: hourMs } as const
          await store.report(await claimOne(store), { outcome })
        }
      },
    })
    const stage = await startStage({ dir, files: { 'hooks/transforms/review.ts': transform } })
    try {
      const [first] = failing
      const page = await stage.open({ hash: `id=${first?.id}` })
      const actions = page.getByRole('group', { name: 'Actions' })
      await actions.getByRole('button', { name: /^try now/ }).waitFor(wait)
      expect(await actions.locator('.primary').innerText()).toMatch(/^try now/)
      await actions.getByText('more').click()
      await actions.getByRole('button', { name: 'run again' }).click()
      await actions.getByText('really run again: a run of this delivery has not ended').waitFor(wait)
      await shoot(page, 'try-now')
      expect(await findBarriers(page)).toEqual([])
      await actions.getByRole('button', { name: /^try now/ }).click()
      await page.locator(`#row-${first?.id}.done`).waitFor(wait)
      // nothing fails any more, and another turn is no main action
      await actions.getByRole('button', { name: 'run again' }).waitFor(wait)
      expect(await actions.locator('.primary').count()).toBe(0)

      await show(page, 'state=attention')
      const cause = page.locator('.cause', { hasText: 'ECONNREFUSED' })
      await cause.getByText('▲ 2 failing').waitFor(wait)
      await cause.getByRole('button', { name: 'try now 2' }).click()
      await page.getByText('Nothing needs attention.').waitFor(wait)
      await show(page, '')
      for (const each of failing) await page.locator(`#row-${each.id}.done`).waitFor(wait)
      expect(stage.errors).toEqual([])
    } finally {
      await stage.close()
    }
  })
})
