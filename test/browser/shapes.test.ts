// The learnt payloads on the page: the template field completes paths, and the bench lists changes. By keyboard, in light and dark, with
// hostile payloads.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findBarriers, hasBrowser, mappings, shoot, show, type Stage, startStage, usual } from './stage.ts'

const wait = { timeout: 60_000 }
const order = { order: { title: 'Two lamps', total: 12.5, 'odd-key': 1 }, orderer: 'Ada', event: 'placed' }

describe.skipIf(!hasBrowser)('the payloads of a hook in Chromium', () => {
  let stage: Stage
  let page: Page
  const template = () => page.locator('#bench-template')
  const options = () => page.getByRole('listbox', { name: 'Paths of the payload' }).getByRole('option')
  const readPaths = () => options().evaluateAll((all) => all.map((each) => each.querySelector('bdi')?.textContent))
  const readChosenPath = () => page.locator('#paths [aria-selected=true] bdi').innerText()
  const prompt = () => page.locator('.beside [aria-label=after], [aria-label^="Prompt, as the agent"]')

  /** Waits until the gateway has learnt a path, and opens the bench of the hook with an empty draft. */
  async function openDraft(hook: string, learnt: string): Promise<void> {
    const readLearntPaths = async () => JSON.stringify((await stage.ask(`/api/paths?hook=${hook}`))['paths'])
    await expect.poll(readLearntPaths, wait).toContain(learnt)
    await show(page, `view=hooks&bench=${hook}`)
    await page.locator('.bench h2', { hasText: hook }).waitFor(wait)
    await page.locator('#edit-template, #bench-template').first().waitFor(wait)
    if (await page.locator('#edit-template').isVisible()) await page.locator('#edit-template').click()
    await template().fill('')
  }

  beforeAll(async () => {
    const wide = { id: 'wide', match: { path: 'wide' }, messageTemplate: 'Say {{text}}', deliver: false, retain: true }
    const others = ['wild', 'deep'].map((id) => ({ ...wide, id, match: { path: id } }))
    const hooks = { mappings: [...mappings, wide, ...others] }
    stage = await startStage({ ...usual, config: { ...usual.config, hooks }, development: true })
    page = await stage.open()
  })
  afterAll(() => stage.close())

  test('a path in a template can be completed with the keyboard alone, and without suggestions the keys edit the text', async () => {
    await stage.post('plain', order)
    await openDraft('plain', 'order.title')
    await template().pressSequentially('Say {{ord')
    await expect.poll(readPaths, wait).toEqual(['order', 'order.title', 'order.total', 'order.odd-key', 'orderer'])
    expect(await template().getAttribute('aria-activedescendant')).toBe('path-0')
    await options().nth(1).getByText('string, in 1 of 1').waitFor(wait)
    expect(await findBarriers(page)).toEqual([])
    await page.keyboard.press('ArrowUp')
    expect(await readChosenPath()).toBe('orderer')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    expect(await template().inputValue()).toBe('Say {{order.title}}')
    await prompt().getByText('Say Two lamps').waitFor(wait)
    expect(await options().count()).toBe(0)
    // without an open list, Enter is an ordinary key of a text field
    await page.keyboard.press('Enter')
    await page.keyboard.type('{{ev')
    await expect.poll(readPaths, wait).toEqual(['payload.event'])
    await page.keyboard.press('Escape')
    expect(await options().count()).toBe(0)
    expect(await template().getAttribute('aria-activedescendant')).toBeNull()
    expect(await page.evaluate('document.activeElement.id')).toBe('bench-template')
    await page.keyboard.press('Control+Space')
    await page.keyboard.press('Enter')
    expect(await template().inputValue()).toBe('Say {{order.title}}\n{{payload.event}}')
    await prompt().getByText('placed').waitFor(wait)
    // in an existing placeholder, only the path is replaced
    await template().fill('{{ordre | truncate: 3}}')
    for (const key of ['Home', ...Array.from({ length: 5 }, () => 'ArrowRight')]) await page.keyboard.press(key)
    await page.keyboard.press('Control+Space')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    expect(await template().inputValue()).toBe('{{order.title | truncate: 3}}')
    await template().fill('')
    await page.keyboard.type('{{or')
    await options().first().waitFor(wait)
    await page.keyboard.press('Tab')
    expect(await options().count()).toBe(0)
    expect(await page.evaluate('document.activeElement.id')).not.toBe('bench-template')
  })

  test('a path can be completed with the mouse, on a phone, and in a light and a dark theme', async () => {
    await page.setViewportSize({ width: 360, height: 760 })
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      await template().fill('')
      await template().focus()
      await page.keyboard.type('{{or')
      await options().first().waitFor(wait)
      expect(await findBarriers(page)).toEqual([])
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360)
      await shoot(page, `completion-360-${colorScheme}`)
    }
    await options().nth(2).click()
    expect(await template().inputValue()).toBe('{{order.total}}')
    expect(await page.evaluate('document.activeElement.id')).toBe('bench-template')
    await page.setViewportSize({ width: 1440, height: 900 })
    await page.emulateMedia({ colorScheme: 'light' })
  })

  test('a payload with ten thousand keys, deep nesting, __proto__, direction marks or a megabyte of text suggests no invalid path and breaks no layout', async () => {
    const letters = Array.from({ length: 26 }, (_, n) => String.fromCodePoint(97 + n))
    const wide = Object.fromEntries(letters.flatMap((one) => ['x', 'y', 'z'].map((two) => [`key${one}${two}`, 1])))
    await stage.post('wide', wide)
    await openDraft('wide', 'keyzz')
    await page.keyboard.type('{{key')
    await expect.poll(() => options().count(), wait).toBe(50)
    const deep = JSON.parse(`${'{"deep":'.repeat(60)}{"end":1}${'}'.repeat(60)}`) as unknown
    const payloads = [
      Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`key${n}`, n])),
      deep,
      JSON.parse('{"__proto__": {"polluted": "yes"}, "constructor": {"prototype": 1}}') as unknown,
      { '<img src=x onerror=alert(1)>': 1, 'a\u202eb': 'hidden', 'k}}{{x': 2, text: 'x'.repeat(1_000_000) },
      JSON.parse(`${'{"deep":'.repeat(99)}{"end":1}${'}'.repeat(99)}`) as unknown,
    ]
    for (const payload of payloads.slice(0, 4)) await stage.post('wild', payload)
    await stage.post('wild', { known: 1 })
    await openDraft('wild', '')
    for (const typed of ['{{', '{{__p', '{{<im', '{{a']) {
      await template().fill('')
      await page.keyboard.type(typed)
      for (const path of await readPaths()) expect(path).toMatch(/^[\w.[\]]+$/)
    }
    await template().fill('Say {{text}}')
    await page.locator('.request summary', { hasText: 'Body' }).click()
    await page.locator('#bench-body').fill('{"__proto__": {"polluted": "yes"}, "text": "only data"}')
    await prompt().getByText('Say only data').waitFor(wait)
    expect(await page.evaluate('({}).polluted')).toBeUndefined()
    // the same payloads, typed into the body of the request
    for (const payload of payloads) {
      await page.locator('#bench-body').fill(JSON.stringify(payload))
      await page.locator('section[aria-label=Result][aria-busy=false]').waitFor(wait)
    }
    expect(await page.locator('.bench').innerText()).not.toContain('\u202e')
    expect(await page.locator('.bench img').count()).toBe(0)
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
    expect(await findBarriers(page)).toEqual([])
  })

  test('a change of a field with a long path shows at its end what changed', async () => {
    const nest = (value: unknown) =>
      Array.from({ length: 12 }).reduce<object>((inner) => ({ customer_delivery_address: inner }), {
        delivery_instructions: value,
      })
    const readShapes = async () => JSON.stringify(await stage.ask('/api/shapes?hook=deep'))
    await stage.post('deep', nest(1))
    await expect.poll(readShapes, wait).toContain('delivery_instructions')
    await stage.post('deep', nest('at the door'))
    await expect.poll(readShapes, wait).toContain('now sometimes string')
    await show(page, 'view=hooks&bench=deep')
    const change = page.getByRole('list', { name: 'What changed' }).getByRole('listitem').first()
    await change.waitFor(wait)
    expect(await change.innerText()).toMatch(
      /customer_delivery_address.* … .*delivery_instructions is now sometimes string/,
    )
    await show(page, 'view=list')
  })

  test('a change in the payloads is shown with a request that contains it, and one press makes a fixture of that request', async () => {
    const folder = join(stage.gateway.dir, 'hooks/transforms/review.fixtures')
    await stage.post('review', { title: 'Lamps', size: 1 })
    await expect.poll(async () => JSON.stringify(await stage.ask('/api/shapes?hook=review')), wait).toContain('"size"')
    const id = await stage.post('review', { title: 'Lamps', size: 'large' })
    await expect
      .poll(async () => JSON.stringify(await stage.ask('/api/shapes?hook=review')), wait)
      .toContain('now sometimes string')
    await show(page, 'view=hooks&bench=review')
    const changes = page.getByRole('list', { name: 'What changed' })
    const change = changes.getByRole('listitem').filter({ hasText: 'size is now sometimes string' })
    await change.getByRole('button', { name: 'make it a fixture' }).focus()
    await page.keyboard.press('Enter')
    await page.getByText(/Created .*\.json/).waitFor(wait)
    const [file = ''] = readdirSync(folder)
    expect(JSON.parse(readFileSync(join(folder, file), 'utf8'))).toMatchObject({
      request: { payload: { title: 'Lamps', size: 'large' } },
    })
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      expect(await findBarriers(page)).toEqual([])
      await shoot(page, `drift-${colorScheme}`)
    }
    await change.getByRole('link', { name: 'show one' }).click()
    await page.locator('#detail').getByRole('button', { name: id }).waitFor(wait)
  })

  test('the bench shows which lines of a transform never run, and which requests and fields no fixture has', async () => {
    await show(page, 'view=hooks&bench=review')
    const coverage = page.getByRole('region', { name: 'Coverage of review.ts' })
    await coverage.getByRole('button', { name: 'what do its fixtures cover?' }).focus()
    await page.keyboard.press('Enter')
    const code = coverage.getByRole('list', { name: 'Code' })
    await code.getByText(/review\.ts [1-5] of \d+ lines/).waitFor(wait)
    // no fixture and no kept request is skipped, so no request reaches line 4
    await expect
      .poll(async () => (await code.innerText()).replaceAll(/\s+/g, ' '), wait)
      .toMatch(/review\.ts:4 nothing runs/)
    expect(await code.getByRole('link', { name: 'review.ts:4' }).getAttribute('href')).toBe(
      `vscode://file/${stage.gateway.dir.slice(1)}/hooks/transforms/review.ts:4`,
    )
    await coverage.getByText(/\d of \d kept requests run only code that fixtures run too/).waitFor(wait)
    const fields = coverage.getByRole('list', { name: 'Payloads in fixtures' })
    await fields
      .getByText(/\d of \d fields are in fixtures/)
      .first()
      .waitFor(wait)
    for (const [width, colorScheme] of [
      [1440, 'light'],
      [360, 'dark'],
    ] as const) {
      await page.setViewportSize({ width, height: 900 })
      await page.emulateMedia({ colorScheme })
      await coverage.scrollIntoViewIfNeeded()
      expect(await findBarriers(page)).toEqual([])
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width)
      await shoot(page, `coverage-${width}-${colorScheme}`)
    }
    await page.setViewportSize({ width: 1440, height: 900 })
  })

  test('code that only a kept request runs is told apart from code that nothing runs, and the request becomes a fixture with one press', async () => {
    await stage.post('review', { title: 'Old', skip: true })
    await show(page, 'view=list')
    await show(page, 'view=hooks&bench=review')
    const coverage = page.getByRole('region', { name: 'Coverage of review.ts' })
    const measure = coverage.getByRole('button', { name: 'what do its fixtures cover?' })
    const code = coverage.getByRole('list', { name: 'Code' })
    const readPlaces = async () => (await code.getByRole('listitem').allInnerTexts()).slice(1)
    await measure.click()
    await expect
      .poll(readPlaces, wait)
      .toEqual([
        expect.stringMatching(/^review\.ts:3 nothing runs /),
        expect.stringMatching(/^review\.ts:4 only kept requests run /),
      ])
    const uncovered = coverage.getByRole('list', { name: 'Requests without a fixture' }).getByRole('listitem')
    expect(await uncovered.count()).toBe(1)
    await uncovered.getByRole('button', { name: 'make it a fixture' }).focus()
    await page.keyboard.press('Enter')
    // the new fixture makes the figures out of date, but the sentence stays
    await expect.poll(() => code.count(), wait).toBe(0)
    const said = coverage.getByText(/Created .* It expects the decision skip\./)
    await said.waitFor(wait)
    const [, created = ''] = /Created (.*\.json)\./.exec(await said.innerText()) ?? []
    expect(JSON.parse(readFileSync(created, 'utf8'))).toMatchObject({
      request: { payload: { title: 'Old', skip: true } },
    })
    expect(await findBarriers(page)).toEqual([])
    await measure.click()
    await expect.poll(readPlaces, wait).toEqual([expect.stringMatching(/^review\.ts:3 nothing runs /)])
    expect(await uncovered.count()).toBe(0)
  })

  test('the page wrote no error to the console', () => {
    expect(stage.errors).toEqual([])
  })
})
