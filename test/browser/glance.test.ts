// The facts that must be right at a glance: the size of the text, the size of rows on a phone, how long a run took, when a gateway
// was last seen, the texts of a prompt, and the number of failures in the title of the browser tab.
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { writeFiles } from '../e2e/gateway.ts'
import { hasBrowser, openTab, show, type Stage, startBrowser, startStage } from './stage.ts'

const wait = { timeout: 60_000 }
const buildMapping = (id: string) => ({
  id,
  match: { path: id },
  messageTemplate: '{{text}}',
  agentId: id,
  deliver: false,
  retain: true,
})
const runner = (script: string) => ({ kind: 'command', command: 'sh', args: ['-c', `cat > /dev/null; ${script}`] })
const lasting = { ...buildMapping('main'), id: 'lasting', match: { path: 'lasting' }, sessionKey: 'main' }
const config = {
  hooks: { mappings: [buildMapping('main'), buildMapping('gated'), buildMapping('broken'), lasting] },
  runners: {
    gated: runner('until [ -e go ]; do sleep 0.1; done; echo finished'),
    broken: runner('echo "no such model" >&2; exit 2'),
  },
  agents: {
    list: [
      { id: 'main', default: true },
      { id: 'gated', runner: 'gated', workspace: '.' },
      { id: 'broken', runner: 'broken', workspace: '.' },
    ],
  },
}

describe.skipIf(!hasBrowser)('the readability of the page in Chromium', () => {
  let stage: Stage
  let page: Page
  const row = (id: string) => page.locator(`#row-${id}`)

  beforeAll(async () => {
    stage = await startStage({ config })
    page = await stage.open()
  })
  afterAll(() => stage.close())

  test('text and rows grow with the font size that the reader set in the browser', async () => {
    const measure = async (on: Stage) => {
      const id = await on.post('main', { text: 'Read me' })
      const opened = await on.open()
      const drawn = opened.locator(`#row-${id}`)
      await drawn.getByText('Read me').waitFor(wait)
      const measureFont = (cell: string) =>
        opened.evaluate<number>(`parseFloat(getComputedStyle(document.querySelector('#row-${id} ${cell}')).fontSize)`)
      const height = (await drawn.boundingBox())?.height ?? 0
      const cut = await drawn.evaluate(({ scrollHeight, clientHeight }) => scrollHeight - clientHeight)
      const sizes = { summary: await measureFont('.summary'), hook: await measureFont('.hook'), height, cut }
      await opened.context().close()
      return sizes
    }
    const usual = await measure(stage)
    const browser = await startBrowser(['--blink-settings=defaultFontSize=24'])
    try {
      const large = await startStage({ config }, browser)
      const grown = await measure(large)
      expect(grown.summary).toBeCloseTo(usual.summary * 1.5, 1)
      expect(grown.hook).toBeCloseTo(usual.hook * 1.5, 1)
      expect(grown.height).toBeGreaterThanOrEqual(usual.height * 1.45)
      expect([usual.cut, grown.cut]).toEqual([0, 0])
      expect(large.errors).toEqual([])
    } finally {
      await browser.close()
    }
  })

  // the minimum is that of https://www.w3.org/TR/WCAG22/#target-size-minimum
  test('on a phone each row of a payload is at least 24 px high, and no row overlaps the next one', async () => {
    const payload = { text: 'x', user: { login: 'ada', tags: ['one', 'two'] }, count: 1, none: null, empty: {} }
    const phone = await stage.open({ hash: `id=${await stage.post('main', payload)}`, width: 360, height: 760 })
    await openTab(phone, 'Request')
    await phone.getByRole('button', { name: 'expand all' }).click()
    await phone.locator('#detail .tree').getByText('"two"').waitFor(wait)
    const boxes = await phone.locator('#detail .tree :is(.leaf, summary)').evaluateAll((all) =>
      all.map((each) => {
        const { top, bottom, height } = each.getBoundingClientRect()
        return { text: each.textContent, top, bottom, height }
      }),
    )
    expect(boxes.length).toBeGreaterThanOrEqual(10)
    expect(boxes.filter(({ height }) => height < 24)).toEqual([])
    expect(boxes.filter(({ bottom }, at) => bottom > (boxes[at + 1]?.top ?? bottom))).toEqual([])
    expect(await phone.evaluate('document.documentElement.scrollWidth')).toBe(360)
    await phone.context().close()
  })

  test('the page shows for how long a run has been running, and its duration only once it has ended', async () => {
    const id = await stage.post('gated', { text: 'Wait for it' })
    await show(page, `id=${id}`)
    await openTab(page, 'Trace')
    const run = page.locator('#detail .stage').filter({ hasText: /^agent/ })
    await run.getByText(/^for /).waitFor(wait)
    await row(id).locator('.outcome', { hasText: 'running' }).waitFor(wait)
    expect(await row(id).locator('.took').innerText()).toBe('')
    expect(await run.innerText()).toMatch(/running[^]*runs for /)
    for (const place of [run, row(id)]) expect(await place.innerText()).not.toContain('wait')
    expect(await page.locator('#detail .title').innerText()).not.toContain('took')
    writeFiles(stage.gateway.dir, { go: '' })
    await row(id).locator('.outcome', { hasText: 'done' }).waitFor(wait)
    expect(await row(id).locator('.took').innerText()).toMatch(/^[1-9]/)
    await page.locator('#detail .title', { hasText: /took [1-9]/ }).waitFor(wait)
  })

  test('the row and the title of a dead run show no duration, not even 0 ms', async () => {
    const id = await stage.post('broken', { text: 'Fail' })
    await show(page, `id=${id}`)
    await openTab(page, 'Trace')
    await row(id).locator('.outcome', { hasText: 'dead' }).waitFor(wait)
    await page.locator('#detail .title .state', { hasText: 'dead' }).waitFor(wait)
    expect(await row(id).locator('.took').innerText()).toBe('')
    expect(await page.locator('#detail .title').innerText()).not.toContain('took')
    const run = page.locator('#detail .stage').filter({ hasText: /^agent/ })
    const bars = await run.locator('.bar').evaluateAll((all) => all.map((bar) => bar.getAttribute('aria-label') ?? ''))
    for (const words of [await run.innerText(), ...bars]) expect(words).not.toMatch(/(^|[^\d])0 ms/)
  })

  test('the page says when a gateway last answered, not when it last read its files', async () => {
    const { generation, lastReloadAt } = await stage.ask('/api/health')
    await show(page, 'view=health')
    const seen = page
      .getByRole('region', { name: 'Gateways' })
      .locator('tbody tr', { hasText: String(generation) })
      .locator('time')
    const readTime = async () => Date.parse((await seen.getAttribute('datetime')) ?? '')
    await seen.waitFor(wait)
    const first = await readTime()
    expect(first).toBeGreaterThan(Date.parse(String(lastReloadAt)))
    // the time advances without a reload
    await expect.poll(readTime, wait).toBeGreaterThan(first)
    expect((await stage.ask('/api/health'))['lastReloadAt']).toBe(lastReloadAt)
  })

  test('a prompt shows each text from outside, that of a waiting event too', async () => {
    await stage.post('wake', { text: 'The backup is old.', mode: 'next-heartbeat' })
    await show(page, `id=${await stage.post('lasting', { text: 'Check the backup.' })}`)
    await openTab(page, 'Prompt and reply')
    const texts = page.getByLabel('Text from outside')
    // the summary of an earlier run may wait too
    await expect
      .poll(() => texts.allInnerTexts(), wait)
      .toEqual(
        expect.arrayContaining([
          expect.stringContaining('The backup is old.'),
          expect.stringContaining('Check the backup.'),
        ]),
      )
  })

  test('the tab counts a new failure while deliveries arrive without a pause', async () => {
    const count = Number((await stage.ask('/api/attention'))['count'])
    const opened = await stage.open()
    const drawn = async (id: string) => opened.locator(`#row-${id}`).waitFor(wait)
    const over = new AbortController()
    const busy = (async () => {
      while (!over.signal.aborted) await drawn(await stage.post('main', { text: 'One more' }))
    })()
    try {
      await drawn(await stage.post('broken', { text: 'Fail' }))
      await expect.poll(() => opened.title(), wait).toBe(`(${count + 1}) Hookloom`)
    } finally {
      over.abort()
      await busy
    }
  })

  test('the page wrote no error to the console', () => {
    expect(stage.errors).toEqual([])
  })
})
