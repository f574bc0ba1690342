// The keyboard alone: a parked delivery is found, read and mended without a mouse; a key closes one thing only; and no key loses the focus.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hasBrowser, type Stage, startStage, transform, usual } from './stage.ts'

const wait = { timeout: 60_000 }
const file = 'hooks/transforms/review.ts'

/** What has the focus: its id, or its text. */
const readFocus = (page: Page) =>
  page.evaluate<string>('document.activeElement.id || document.activeElement.textContent.trim().slice(0, 60)')

/** Presses Tab until something with this text or id has the focus. */
async function tabTo(page: Page, name: string | RegExp): Promise<void> {
  const fits = (focus: string) => (typeof name === 'string' ? focus === name : name.test(focus))
  for (let n = 0; n < 60; n += 1) {
    if (fits(await readFocus(page))) return
    await page.keyboard.press('Tab')
  }
  throw new Error(`Tab does not reach ${String(name)}, but ${await readFocus(page)}.`)
}

describe.skipIf(!hasBrowser)('the keyboard alone in Chromium', () => {
  let stage: Stage
  beforeAll(async () => {
    stage = await startStage({ ...usual, development: true })
  })
  afterAll(() => stage.close())

  test('a parked delivery is found, read, tried on the bench, and done after the save that mends its transform', async () => {
    const id = await stage.post('review', { title: 'Boil faster', bad: true })
    const page = await stage.open()
    const { keyboard } = page
    // Attention has its cause
    await page.locator(`#row-${id}`).waitFor(wait)
    await keyboard.press('Control+k')
    await keyboard.type('attention')
    await keyboard.press('Enter')
    await page.locator('.cause', { hasText: 'no reviewer for this' }).waitFor(wait)
    await keyboard.press('j')
    await page.locator('#detail .problem', { hasText: 'no reviewer for this' }).waitFor(wait)
    await page.locator('#detail .problem .frame, #detail .problem pre', { hasText: 'throw new Error' }).waitFor(wait)
    // the menu opens the bench with its request
    await keyboard.press('Enter')
    await tabTo(page, 'more')
    await keyboard.press('Enter')
    await tabTo(page, 'open on the bench')
    await keyboard.press('Enter')
    await page.locator('.result', { hasText: 'no reviewer for this' }).waitFor(wait)
    expect(await readFocus(page)).not.toBe('page')
    // the save, which an author makes in the editor
    writeFileSync(join(stage.gateway.dir, file), transform.replace('payload.bad', 'payload.worse'))
    await page.locator('.result', { hasText: 'Review Boil faster' }).waitFor(wait)
    await keyboard.press('1')
    await page.getByText('Nothing needs attention.').waitFor(wait)
    await keyboard.press('Control+k')
    await keyboard.type(id)
    await keyboard.press('Enter')
    await page.locator('#detail .title .state.done').waitFor(wait)
    await page.context().close()
  })

  test('Escape closes a menu, a dialog or the palette, and not the delivery behind it', async () => {
    const id = await stage.post('plain', { text: 'Read me' })
    const page = await stage.open({ hash: `id=${id}` })
    const { keyboard } = page
    const menu = page.locator('#detail .menu')
    await menu.locator('summary').focus()
    await keyboard.press('Enter')
    expect(await menu.getAttribute('open')).not.toBeNull()
    await keyboard.press('Escape')
    expect(await menu.getAttribute('open')).toBeNull()
    expect(await readFocus(page)).toBe('more')
    for (const [opens, dialog] of [
      ['Control+k', 'Go to'],
      ['?', 'Keys'],
    ] as const) {
      await keyboard.press(opens)
      await page.getByRole('dialog', { name: dialog }).waitFor(wait)
      await keyboard.press('Escape')
      await page.getByRole('dialog', { name: dialog }).waitFor({ ...wait, state: 'hidden' })
    }
    expect(await page.locator('#detail .title').count()).toBe(1)
    // the line between list and delivery
    const width = async () => (await page.locator('.list-pane').boundingBox())?.width ?? 0
    const before = await width()
    await page.getByRole('separator', { name: 'The width of the list' }).focus()
    for (let n = 0; n < 5; n += 1) await keyboard.press('ArrowLeft')
    expect(await width()).toBeLessThan(before - 50)
    await page.context().close()
  })

  test('Enter on a hook leaves the focus in its bench, and the way back in the hooks', async () => {
    const page = await stage.open({ hash: 'view=hooks' })
    await page.getByRole('article', { name: 'Hook plain' }).getByRole('link', { name: 'plain', exact: true }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('region', { name: 'Bench' }).waitFor(wait)
    await expect.poll(() => readFocus(page), wait).toBe('view')
    await tabTo(page, 'hooks')
    await page.keyboard.press('Enter')
    await page.getByRole('article', { name: 'Hook plain' }).waitFor(wait)
    await expect.poll(() => readFocus(page), wait).toBe('view')
    await page.context().close()
  })

  test('the colours, the time and saved filters are chosen, and kept for the next visit', async () => {
    const page = await stage.open()
    await page.getByRole('button', { name: 'Colours: as the system' }).click()
    await page.getByRole('button', { name: 'Colours: light' }).click()
    const readBack = () => page.evaluate('getComputedStyle(document.documentElement).backgroundColor')
    expect(await readBack()).toBe('rgb(20, 22, 26)')
    await page.getByLabel('Time', { exact: true }).selectOption('last hour')
    await page.getByRole('button', { name: 'Remove the filter of the time' }).waitFor(wait)
    await page.locator('.states').getByRole('link', { name: 'done' }).click()
    await page.getByText('saved filters').click()
    await page.getByLabel('A name for the filters that are shown').fill('well')
    await page.keyboard.press('Enter')
    await page.keyboard.press('Escape')
    await page.evaluate("location.hash = ''")
    await page.reload()
    await page.locator('.rows .row').first().waitFor(wait)
    expect(await readBack()).toBe('rgb(20, 22, 26)')
    await page.getByText('saved filters').click()
    await page.getByRole('link', { name: 'well' }).click()
    await expect.poll(() => page.url(), wait).toMatch(/state=done/)
    await page.context().close()
  })

  test('the pages wrote no error to the console', () => {
    expect(stage.errors).toEqual([])
  })
})
