// What Ctrl-K reaches besides the views, the line between list and delivery under a pointer, and the histogram by its keys.
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newDelivery, newJob } from '../contract/stage.ts'
import { createSqliteStore } from '../../src/store/sqlite/sqlite.ts'
import { join } from 'node:path'
import { makeConfigDir } from '../e2e/gateway.ts'
import { findBarriers, hasBrowser, shoot, show, type Stage, startStage, usual } from './stage.ts'

const wait = { timeout: 60_000 }
const stepMs = 60_000
const stored = 480

describe.skipIf(!hasBrowser)('what is reached in Chromium', () => {
  let stage: Stage
  let page: Page
  let id: string

  beforeAll(async () => {
    const dir = makeConfigDir({ config: usual.config })
    const store = createSqliteStore({ file: join(dir, 'state/hookloom.db'), clock: Date.now })
    const start = Date.now() - stored * stepMs
    const old = Array.from({ length: stored }, (_, n) =>
      newDelivery({ at: start + n * stepMs, hook: 'plain', jobs: [newJob({ state: 'done' })] }),
    )
    await store.appendAll(old, [])
    await store.close()
    stage = await startStage({ dir, files: usual.files })
    id = await stage.post('plain', { text: 'Reach me' })
    page = await stage.open()
    await page.locator(`#row-${id}.done`).waitFor(wait)
  }, 120_000)
  afterAll(() => stage.close())

  async function goTo(words: string, name: string): Promise<void> {
    await page.keyboard.press('Control+k')
    await page.keyboard.type(words)
    await page.getByRole('option', { name, exact: true }).waitFor(wait)
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'Go to' }).waitFor({ ...wait, state: 'hidden' })
  }

  test('Ctrl-K opens the bench of a hook, a session, and the acts', async () => {
    await goTo('hook review', 'hook review')
    await page.locator('.bench h2', { hasText: 'review' }).waitFor(wait)
    await goTo('session hook:plain', 'session main/hook:plain')
    await page.locator('.chat .message', { hasText: 'Reach me' }).first().waitFor(wait)
    await goTo('view acts', 'view acts')
    await page.locator('.act').first().waitFor(wait)
    expect(await page.getByRole('link', { name: 'acts' }).getAttribute('aria-current')).toBe('page')
  })

  test('Ctrl-K does what the buttons of the shown delivery do, and offers nothing that cannot be done', async () => {
    await goTo(id, `id ${id}`)
    await page.locator('#detail', { hasText: id }).waitFor(wait)
    await goTo('do curl', 'do copy it as a curl command')
    await page.getByText('The curl command is in the clipboard.').waitFor(wait)
    expect(await page.evaluate('navigator.clipboard.readText()')).toContain('Reach me')
    await page.keyboard.press('Control+k')
    await page.keyboard.type('do ')
    const options = page.getByRole('dialog', { name: 'Go to' }).getByRole('option')
    await expect.poll(() => options.allInnerTexts(), wait).toContainEqual(expect.stringContaining('do pause'))
    expect((await options.allInnerTexts()).join()).not.toContain('retry')
    expect(await findBarriers(page)).toEqual([])
    await shoot(page, 'reach-palette')
    await page.keyboard.press('Escape')
    await goTo('do light', 'do switch between light and dark')
    await page.getByRole('button', { name: 'Colours: light' }).click()
    await page.getByRole('button', { name: 'Colours: dark' }).click()
  })

  test('the line between list and delivery follows the pointer, stays within its limits, and is kept', async () => {
    await show(page, `id=${id}`)
    const grip = page.getByRole('separator', { name: 'The width of the list' })
    await grip.waitFor(wait)
    const width = async () => (await page.locator('.list-pane').boundingBox())?.width ?? 0
    const drag = async (to: number) => {
      const box = await grip.boundingBox()
      await page.mouse.move((box?.x ?? 0) + (box?.width ?? 0) / 2, (box?.y ?? 0) + 100)
      await page.mouse.down()
      await page.mouse.move(to, 300, { steps: 8 })
      await page.mouse.up()
    }
    // what is selected is not dragged in its place
    await page.keyboard.press('Control+a')
    await drag(1_000)
    await expect.poll(async () => Math.abs((await width()) - 1_000), wait).toBeLessThan(30)
    const kept = await width()
    // the pointer no longer holds the line
    await page.mouse.move(400, 300)
    expect(await width()).toBe(kept)
    await page.reload()
    await grip.waitFor(wait)
    await expect.poll(width, wait).toBe(kept)
    await drag(20)
    await expect.poll(() => grip.getAttribute('aria-valuenow'), wait).toBe('20')
    await drag(1_430)
    await expect.poll(() => grip.getAttribute('aria-valuenow'), wait).toBe('75')
    await grip.dblclick()
    await expect.poll(() => grip.getAttribute('aria-valuenow'), wait).toBe('45')
  })

  test('the arrow keys move over the bars of the histogram and say their count, Enter chooses one, and again shows all', async () => {
    await show(page, '')
    const bars = page.getByRole('slider', { name: 'Deliveries over the shown time' })
    await bars.focus()
    const say = () => bars.getAttribute('aria-valuetext')
    const last = await say()
    expect(last).toMatch(/^\d+ from /)
    await page.keyboard.press('ArrowLeft')
    await page.keyboard.press('ArrowLeft')
    expect(await bars.getAttribute('aria-valuenow')).toBe('45')
    expect(await say()).not.toBe(last)
    await page.keyboard.press('ArrowRight')
    expect(await bars.getAttribute('aria-valuenow')).toBe('46')
    const chosen = Number(/^\d+/.exec((await say()) ?? '')?.[0])
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Remove the filter of the time' }).waitFor(wait)
    const rows = page.locator('.rows .row')
    await expect.poll(() => rows.count(), wait).toBe(chosen)
    expect(await page.locator('.bin.brushed').count()).toBe(1)
    // the bars and the focus stay, so that the same key shows all rows again
    await page.keyboard.press('Enter')
    await expect.poll(() => page.locator('.bin.brushed').count(), wait).toBe(0)
    await expect.poll(() => rows.count(), wait).toBeGreaterThan(chosen)
    expect(await findBarriers(page)).toEqual([])
  })

  test('the page wrote no error to the console', () => {
    expect(stage.errors).toEqual([])
  })
})
