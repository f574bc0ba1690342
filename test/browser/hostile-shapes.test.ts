// Hostile payloads in the views that learn from payloads: the shapes of a hook, what changed, the completion of paths, the bench, and the
// coverage of a transform. The page shows their text as text, fits its window, and is used with the keyboard alone.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Locator, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { openTab, findBarriers, hasBrowser, shoot, show, type Stage, startStage } from './stage.ts'

const wait = { timeout: 60_000 }
const markup = '</script><img src=x onerror="window.owned=1"><svg onload=alert(1)>'
const bidi = '\u202egnp.exe\u2066\u200f'
/** The characters of the payloads that are invisible or change a line. */
const unseen = '\u0007\u001b\u200f\u202e\u2066\u2800\u3164\u{e0041}'
/** The third letter is not drawn, but is legal in the name of a field, so the gateway learns the name. */
const unseenName = 'pa\u3164id'
/** The name as a path, which a template reads. */
const unseenPath = String.raw`['pa\u3164id']`
const longName = 'name_'.repeat(12)
const stripe = { 'stripe-signature': 't=1,v1=0' }
const nest = (levels: number) => `${'{"deep":'.repeat(levels)}1${'}'.repeat(levels)}`

const signs = {
  text: `${markup}${bidi}\u001b[2J\u0007`,
  [markup]: bidi,
  [bidi]: markup,
  [unseenName]: 'no\u2800thing\u{e0041}',
  [`${bidi}password`]: 'hunter2-hunter2',
  [longName]: { [longName]: { [longName]: 'w'.repeat(3_000) } },
}
/** The requests, and the message that the template `Say {{text}}` makes of each. The bodies are texts, because an object literal has no own key `__proto__`. */
const payloads: Readonly<Record<string, readonly [body: string, message: string]>> = {
  names: [
    '{"__proto__":{"polluted":"yes"},"constructor":{"prototype":{"polluted":1}},"toString":"a","hasOwnProperty":2,"text":"names"}',
    'Say names',
  ],
  signs: [JSON.stringify(signs), 'Say </script><img src=x onerror="window.owned=1"><svg onload=alert(1)>'],
  emoji: [String.raw`{"text":"👩‍💻 👍🏽 \ud83d and \ude00","\ud83d":"\udc00","😀":{"👩‍💻":"🏴󠁧󠁢󠁥󠁮󠁧󠁿"}}`, 'Say 👩‍💻 👍🏽'],
  keys: [
    JSON.stringify(
      Object.fromEntries([['text', 'keys'], ...Array.from({ length: 9_999 }, (_, at) => [`key${at + 1}`, at])]),
    ),
    'Say keys',
  ],
  deep: [`{"text":"deep","deep":${nest(63)}}`, 'Say deep'],
  large: [JSON.stringify({ text: 'x'.repeat(1_100_000) }), 'Say xxx'],
  digits: [`{"text":"digits","n":1${'0'.repeat(1_000_000)}}`, 'Say digits'],
}
const bodyOf = (name: string) => payloads[name]?.[0] ?? ''

const code = `export default ({ payload }) => {
  if (payload.odd) {
    return { message: 'odd ' + payload.odd }
  }
  return { message: 'got ' + payload.text }
}
`
const mappings = [
  { id: 'odd', match: { path: 'odd' }, transform: { module: 'odd.ts' }, deliver: false, retain: true },
  { id: 'seen', match: { path: 'seen' }, messageTemplate: 'Seen', deliver: false, retain: true },
  { id: 'text', match: { path: 'text' }, messageTemplate: 'Say {{text}}', deliver: false, retain: true },
]
const deepFixture = `{"request":{"path":"odd","payload":${nest(100)}},"expect":{"decision":"refusal","code":"body-invalid"}}`

describe.skipIf(!hasBrowser)('hostile payloads in the views that learn from payloads, in Chromium', () => {
  let stage: Stage
  let page: Page
  const dialogs: string[] = []
  const body = () => page.locator('#bench-body')
  const template = () => page.locator('#bench-template')
  const tree = () => page.locator('#detail .tree')
  const button = (name: string | RegExp) => page.locator('.bench').getByRole('button', { name })
  const result = () => page.getByRole('region', { name: 'Result' })
  const changes = () => page.getByRole('list', { name: 'What changed' })
  const coverage = () => page.getByRole('region', { name: 'Coverage of odd.ts' })
  const readLearnt = async (path: string) => JSON.stringify(await stage.ask(path))
  const readFocus = () => page.evaluate<string>('document.activeElement.id || document.activeElement.innerText')

  async function open(hook: string): Promise<void> {
    await show(page, 'view=list')
    await show(page, `view=hooks&bench=${hook}`)
    await page.locator('.bench h2', { hasText: hook }).waitFor(wait)
    await body().waitFor({ ...wait, state: 'attached' })
    if (!(await body().isVisible())) await page.locator('.request summary', { hasText: 'Body' }).click()
  }

  async function tryBody(text: string): Promise<void> {
    await body().fill(text)
    await page.locator('section[aria-label=Result][aria-busy=false]').waitFor(wait)
  }

  async function press(target: Locator): Promise<void> {
    await target.focus().catch(async (cause: unknown) => {
      const shown = await page.locator('#view').innerText()
      throw new Error(`the page shows: ${shown.slice(0, 2_000)}`, { cause })
    })
    await page.keyboard.press('Enter')
  }

  /** The parts of the view that are more than text: elements, scripts that ran, and characters that are invisible or change a line. */
  async function findActive(): Promise<unknown[]> {
    const text = await page.locator('#view').innerText()
    const elements = page.locator('#view').locator('img, svg, script, iframe, a[href^=javascript]')
    const ran = await page.evaluate<unknown[]>('[window.owned, ({}).polluted, ...window.violations].filter(Boolean)')
    const unmarked = [...unseen].filter((character) => text.includes(character))
    return [...(await elements.allTextContents()), ...ran, ...unmarked, ...dialogs]
  }

  /** What keeps people from using the view, on a phone and in a wide window, in dark and light: it scrolls sideways, or axe finds a barrier. */
  async function findMisfits(name: string): Promise<string[]> {
    const found: string[] = []
    for (const [width, colorScheme] of [
      [360, 'dark'],
      [1_200, 'light'],
    ] as const) {
      await page.setViewportSize({ width, height: 900 })
      await page.emulateMedia({ colorScheme })
      const wide = await page.evaluate<string[]>(
        '[document.documentElement, view].filter((each) => each.scrollWidth > each.clientWidth).map(({ tagName }) => tagName)',
      )
      // axe knows this list only below a combobox: the arrow keys scroll it, and the focus stays in the text field
      const barriers = (await findBarriers(page)).filter(
        (each) => !each.startsWith('scrollable-region-focusable: <ul id="paths"'),
      )
      found.push(...wide, ...barriers)
      await shoot(page, `hostile-${name}-${width}-${colorScheme}`)
    }
    return found
  }

  /** Presses Tab from the beginning of the view to its end. Returns the names of the elements whose focus could not be seen. */
  async function walk(): Promise<string[]> {
    const unseen: string[] = []
    await page.locator('#view').focus()
    for (let steps = 0; ; steps += 1) {
      await page.keyboard.press('Tab')
      const [isInside, isSeen, name] = await page.evaluate<[boolean, boolean, string]>(`(() => {
        const { activeElement } = document
        const { outlineStyle, outlineWidth } = getComputedStyle(activeElement)
        const { top, bottom, left, right } = activeElement.getBoundingClientRect()
        const isOnScreen = bottom > 0 && top < innerHeight && right > 0 && left < innerWidth
        const isMarked = outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2
        return [view.contains(activeElement), isMarked && isOnScreen, activeElement.outerHTML.slice(0, 80)]
      })()`)
      if (!isInside) return steps > 20 ? unseen : ['the walk ended early']
      if (steps > 1_000) return ['the walk does not leave the view']
      if (!isSeen) unseen.push(name)
    }
  }

  /** A page that collects its dialogs and what its policy refuses. */
  async function openWatchedPage(): Promise<Page> {
    const opened = await stage.open({ width: 1_200 })
    opened.on('dialog', (dialog) => void (dialogs.push(dialog.message()), dialog.dismiss()))
    await opened.evaluate(`window.violations = [], document.addEventListener('securitypolicyviolation', ({ violatedDirective }) =>
      window.violations.push(violatedDirective))`)
    return opened
  }

  beforeAll(async () => {
    stage = await startStage({
      config: { server: { maxBodyBytes: 8_000_000 }, hooks: { mappings } },
      files: { 'hooks/transforms/odd.ts': code, 'hooks/transforms/odd.fixtures/deep.json': deepFixture },
      development: true,
    })
    page = await openWatchedPage()
    await stage.post('odd', { text: 'first', type: 'usual' }, stripe)
    for (const name of ['keys', 'signs', 'names', 'emoji', 'deep']) {
      for (const hook of ['odd', 'text']) await stage.post(hook, bodyOf(name))
    }
    await stage.post('odd', { ...signs, type: `${markup}${bidi}`, source: bidi }, stripe)
    await stage.post('odd', { ...signs, type: 'usual', odd: markup }, stripe)
  })
  // a test that hangs leaves a page that no other test can use, and its own loop goes on until the page is closed
  afterEach(async ({ task }) => {
    if (task.result?.state !== 'fail') return
    await page.close()
    page = await openWatchedPage()
  })
  afterAll(() => stage.close())

  test('a hook whose newest request is too long to edit begins with an empty request, and says why', async () => {
    await stage.post('text', bodyOf('large'))
    await open('text')
    await result().getByText('too long to be edited').waitFor(wait)
    expect(await body().inputValue()).toBe('{}')
  })

  test.for(Object.entries(payloads))(
    'a typed request is tried, and shown as text: %s',
    async ([name, [text, message]]) => {
      await open('text')
      await tryBody(text)
      await result().getByLabel('Prompt, as the agent reads it').getByText(message).waitFor(wait)
      const list = page.getByRole('list', { name: 'Fields' })
      await list.getByRole('button', { name: 'text', exact: true }).waitFor(wait)
      expect(await list.getByRole('button').allInnerTexts()).not.toContainEqual(
        expect.stringMatching(/__proto__|constructor/),
      )
      expect(await findActive()).toEqual([])
      expect(await findMisfits(`try-${name}`)).toEqual([])
      await press(list.getByRole('button').last())
      await button('discard').waitFor(wait)
      expect(await findActive()).toEqual([])
      await press(button('discard'))
    },
  )

  test.for([65, 100, 2_000, 100_000])(
    'a request with %i levels that is typed into the bench is refused, and the answer names the limit',
    async (levels) => {
      await open('text')
      await tryBody(nest(levels))
      await result().getByText('400 body-invalid').waitFor(wait)
      await result().getByText('The body has more than 64 nested levels.').waitFor(wait)
      expect(await findActive()).toEqual([])
      expect(await findMisfits(`levels-${levels}`)).toEqual([])
    },
  )

  test('each branch and each key of a large payload is reached with the keyboard, and no press loses the focus', async () => {
    const detail = (name: string) => page.locator('#detail').getByRole('button', { name })
    await show(page, `id=${await stage.post('seen', bodyOf('keys'))}`)
    await openTab(page, 'Request')
    await tree().waitFor(wait)
    await press(detail('9900 more'))
    for (let left = 8_900; left > 0; left -= 1_000) {
      await expect.poll(readFocus, wait).toBe(`${left} more`)
      await page.keyboard.press('Enter')
    }
    await tree().getByText('key9999', { exact: true }).waitFor(wait)
    expect(await readFocus()).toBe('key9099')
    await show(page, `id=${await stage.post('seen', bodyOf('large'))}`)
    // a locator by role computes the name of each of the ten thousand buttons, which takes longer than a locator waits
    await expect.poll(() => page.locator('#detail .leaf').count(), wait).toBeLessThan(10)
    await press(detail('… 1,100,000 characters'))
    await expect
      .poll(
        () =>
          tree()
            .innerText()
            .then(({ length }) => length),
        wait,
      )
      .toBeGreaterThan(40_000)
    // the text is still cut, so it has no closing quote
    expect(await tree().innerText()).toMatch(/x… 1,100,000 characters\s*$/)
    expect(await readFocus()).toBe('… 1,100,000 characters')
  })

  test('the completion suggests only names that templates can read, shows their invisible characters, and needs no mouse', async () => {
    await expect.poll(() => readLearnt('/api/paths?hook=text'), wait).toContain(longName)
    await open('text')
    await tryBody(bodyOf('signs'))
    await template().fill('')
    const options = page.getByRole('listbox', { name: 'Paths of the payload' }).getByRole('option')
    const readPaths = () => options.evaluateAll((all) => all.map((each) => each.querySelector('bdi')?.textContent))
    await page.keyboard.type('{{')
    await options.first().waitFor(wait)
    expect(await readPaths()).toEqual(
      expect.arrayContaining(['text', 'toString', 'hasOwnProperty', unseenPath, longName]),
    )
    for (const path of await readPaths()) expect(path).not.toMatch(/__proto__|constructor|img|exe|<|\u202e/)
    expect(await findActive()).toEqual([])
    expect(await findMisfits('completion')).toEqual([])
    await page.keyboard.press('Tab')
    expect(await readFocus()).toBe('save-template')
    await page.keyboard.press('Shift+Tab')
    await page.keyboard.type('pa')
    await expect.poll(async () => (await readPaths())[0], wait).toBe(unseenPath)
    await page.keyboard.press('Enter')
    expect(await template().inputValue()).toBe(`{{${unseenPath}}}`)
    await result()
      .getByLabel('after', { exact: true })
      .getByText(/no(⟨2800⟩)?thing/)
      .waitFor(wait)
    await page.keyboard.type(' {{toS')
    await expect.poll(readPaths, wait).toEqual(['toString'])
    await page.keyboard.press('Escape')
    expect(await options.count()).toBe(0)
    expect(await readFocus()).toBe('bench-template')
    await press(button('discard'))
  })

  test('what changed is shown with hostile names as text, and a fixture is made of it with the keyboard', async () => {
    await expect.poll(() => readLearnt('/api/shapes?hook=odd'), wait).toMatch(/"event":"usual".*odd is new/)
    await open('odd')
    await changes().getByText(`stripe usual: ${unseenPath} is new: string`).waitFor(wait)
    expect(await findActive()).toEqual([])
    const change = changes()
      .getByRole('listitem')
      .filter({ hasText: `stripe usual: ${unseenPath}` })
    await press(change.getByRole('button', { name: 'make it a fixture' }))
    await change.getByText(/Created .*Removed: .*payload\.⟨202e⟩gnp\.exe⟨2066⟩⟨200f⟩password/).waitFor(wait)
    expect(await readFocus()).toBe('make it a fixture')
    expect(await findActive()).toEqual([])
    expect(await findMisfits('changes')).toEqual([])
    const folder = join(stage.gateway.dir, 'hooks/transforms/odd.fixtures')
    const [made = ''] = readdirSync(folder).filter((name) => name !== 'deep.json')
    expect(JSON.parse(readFileSync(join(folder, made), 'utf8'))).toMatchObject({
      request: { payload: { [markup]: bidi, [unseenName]: signs[unseenName], [`${bidi}password`]: '[removed]' } },
    })
  })

  test('the coverage shows hostile events and fields as text, even if a fixture has too many levels, and no press loses the focus', async () => {
    await open('odd')
    const measure = coverage().getByRole('button', { name: 'what do its fixtures cover?' })
    await press(measure)
    const uncovered = coverage().getByRole('list', { name: 'Requests without a fixture' }).getByRole('listitem')
    const hostile = uncovered.filter({ hasText: '⟨202e⟩gnp.exe⟨2066⟩⟨200f⟩ </script><img src=x' })
    await hostile.waitFor(wait)
    await coverage().getByText(`${unseenPath} (string)`).first().waitFor(wait)
    expect(await findActive()).toEqual([])
    await coverage().scrollIntoViewIfNeeded()
    expect(await findMisfits('coverage')).toEqual([])
    await press(hostile.getByRole('button', { name: 'make it a fixture' }))
    await coverage().getByText('Created').waitFor(wait)
    await expect.poll(() => uncovered.count(), wait).toBe(0)
    expect(await readFocus()).toBe('what do its fixtures cover?')
    expect(await findActive()).toEqual([])
    expect(await findMisfits('covered')).toEqual([])
  })

  test('Tab reaches each part of the view in its order, and the focus is always visible, in light and dark and on a phone', async () => {
    await open('odd')
    await tryBody(bodyOf('signs'))
    await press(button('make a template'))
    await press(coverage().getByRole('button', { name: 'what do its fixtures cover?' }))
    await coverage().getByRole('list', { name: 'Code' }).waitFor(wait)
    for (const [width, colorScheme] of [
      [360, 'dark'],
      [1_200, 'light'],
    ] as const) {
      await page.setViewportSize({ width, height: 900 })
      await page.emulateMedia({ colorScheme })
      expect(await walk()).toEqual([])
    }
  })

  test('no payload opened a dialog, broke the policy of the page, or wrote an error to its console', async () => {
    expect(await findActive()).toEqual([])
    expect(stage.errors).toEqual([])
  })
})
