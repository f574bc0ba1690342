// The hooks and the bench in a real browser: the result of a typed request, at each keystroke and after each save.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { writeFiles } from '../e2e/gateway.ts'
import { findBarriers, hasBrowser, shoot, show, type Stage, startStage, transform, usual, openTab } from './stage.ts'

const wait = { timeout: 60_000 }
const hostile = { text: '<img src=x onerror=alert(1)> \u202e\u001b[31m', skip: false }

describe.skipIf(!hasBrowser)('the hooks and their bench in Chromium', () => {
  let stage: Stage
  let page: Page
  const body = () => page.locator('#bench-body')
  const decision = () => page.locator('#decision')
  const prompt = () => page.locator('[aria-label="Prompt, as the agent reads it"], .beside [aria-label=after]')
  const readClipboard = () => page.evaluate<string>('navigator.clipboard.readText()')
  const open = async (hook: string) => {
    await show(page, `view=hooks&bench=${hook}`)
    await page.locator('.bench h2', { hasText: hook }).waitFor(wait)
    await decision().waitFor(wait)
    if (!(await body().isVisible())) await page.locator('.request summary', { hasText: 'Body' }).click()
  }

  beforeAll(async () => {
    stage = await startStage({ ...usual, development: true })
    page = await stage.open()
  })
  afterAll(() => stage.close())

  test('a gateway without deliveries shows its URL and a command to paste, and can send a test event', async () => {
    const start = page.getByLabel('First steps')
    await start.getByText(`${stage.gateway.url}/review`, { exact: true }).waitFor(wait)
    await start.getByLabel('hook').selectOption('agent')
    await start.getByRole('button', { name: 'copy the command' }).click()
    await start.getByText('in the clipboard').waitFor(wait)
    expect(await readClipboard()).toContain(`curl -sS --globoff --path-as-is -X 'POST' '${stage.gateway.url}/agent'`)
    expect(await findBarriers(page)).toEqual([])
    await shoot(page, 'start')
    await start.getByRole('button', { name: 'send a test event' }).click()
    await page.locator('.row', { hasText: 'The build of main failed' }).waitFor(wait)
  })

  test('each hook is shown with its URL, its proof, its mappings in order, the counts of the last hour and its last failure', async () => {
    const id = await stage.post('review', { title: 'x', bad: true })
    await stage.post('plain', { text: 'hello' })
    await page.keyboard.press('2')
    const review = page.getByRole('article', { name: 'Hook review' })
    await review.getByText('needs the hook token').waitFor(wait)
    await review.getByText(`${stage.gateway.url}/review`).waitFor(wait)
    expect(await review.getByRole('link', { name: 'review.ts', exact: true }).getAttribute('href')).toMatch(
      /^vscode:.*review\.ts:1$/,
    )
    await review.getByText('In the last hour: 1 delivery, 1 parked.').waitFor(wait)
    const plain = page.getByRole('article', { name: 'Hook plain' })
    expect(await plain.getByLabel('Mappings in order').getByRole('listitem').allInnerTexts()).toEqual([
      expect.stringMatching(/^skips .*"skip":true.* → never → main echo$/),
      'plain → Say {{text}} → main echo',
    ])
    expect(await findBarriers(page)).toEqual([])
    await shoot(page, 'hooks')
    await review.getByRole('link', { name: 'no reviewer for this' }).click()
    await page.locator('#detail').getByRole('button', { name: id }).waitFor(wait)
  })

  test('the bench shows the outcome of a request at each keystroke: an action, a skip, a refusal or a code frame', async () => {
    await open('plain')
    await body().fill('{"text": "one"}')
    await prompt().getByText('Say one').waitFor(wait)
    await page.getByLabel('Mappings that were tried').getByText('payload.skip is missing').waitFor(wait)
    await body().press('End')
    await body().fill('{"text": "two"}')
    await prompt().getByText('Say two').waitFor(wait)
    await body().fill('{"text": ')
    await page.getByText('400 body-invalid').waitFor(wait)
    await open('review')
    await body().fill('{"title": "x", "skip": true}')
    await decision().getByText('skipped').waitFor(wait)
    await body().fill('{"title": "x", "bad": true}')
    await page.getByLabel('Code frame').getByText('no reviewer for this').waitFor(wait)
    await page.getByLabel('Log', { exact: true }).getByText('seen x').waitFor(wait)
    expect(await findBarriers(page)).toEqual([])
    await shoot(page, 'bench-frame')
  })

  test('the bench runs again after a save, and says that a save is not live if it does not build', async () => {
    await open('review')
    await body().fill('{"title": "x"}')
    await prompt().getByText('Review x').waitFor(wait)
    writeFiles(stage.gateway.dir, { 'hooks/transforms/review.ts': transform.replace('Review ', 'Look at ') })
    await prompt().getByText('Look at x').waitFor(wait)
    writeFiles(stage.gateway.dir, { 'hooks/transforms/review.ts': 'export default ({' })
    await page.getByText('A saved file is not live').waitFor(wait)
    await page.getByText('500 transform-build-failed').waitFor(wait)
    writeFiles(stage.gateway.dir, { 'hooks/transforms/review.ts': transform })
    await prompt().getByText('Review x').waitFor(wait)
    expect(await page.getByText('A saved file is not live').count()).toBe(0)
  })

  test('a click on a field inserts its path into a template, which can be tried, copied and saved', async () => {
    const file = join(stage.gateway.dir, 'hookloom.jsonc')
    await open('fresh')
    const template = page.locator('#bench-template')
    await body().fill('{"order": {"id": 7}, "by": "Ada"}')
    await template.fill('Order ')
    await template.press('End')
    await page.getByRole('button', { name: 'order.id', exact: true }).click()
    expect(await template.inputValue()).toBe('Order {{order.id}}')
    await prompt().getByText('Order 7').waitFor(wait)
    await page.getByRole('button', { name: 'copy the mapping' }).click()
    await page.getByText('The mapping is in the clipboard.').waitFor(wait)
    expect(JSON.parse(await readClipboard())).toEqual({
      match: { path: 'fresh' },
      messageTemplate: 'Order {{order.id}}',
    })
    await shoot(page, 'bench-template')
    await page.locator('#save-template').click()
    await page.getByText('The mapping "fresh" is saved').waitFor(wait)
    expect(readFileSync(file, 'utf8')).toContain('Order {{order.id}}')
    await page.locator('#save-template').waitFor({ ...wait, state: 'detached' })
    await prompt().getByText('Order 7').waitFor(wait)
    await template.fill('Now {{by}}')
    await prompt().getByText('Now Ada').waitFor(wait)
    // a mapping with a transform has no template to edit
    await open('review')
    expect(await page.locator('#edit-template').innerText()).toBe('make a template')
  })

  test('the page of a hook names a path of its template that no request has, and suggests the path that was probably meant', async () => {
    const file = join(stage.gateway.dir, 'hookloom.jsonc')
    await stage.post('fresh', { order: { title: 'Two lamps' }, by: 'Ada' })
    writeFiles(stage.gateway.dir, {
      'hookloom.jsonc': readFileSync(file, 'utf8').replace('Order {{order.id}}', 'Order {{order.titel}}'),
    })
    await show(page, 'view=hooks')
    const card = page.getByRole('article', { name: 'Hook fresh' })
    await card
      .getByText('reads "order.titel", which is in 0 of 1 known requests. Did you mean "order.title"?')
      .waitFor(wait)
    expect(await findBarriers(page)).toEqual([])
    await shoot(page, 'path-warning')
    writeFiles(stage.gateway.dir, {
      'hookloom.jsonc': readFileSync(file, 'utf8').replace('order.titel', 'order.title'),
    })
    await expect.poll(() => card.getByText('Did you mean').count(), wait).toBe(0)
  })

  test('the bench can send a request, save it as a fixture, copy it as a curl command, and load a request from a delivery', async () => {
    await open('review')
    await body().fill('{"title": "sent"}')
    await prompt().getByText('Review sent').waitFor(wait)
    await page.getByRole('button', { name: 'save as fixture' }).click()
    await page.getByText('It expects the decision accept.').waitFor(wait)
    expect(readdirSync(join(stage.gateway.dir, 'hooks/transforms/review.fixtures'))).toHaveLength(1)
    await page.getByRole('button', { name: 'copy curl' }).click()
    await page.getByText('The curl command is in the clipboard.').waitFor(wait)
    expect(await readClipboard()).toContain(`--data-raw '{"title": "sent"}'`)
    await page.locator('#send').click()
    await page.getByRole('link', { name: 'the delivery' }).click()
    await openTab(page, 'Request')
    await page.locator('#detail').getByText('sent', { exact: true }).waitFor(wait)
    await page.locator('.menu > summary').click()
    await page.getByRole('button', { name: 'open on the bench' }).click()
    await expect.poll(() => body().inputValue(), wait).toBe('{"title": "sent"}')
    await page
      .locator('#sample option', { hasText: 'review-' })
      .first()
      .waitFor({ ...wait, state: 'attached' })
  })

  test('Health names the cause of parked deliveries, Attention says how many would work now, and a save that corrects the code runs them again', async () => {
    await stage.post('review', { title: 'x', bad: true })
    await show(page, 'view=health')
    await page.locator('.verdict', { hasText: 'parked: review.ts:3' }).getByRole('link').click()
    const cause = page.locator('.cause', { hasText: 'review.ts:3' })
    await cause.getByRole('button', { name: 'would they work now?' }).click()
    await cause.getByText('0 of 2 would work now').waitFor(wait)
    const mended = transform.replace("throw new Error('no reviewer for this')", "log('bad')")
    writeFiles(stage.gateway.dir, { 'hooks/transforms/review.ts': mended })
    // the save itself makes the parked deliveries run again
    await page.getByText('Nothing needs attention.').waitFor(wait)
    writeFiles(stage.gateway.dir, { 'hooks/transforms/review.ts': transform })
    expect(await stage.ask('/api/attention')).toMatchObject({ count: 0 })
  })

  test('the steps of a run are shown as bars on one timeline', async () => {
    const id = await stage.post('plain', { text: 'bars' })
    await show(page, `id=${id}`)
    await openTab(page, 'Trace')
    const bars = page.locator('#detail .bar')
    await bars.nth(1).waitFor(wait)
    expect(await bars.first().getAttribute('aria-label')).toMatch(/ran \d+(\.\d)? m?s$/)
    expect(await findBarriers(page)).toEqual([])
    await shoot(page, 'waterfall')
  })

  test('several deliveries can be selected by clicks on their outcomes, and dropped together', async () => {
    const ids = [
      await stage.post('review', { title: 'a', bad: true }),
      await stage.post('review', { title: 'b', bad: true }),
    ]
    await show(page, 'state=parked')
    for (const id of ids) await page.locator(`#row-${id} .outcome`).click()
    const bar = page.getByRole('group', { name: 'Chosen rows' })
    await bar.getByText('2 chosen').waitFor(wait)
    await page.clock.install()
    await bar.getByRole('button', { name: 'drop 2' }).click()
    await bar.getByRole('button', { name: 'undo the drop' }).waitFor(wait)
    await page.clock.fastForward(5_000)
    await bar.getByText('2 dropped.').waitFor(wait)
    await page.clock.resume()
    for (const id of ids) expect(await stage.ask(`/api/deliveries/${id}`)).toMatchObject({ state: 'dropped' })
    await bar.getByRole('button', { name: 'clear' }).click()
    expect(await bar.count()).toBe(0)
  })

  test('a click on a bar of the histogram filters the list by the time of the bar, and a second click removes the filter', async () => {
    await show(page, 'hook=plain')
    await page.locator('.histogram').waitFor(wait)
    await page.locator('.rows .row').first().waitFor(wait)
    const all = await page.locator('.rows .row').count()
    const last = page.locator('.histogram .bin').last()
    await last.click()
    await page.getByRole('button', { name: 'Remove the filter of the time' }).waitFor(wait)
    await expect.poll(() => page.locator('.rows .row').count(), wait).toBeLessThan(all)
    await last.click()
    await expect.poll(() => page.locator('.rows .row').count(), wait).toBe(all)
    // a drag from the last bar to the first one
    const [first, end] = [await page.locator('.histogram .bin').first().boundingBox(), await last.boundingBox()]
    await page.mouse.move((end?.x ?? 0) + 2, (end?.y ?? 0) + 10)
    await page.mouse.down()
    await page.mouse.move((first?.x ?? 0) + 2, (first?.y ?? 0) + 10)
    await page.mouse.up()
    await page.getByRole('button', { name: 'Remove the filter of the time' }).click()
    await expect.poll(() => page.locator('.rows .row').count(), wait).toBe(all)
  })

  test('a search finds words in the payloads of old and new deliveries, within the time range in the address', async () => {
    const early = await stage.post('review', { title: 'Fix it', order: { no: 'o-13' } })
    await show(page, 'q=O-13')
    await page.locator(`#row-${early}`).waitFor(wait)
    expect(await page.locator('.rows .row').count()).toBe(1)
    const late = await stage.post('review', { title: 'Again', order: { no: 'o-13' } })
    await page.locator(`#row-${late}`).waitFor(wait)
    await show(page, 'q=nothing-has-this')
    await page.getByText('Nothing matches these filters.').waitFor(wait)
    await show(page, `since=${Date.now() - 60_000}&until=${Date.now() + 60_000}&q=o-13`)
    await expect.poll(() => page.locator('.rows .row').count(), wait).toBe(2)
    await show(page, `until=${Date.now() - 3_600_000}`)
    await page.getByText('Nothing matches these filters.').waitFor(wait)
    await show(page, '')
  })

  test('a search that reached its time limit says how far back it searched, and continues on request', async () => {
    const other = await stage.open()
    const asked: string[] = []
    await other.route('**/api/deliveries?**', async (route) => {
      const url = route.request().url()
      if (!url.includes('q=rare')) return route.continue()
      asked.push(url)
      await new Promise((done) => setTimeout(done, 250))
      const { deliveries } = (await stage.ask('/api/deliveries?limit=1')) as { deliveries: { deliveryId: string }[] }
      const at = '2026-01-02T03:04:05.000Z'
      await route.fulfill({ json: { deliveries: [], next: deliveries[0]?.deliveryId, searchedTo: at } }).catch(() => {})
    })
    await show(other, 'q=rare')
    await other.getByText('Searched back to 2 Jan').waitFor(wait)
    const before = asked.length
    expect(before).toBeLessThan(20)
    await other.getByRole('button', { name: 'search further' }).click()
    await expect.poll(() => asked.length, wait).toBeGreaterThan(before)
    await other.context().close()
  })

  test('markup in a tried payload is shown as text, and direction marks as visible signs', async () => {
    await open('plain')
    await body().fill(JSON.stringify(hostile))
    await prompt().getByText('<img src=x onerror=alert(1)>').waitFor(wait)
    expect(await page.locator('.bench').innerText()).not.toContain('\u202e')
    expect(await page.locator('.bench img').count()).toBe(0)
  })

  test('the page wrote no error to the console', () => {
    expect(stage.errors).toEqual([])
  })
})
