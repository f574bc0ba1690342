// A draft on the bench: what it changes on kept requests, as somebody types, on each engine.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page, Route } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startFakeTelegram } from '../e2e/fakes/telegram.ts'
import { writeFiles } from '../e2e/gateway.ts'
import { describeFilled } from './filled.ts'
import { findBarriers, shoot, show, type Stage, startStage, transform } from './stage.ts'

const wait = { timeout: 60_000 }
const botToken = '110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw'
const orders = {
  id: 'orders',
  match: { path: 'orders' },
  messageTemplate: 'Order {{order.id}} of {{customer.name}}',
  channel: 'last',
  retain: true,
}
const review = {
  id: 'review',
  match: { path: 'review' },
  transform: { module: 'review.ts' },
  deliver: false,
  retain: true,
}
const file = 'hooks/transforms/review.ts'
const hostile = '<img src=x onerror=alert(1)> \u202e'

describeFilled('a draft on the bench', (fill) => {
  let stage: Stage
  let page: Page
  const template = () => page.locator('#bench-template')
  const kept = () => page.locator('.result .kept > summary')
  const open = async (given: Page) => {
    await show(given, 'view=hooks&bench=orders')
    await given.locator('#decision').waitFor(wait)
  }
  const openKept = async () => {
    await show(page, 'view=list')
    await open(page)
    await page.locator('#sample').selectOption({ label: await readKept(0) })
  }
  const readKept = async (at: number) =>
    (await page.locator('#sample optgroup[label="kept deliveries"] option').nth(at).innerText()).trim()

  beforeAll(async () => {
    const { baseUrl } = await startFakeTelegram({ botToken, chats: [42] })
    const { dir } = await fill({
      config: {
        hooks: { mappings: [orders, review] },
        channels: { default: { channel: 'telegram', to: '42' }, telegram: { botToken, baseUrl } },
      },
    })
    stage = await startStage({ dir, files: { [file]: transform }, development: true })
    page = await stage.open()
    for (let no = 1; no <= 50; no += 1) {
      const customer = no <= 2 ? { name: hostile, city: 'Paris' } : { name: 'Ada' }
      await stage.post('orders', { order: { id: no }, customer })
    }
  })
  afterAll(() => stage.close())

  test('the template is on top and the body is folded; samples have their time and summary, and the reply goes to a named chat', async () => {
    await open(page)
    expect(await template().inputValue()).toBe(orders.messageTemplate)
    expect(await page.locator('#bench-body').isVisible()).toBe(false)
    const top = async (selector: string) => (await page.locator(selector).boundingBox())?.y ?? 0
    expect(await top('#bench-template')).toBeLessThan(await top('#sample'))
    expect(await readKept(0)).toMatch(/^\d\d:\d\d:\d\d.* · Order 50 of Ada$/)
    await page.locator('.result').getByText('Telegram 42').waitFor(wait)
    const fields = await page.locator('.result .fields').innerText()
    expect(fields).not.toMatch(/wakeMode|last|allowUnsafeExternalContent|isolated|hook:<new>/)
    const list = page.getByRole('list', { name: 'Fields' })
    await list.getByText('in 50 of 50 requests').first().waitFor(wait)
    expect(await list.getByRole('button').allInnerTexts()).toEqual(['order.id', 'customer.name', 'customer.city'])
    await list.getByText('in 2 of 50 requests').waitFor(wait)
    expect(await findBarriers(page)).toEqual([])
    await shoot(page, 'bench-template-on-top')
  })

  test('as one types, before and after are beside each other, and the kept requests say how many change', async () => {
    await openKept()
    await template().fill('Order {{order.id}} of {{customer.name}}{{customer.city}}')
    await kept().getByText('On the last 50 requests: 48 same, 2 changed').waitFor(wait)
    const sides = page.getByLabel('Before and after')
    await sides.getByLabel('after', { exact: true }).getByText('Order 50 of Ada').waitFor(wait)
    await template().fill('Now {{order.id}}')
    await kept().getByText('On the last 50 requests: 50 changed').waitFor(wait)
    await sides.getByLabel('before', { exact: true }).getByText('Order 50 of Ada').waitFor(wait)
    await sides.getByLabel('after', { exact: true }).getByText('Now 50').waitFor(wait)
    const [before, after] = [
      await sides.getByLabel('before', { exact: true }).boundingBox(),
      await sides.getByLabel('after', { exact: true }).boundingBox(),
    ]
    expect(before?.y).toBe(after?.y)
    expect(after?.x).toBeGreaterThan(before?.x ?? 0)
    await kept().click()
    await page.locator('.kept .group').getByText('50 requests, 100 %').waitFor(wait)
    expect(await findBarriers(page)).toEqual([])
    await shoot(page, 'bench-kept')
    await page.getByRole('button', { name: 'discard' }).click()
    await expect.poll(() => template().inputValue()).toBe(orders.messageTemplate)
    expect(await page.locator('.result .kept').count()).toBe(0)
  })

  test('a path that no request has is underlined and told, and a click takes the path that was meant', async () => {
    await openKept()
    await template().fill('Order {{order.id}} of {{customer.nmae}} and {{customer.nmae | truncate: 9}}')
    const told = page.locator('#unread')
    await told.getByText('No known request has customer.nmae. Did you mean customer.name?').waitFor(wait)
    expect(await page.locator('.marks u').allInnerTexts()).toEqual(['customer.nmae', 'customer.nmae'])
    expect(await template().getAttribute('aria-invalid')).toBe('true')
    expect(await findBarriers(page)).toEqual([])
    await shoot(page, 'bench-unread')
    await told.getByRole('button', { name: 'customer.name' }).click()
    expect(await template().inputValue()).toBe(
      'Order {{order.id}} of {{customer.name}} and {{customer.name | truncate: 9}}',
    )
    await expect.poll(() => page.locator('.marks').count(), wait).toBe(0)
    await page.getByRole('button', { name: 'discard' }).click()
  })

  test('the kept requests are tried once nobody types, never twice at a time, and without an effect', async () => {
    await openKept()
    const before = await stage.ask('/api/deliveries?limit=1')
    let [running, most, asked] = [0, 0, 0]
    const slow = async (route: Route) => {
      asked += 1
      running += 1
      most = Math.max(most, running)
      const ended = new Promise<void>((done) => void page.once('requestfailed', () => done()))
      await Promise.race([ended, new Promise((done) => setTimeout(done, 600))])
      running -= 1
      await route.continue().catch(() => {})
    }
    await page.route('**/api/try/kept', slow)
    await template().pressSequentially(' and so on', { delay: 20 })
    await kept().getByText('50 changed').waitFor(wait)
    expect(asked).toBe(1)
    for (const word of [' now', ' or', ' never']) {
      await template().pressSequentially(word)
      await expect.poll(() => running, wait).toBe(1)
    }
    await expect.poll(() => running, wait).toBe(0)
    expect(most).toBe(1)
    await page.unroute('**/api/try/kept', slow)
    expect(await stage.ask('/api/deliveries?limit=1')).toEqual(before)
    await page.getByRole('button', { name: 'discard' }).click()
  })

  test('code is tried as it is typed, with before and after and the kept requests, and the file stays as it is', async () => {
    for (const title of ['one', 'two', 'three']) await stage.post('review', { title })
    await show(page, 'view=hooks&bench=review')
    await page.locator('.request summary', { hasText: 'Code of review.ts' }).click()
    const code = page.getByLabel('Code of review.ts')
    expect(await code.inputValue()).toBe(transform)
    await page.locator('#decision').waitFor(wait)
    await page.locator('#bench-body').fill('{"title":"bench"}')
    await code.fill(transform.replace("'Review '", "'Look at '"))
    const sides = page.getByLabel('Before and after')
    await sides.getByLabel('before', { exact: true }).getByText('Review bench').waitFor(wait)
    await sides.getByLabel('after', { exact: true }).getByText('Look at bench').waitFor(wait)
    await kept().getByText('On the last 3 requests: 3 changed').waitFor(wait)
    expect(await findBarriers(page)).toEqual([])
    await shoot(page, 'bench-code')
    await code.fill(`${transform} (`)
    await page.locator('.result').getByText('transform-build-failed').first().waitFor(wait)
    await page.getByRole('button', { name: 'discard' }).click()
    await page.locator('.result .kept').waitFor({ ...wait, state: 'detached' })
    expect(await code.inputValue()).toBe(transform)
    expect(readFileSync(join(stage.gateway.dir, file), 'utf8')).toBe(transform)
    // a draft that was saved in the editor is no draft
    const saved = transform.replace("'Review '", "'Saved '")
    await code.fill(saved)
    await kept().waitFor(wait)
    writeFiles(stage.gateway.dir, { [file]: saved })
    await page.locator('.request summary', { hasText: 'Code of review.ts' }).waitFor(wait)
    await page.locator('.result').getByText('Saved bench').first().waitFor(wait)
    await page.locator('.result .kept').waitFor({ ...wait, state: 'detached' })
  })

  test('text of a request is text in both columns', async () => {
    await openKept()
    await page.locator('.request summary', { hasText: 'Body' }).click()
    await page.locator('#bench-body').fill(JSON.stringify({ order: { id: 1 }, customer: { name: hostile } }))
    await template().fill('Dear {{customer.name}}')
    await page.getByLabel('after', { exact: true }).first().getByText('<img src=x').waitFor(wait)
    expect(await page.locator('.bench').innerText()).not.toContain('\u202e')
    expect(await page.locator('.bench img').count()).toBe(0)
    await page.getByRole('button', { name: 'discard' }).click()
  })

  test('on a phone the result is in sight of its box, and before and after are one above the other', async () => {
    const phone = await stage.open({ width: 360, height: 740 })
    await open(phone)
    await phone.locator('#bench-template').fill('Now {{order.id}}')
    const after = phone.getByLabel('after', { exact: true }).first()
    await after.waitFor(wait)
    await phone.getByText('On the last 50 requests: 50 changed').waitFor(wait)
    const box = await phone.locator('#bench-template').boundingBox()
    const shown = await after.boundingBox()
    const before = await phone.getByLabel('before', { exact: true }).first().boundingBox()
    expect(box?.y).toBeGreaterThan(0)
    expect((shown?.y ?? 0) + (shown?.height ?? 0)).toBeLessThan(740)
    expect(before?.x).toBe(shown?.x)
    expect(await findBarriers(phone)).toEqual([])
    await shoot(phone, 'bench-phone')
    await phone.context().close()
  })

  test('the page wrote no error to the console', () => {
    expect(stage.errors).toEqual([])
  })
})
