// Links of the page in a real browser: each place has an address, one key serves all tabs, and the door takes a link or a token.
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { gatewayToken } from '../e2e/gateway.ts'
import { findBarriers, hasBrowser, show, type Stage, startStage } from './stage.ts'

const wait = { timeout: 60_000 }

describe.skipIf(!hasBrowser)('the links of the page in Chromium', { timeout: 120_000 }, () => {
  let stage: Stage
  let page: Page
  let id = ''
  const row = (of: Page) => of.locator(`#row-${id}`)
  const title = (of: Page) => of.locator('#detail').getByRole('button', { name: id })
  const openTab = async (click: () => Promise<void>) => {
    const opened = page.context().waitForEvent('page', wait)
    await click()
    return opened
  }

  beforeAll(async () => {
    stage = await startStage()
    id = await stage.post('review', { title: 'Fix the login' })
    page = await stage.open()
    await row(page).waitFor(wait)
  })
  afterAll(() => stage.close())

  test('a middle click and a click with Control open a delivery in another tab, which has the key of the first one', async () => {
    for (const click of [
      () => row(page).click({ button: 'middle' }),
      () => row(page).click({ modifiers: ['ControlOrMeta'] }),
    ]) {
      const tab = await openTab(click)
      await title(tab).waitFor(wait)
      expect(new URL(tab.url()).hash).toBe(`#id=${id}`)
      expect(await tab.evaluate('document.cookie + JSON.stringify(localStorage)')).toBe('{}')
      await tab.close()
    }
    expect(await page.locator('#detail').count()).toBe(0)
  })

  test('views, filters and hooks are links, and the buttons of the browser go back and forward', async () => {
    const views = page.getByRole('navigation', { name: 'Views' })
    for (const name of ['hooks', 'replay', 'sessions', 'health', 'acts']) {
      expect(await views.getByRole('link', { name }).getAttribute('href')).toBe(`#view=${name}`)
    }
    await row(page).click()
    await title(page).waitFor(wait)
    expect(await page.evaluate('document.activeElement.id')).toBe('list')
    await page.getByRole('link', { name: /^done/ }).click()
    await views.getByRole('link', { name: 'health' }).click()
    await page.getByRole('region', { name: 'Health' }).waitFor(wait)
    await page.goBack()
    await page.goBack()
    await title(page).waitFor(wait)
    await page.goBack()
    await expect.poll(() => page.locator('#detail').count(), wait).toBe(0)
    await page.goForward()
    await title(page).waitFor(wait)
    const tab = await openTab(() =>
      page.locator('#detail .title').getByRole('link').first().click({ button: 'middle' }),
    )
    await tab.getByRole('button', { name: 'Remove the filter hook review' }).waitFor(wait)
    await tab.close()
    expect(await findBarriers(page)).toEqual([])
    await show(page, '')
  })

  test('a tab gives its key to no program that has not proved that it made the key', async () => {
    const other = await stage.open()
    await row(other).waitFor(wait)
    // another program answers on the port while the tab stays open
    await other.route('**/api/page/proof', (route) => route.fulfill({ json: { ok: true, proof: '0'.repeat(64) } }))
    const asked = other.waitForRequest('**/api/page/proof', wait)
    const tab = await other.context().newPage()
    await tab.goto(`${stage.gateway.adminUrl}/#id=${id}`)
    await asked
    await tab.getByText('hookloom open').waitFor(wait)
    expect(await tab.evaluate("sessionStorage.getItem('hookloom-key')")).toBeNull()
    // the gateway is back, and the door opens with the key of a new link, at the place of its own address
    await other.unroute('**/api/page/proof')
    const { code } = await stage.ask('/api/page/code', 'POST')
    await show(other, `k=${String(code)}`)
    await title(tab).waitFor(wait)
    await other.context().close()
  })

  test('the door takes a link of hookloom open, and shows the place of its own address or that of the link', async () => {
    for (const [address, place] of [
      [`id=${id}`, ''],
      ['view=health', `&id=${id}`],
    ]) {
      const alone = await stage.browser.newContext()
      const tab = await alone.newPage()
      await tab.goto(`${stage.gateway.adminUrl}/#${address}`)
      const { code } = await stage.ask('/api/page/code', 'POST')
      await tab.getByLabel('Or paste its link').fill(`${stage.gateway.adminUrl}/#k=${String(code)}${place}`)
      expect(await findBarriers(tab)).toEqual([])
      await tab.keyboard.press('Enter')
      await title(tab).waitFor(wait)
      expect(new URL(tab.url()).hash).toBe(`#id=${id}`)
      await alone.close()
    }
  })

  test('a token with the right to read opens the page, which then may not drop, and the audit log names the token', async () => {
    const parked = await stage.post('review', { title: 'x', bad: true })
    const answer = await fetch(`${stage.gateway.adminUrl}/api/tokens`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gatewayToken}` },
      body: JSON.stringify({ name: 'ada', may: ['read'] }),
    })
    const { token } = (await answer.json()) as { token: string }
    const alone = await stage.browser.newContext()
    const tab = await alone.newPage()
    await tab.goto(`${stage.gateway.adminUrl}/#id=${parked}`)
    await tab.getByLabel('Or paste its link').fill('not a token')
    await tab.keyboard.press('Enter')
    await tab.getByRole('alert').getByText('hookloom open').waitFor(wait)
    await tab.getByLabel('Or paste its link').fill(token)
    await tab.keyboard.press('Enter')
    await tab.locator('#detail').getByRole('button', { name: parked }).waitFor(wait)
    await tab.locator('#retry').click()
    await tab.getByText('which has not the right "operate"').waitFor(wait)
    // a refusal is recorded after its answer
    await vi.waitFor(async () => {
      const { entries } = (await stage.ask('/api/audit')) as { entries: { act: string; by: object; outcome: string }[] }
      expect(entries).toContainEqual(
        expect.objectContaining({ act: 'retry', by: { kind: 'page', name: 'token ada' }, outcome: 'refused' }),
      )
    }, wait)
    // the page stays open until the token ends
    await stage.ask('/api/tokens/ada/revoke', 'POST')
    await tab.reload()
    await tab.getByRole('alert').getByText('no longer valid').waitFor(wait)
    await alone.close()
  })
})
