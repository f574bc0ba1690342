// The replay on the page: it runs again after each save, shows what the save would change, and publishes a save that waits.
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { writeFiles } from '../e2e/gateway.ts'
import { findBarriers, hasBrowser, shoot, show, type Stage, startStage } from './stage.ts'

const wait = { timeout: 60_000 }
const file = 'hooks/transforms/x.ts'
const fixture = 'hooks/transforms/x.fixtures/keeps-it.json'
const buildConfig = (hold = false) => ({
  hooks: {
    retain: 200,
    transforms: { hold },
    mappings: [
      { id: 'x', match: { path: 'x' }, transform: { module: 'x.ts' }, deliver: false },
      { id: 'y', match: { path: 'y' }, messageTemplate: '{{n}} at {{now}}', deliver: false },
    ],
  },
})
/** The field `name` of the action contains the time, so it differs in each run. */
const first = `export default ({ payload: { kind } }) =>
  ({ message: 'Dear ' + kind + ',\\nthe build is done.\\n\\nBye', name: 'at ' + process.hrtime.bigint() })\n`
const second = `export default ({ payload: { kind } }) => {
  if (kind === 'skip') return null
  if (kind === 'throw') throw new TypeError('never')
  return { message: 'Dear ' + kind + ',\\nthe build is ' + (kind === 'field' ? 'green' : 'done') + '.\\n\\nBye',
    name: 'at ' + process.hrtime.bigint() }
}\n`
const third = first.replaceAll('the build', 'your build')
const kinds = ['same', 'field', 'field', 'skip', 'throw', 'same', 'same', 'same', 'same', 'same']

describe.skipIf(!hasBrowser)(
  'the replay on the page in Chromium (apt-get install chromium, or CHROMIUM=<file>)',
  { timeout: 120_000 },
  () => {
    let stage: Stage
    let page: Page
    const report = () => page.locator('.report')
    const readClasses = async () =>
      (await page.locator('.classes li').allInnerTexts()).map((text) => text.replaceAll(/\s+/g, ' '))
    const waitForSentence = (text: string) => page.locator('.replay > .said', { hasText: text }).waitFor(wait)
    const save = (text: string) => writeFiles(stage.gateway.dir, { [file]: text })

    beforeAll(async () => {
      stage = await startStage({ config: buildConfig(), files: { [file]: first } })
      for (const kind of kinds) await stage.post('x', { kind })
      page = await stage.open({ hash: 'view=replay' })
      await waitForSentence('10 requests, no difference.')
    })
    afterAll(() => stage.close())

    test('the replay runs again after a save, and lists changed fields, skips, exceptions and values that depend on the clock separately', async () => {
      const [began, used] = [performance.now(), process.cpuUsage()]
      save(second)
      await report().locator('ins', { hasText: 'green' }).first().waitFor(wait)
      const [took, { user, system }] = [performance.now() - began, process.cpuUsage(used)]
      const work = Math.round((user + system) / 1_000)
      console.log(`from the save to its diff on the page: ${Math.round(took)} ms, with ${work} ms of processor time`)
      await waitForSentence('10 requests, 4 would differ.')
      expect(await readClasses()).toEqual(['6 same 60 %', '2 changed 20 %', '1 now skipped 10 %', '1 now parks 10 %'])
      const groups = await page.locator('.group h3').allInnerTexts()
      expect(groups.map((text) => text.replaceAll(/\s+/g, ' '))).toEqual([
        'changed actions[].message 2 requests, 20 %',
        'now parks 1 request, 10 %',
        'now skipped 1 request, 10 %',
      ])
      expect(await page.locator('.unstable li').allInnerTexts()).toEqual(['actions[].name 8 requests'])
      const [before, after] = await page.locator('.group.changed pre').allInnerTexts()
      expect(before?.split('\n')).toEqual(['  Dear field,', '− the build is done.', '  ', '  Bye'])
      expect(after?.split('\n')).toEqual(['  Dear field,', '+ the build is green.', '  ', '  Bye'])
      expect(await page.locator('.group.changed del').allInnerTexts()).toEqual(['done'])
      await page.locator('.group.now-parks pre', { hasText: 'park transform-failed' }).waitFor(wait)
    })

    test('a save that does not build is shown with its code frame, and parks no delivery', async () => {
      save(`${second}\n(`)
      await waitForSentence('The save does not load.')
      const problem = report().locator('.problem')
      await problem.getByText('does not build').waitFor(wait)
      await problem.locator('pre', { hasText: 'x.ts:' }).waitFor(wait)
      await problem.getByText('10 requests not compared: this save does not go live.').waitFor(wait)
      expect(await page.locator('.classes li, .group').count()).toBe(0)
      save(second)
      await waitForSentence('10 requests, 4 would differ.')
    })

    test('the recorded outcome is a third column if the live code already decides differently', async () => {
      const expected = { request: { path: 'x', payload: { kind: 'same' } }, expect: { decision: 'skip' } }
      writeFiles(stage.gateway.dir, { [fixture]: JSON.stringify(expected), [file]: third })
      await waitForSentence('A save is not live. 10 requests, 10 would differ.')
      const changed = page.locator('.group.changed').filter({ hasText: '8 requests' })
      const names = await changed.locator('figcaption').allInnerTexts()
      expect(names.slice(0, 2)).toEqual(['before: live code', 'after: files on disk'])
      const field = page.locator('.change', { hasText: 'recorded when it came' }).first()
      await field.waitFor(wait)
      expect(await field.locator('figcaption').allInnerTexts()).toEqual([
        'before: live code',
        'after: files on disk',
        'recorded when it came',
      ])
      await page
        .getByRole('region', { name: /decided otherwise when it came/ })
        .first()
        .waitFor(wait)
      expect(await page.locator('.group.now-works h3').innerText()).toContain('2 requests, 20 %')
    })

    test('the filters of the replay are kept in the address', async () => {
      await page.getByRole('combobox', { name: 'the last' }).selectOption('20')
      const hook = page.getByRole('textbox', { name: 'hook' })
      await hook.press('y')
      await page.getByText('No kept request fits these filters.').waitFor(wait)
      expect(new URL(page.url()).hash).toBe('#view=replay&last=20&hook=y')
      // the template contains the time of the request, which is not a difference
      await stage.post('y', { n: 1 })
      await page.reload()
      await waitForSentence('1 request, no difference.')
      expect(await page.getByRole('textbox', { name: 'hook' }).inputValue()).toBe('y')
      await show(page, 'view=replay&last=3&source=nobody')
      await page.getByText('No kept request fits these filters.').waitFor(wait)
      await show(page, 'view=replay&last=3&hook=x')
      await waitForSentence('3 requests, 3 would differ.')
      await page.goBack()
      await page.goBack()
      await waitForSentence('1 request, no difference.')
    })

    test('a paused replay says that a file was saved, and compares the file when it is resumed', async () => {
      await show(page, 'view=replay&hook=x')
      await waitForSentence('10 requests, 10 would differ.')
      await page.keyboard.press('p')
      await page.getByRole('button', { name: 'resume' }).waitFor(wait)
      save(third.replaceAll('Bye', 'So long'))
      await page.getByRole('button', { name: 'resume · saved since' }).waitFor(wait)
      expect(await report().getByText('So long').count()).toBe(0)
      await page.keyboard.press('p')
      await report().getByText('So long').first().waitFor(wait)
    })

    test('a replay that fails shows no result of an earlier query, and can be run again', async () => {
      await page.route('**/api/replay?**', (route) => route.abort())
      await page.getByRole('textbox', { name: 'hook' }).fill('y')
      await page.locator('.replay > .said.bad').waitFor(wait)
      expect(await page.locator('.group').count()).toBe(0)
      await page.unroute('**/api/replay?**')
      await page.getByRole('button', { name: 'run again' }).click()
      await waitForSentence('1 request, no difference.')
      await page.getByRole('textbox', { name: 'hook' }).fill('x')
      await waitForSentence('10 requests, 10 would differ.')
      // the browser logs each failed request as an error
      stage.errors.splice(0)
    })

    test('the replay links each example to its delivery, and lists every request in a table', async () => {
      await report().getByText('All requests').click()
      await expect.poll(() => report().locator('tbody tr').count(), wait).toBe(10)
      const id = await page.locator('.group .id').first().innerText()
      await page.locator('.group .id').first().click()
      await page.locator('#detail .id', { hasText: id }).waitFor(wait)
      await page.keyboard.press('Escape')
      await page.keyboard.press('3')
      await waitForSentence('10 requests, 10 would differ.')
    })

    test('markup in a payload and in an edit is shown as text', async () => {
      const text = '<img src=x onerror="window.owned=1">\u202Egnp.exe\u001B[2J'
      await stage.post('x', { kind: text })
      save(third.replaceAll('Bye', '<script>window.owned=1</script>'))
      await page.getByRole('button', { name: 'run again' }).click()
      await report().getByText('<script>').first().waitFor(wait)
      await report().getByText('onerror').first().waitFor(wait)
      expect(await page.evaluate('window.owned')).toBeUndefined()
      expect(await report().locator('img').count()).toBe(0)
      // adds one action of 200,000 characters
      save(`export default () => [{ message: 'one' }, { message: 'x'.repeat(200_000) }]`)
      await report().getByText('actions[1]').first().waitFor(wait)
      expect((await report().innerText()).length).toBeLessThan(50_000)
      save(third.replaceAll('Bye', '<script>window.owned=1</script>'))
      await report().getByText('<script>').first().waitFor(wait)
      const shown = await report().innerText()
      expect([...'\u202E\u001B'].filter((mark) => shown.includes(mark))).toEqual([])
    })

    test(
      'a replay has no serious finding of axe-core and nothing wider than the window, in light and dark, narrow and wide',
      { timeout: 120_000 },
      async () => {
        await show(page, 'view=replay&hook=x')
        await page.locator('.group').first().waitFor(wait)
        for (const [colorScheme, width] of [
          ['light', 1440],
          ['dark', 1440],
          ['light', 360],
          ['dark', 3840],
        ] as const) {
          await page.emulateMedia({ colorScheme })
          await page.setViewportSize({ width, height: 900 })
          await shoot(page, `replay-${colorScheme}-${width}`)
          if (width !== 3840) expect(await findBarriers(page), `${colorScheme} ${width}`).toEqual([])
          const overflow = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
          expect(overflow, `${width}`).toBeLessThanOrEqual(0)
        }
        expect(stage.errors).toEqual([])
      },
    )

    test('a group of the replay shows the difference of each of its deliveries, and a click on a class filters groups and requests', async () => {
      await show(page, 'view=replay')
      save(second)
      const group = page.locator('.group.changed').first()
      await group.locator('ins', { hasText: 'green' }).waitFor(wait)
      await group.getByText(/^1 of \d+$/).waitFor(wait)
      const first = await group.locator('.id').innerText()
      await group.getByRole('button', { name: 'next' }).click()
      await group.getByText(/^2 of \d+$/).waitFor(wait)
      await expect.poll(() => group.getByText('Replaying …').count(), wait).toBe(0)
      expect(await group.locator('.id').innerText()).not.toBe(first)
      await group.locator('ins').first().waitFor(wait)
      await group.getByRole('button', { name: 'previous' }).click()
      await expect.poll(() => group.locator('.id').innerText(), wait).toBe(first)
      await page.locator('.classes button', { hasText: 'same' }).click()
      await expect.poll(() => page.locator('.group').count(), wait).toBe(0)
      const count = Number(await page.locator('.classes .same b').innerText())
      await expect.poll(() => report().locator('tbody tr').count(), wait).toBe(count)
      await page.locator('.classes button', { hasText: 'same' }).click()
      await group.waitFor(wait)
    })

    test('the replay says which file was saved and when, and can update the fixtures that an edit breaks', async () => {
      const file = `export default ({ payload: { kind } }) => ({ message: 'Hello ' + kind })\n`
      const old = {
        request: { path: 'x', payload: { kind: 'a' } },
        expect: { decision: 'accept', actions: [{ message: 'Hi a' }] },
      }
      writeFiles(stage.gateway.dir, { [fixture]: JSON.stringify(old) })
      save(file)
      const failing = page.getByRole('region', { name: 'Fixtures that fail' })
      await failing.getByLabel('Failing fixtures').getByText('Hello a').waitFor(wait)
      await page.locator('#last-save').getByText(/x\.ts/).waitFor(wait)
      expect(await page.locator('#last-save').innerText()).toMatch(/saved \d+ s ago\.$/)
      await failing.getByRole('button', { name: 'update fixtures' }).click()
      await page.locator('#updated').getByText('keeps-it.json').waitFor(wait)
      await failing.waitFor({ ...wait, state: 'hidden' })
      const { expect: expected } = JSON.parse(readFileSync(join(stage.gateway.dir, fixture), 'utf8'))
      expect(expected).toEqual({ decision: 'accept', actions: [{ message: 'Hello a' }] })
      rmSync(join(stage.gateway.dir, fixture))
    })

    test('the deliveries of a difference can be opened and saved as a fixture, and run again after a second press that confirms it', async () => {
      await show(page, 'view=replay')
      save(second)
      const group = page.locator('.group.changed').first()
      await group.locator('ins', { hasText: 'green' }).waitFor(wait)
      await group.getByRole('button', { name: 'keep as fixture' }).click()
      await group.getByText(/^Created .*\.json\. It expects the decision/).waitFor(wait)
      const count = async () => ((await stage.ask('/api/deliveries?limit=500'))['deliveries'] as unknown[]).length
      const before = await count()
      const again = group.getByRole('button', { name: /^run these \d+ again$/ })
      const ids = Number(/\d+/.exec(await again.innerText())?.[0])
      await again.click()
      expect(await count()).toBe(before)
      await group.getByRole('button', { name: /^really run/ }).click()
      await group.getByText(new RegExp(`^${ids} now accepted\\.$`)).waitFor(wait)
      expect(await count()).toBe(before + ids)
    })

    test('a replay without an edit shows no delivery as changed, not even a parked one', async () => {
      const same = await startStage({ config: buildConfig(), files: { [file]: second } }, stage.browser)
      try {
        for (const kind of [...kinds, 'throw']) await same.post('x', { kind })
        const { deliveries } = await same.ask('/api/health')
        expect(deliveries).toMatchObject({ parked: 2 })
        const other = await same.open({ hash: 'view=replay' })
        const replayed = other.locator('.replay > .said', { hasText: '11 requests, no difference.' })
        await replayed.waitFor(wait)
        const readShownClasses = async () =>
          (await other.locator('.classes li').allInnerTexts()).map((text) => text.split(/\s+/))
        expect(await readShownClasses()).toEqual([['11', 'same', '100', '%']])
        expect(await other.locator('.group, .changed').count()).toBe(0)
        expect(await other.locator('.report').innerText()).not.toContain('problem.')
        // the edit moves the lines of the code frame, which is not a difference
        const edited = second.replaceAll('Bye', 'So long').replace('{\n', '{\n  // one line more\n')
        writeFiles(same.gateway.dir, { [file]: edited })
        await other.locator('.replay > .said', { hasText: '11 requests, 8 would differ.' }).waitFor(wait)
        expect((await readShownClasses()).map(([count, ...words]) => [count, words[0]])).toEqual([
          ['3', 'same'],
          ['8', 'changed'],
        ])
        expect(await other.locator('.report').innerText()).not.toContain('problem.')
        expect(same.errors).toEqual([])
      } finally {
        await same.close()
      }
    })

    test('a save that waits because it would change recent deliveries can be published', async () => {
      const held = await startStage({ config: buildConfig(true), files: { [file]: first } }, stage.browser)
      try {
        for (const kind of kinds) await held.post('x', { kind })
        const other = await held.open()
        writeFiles(held.gateway.dir, { [file]: third })
        await other.getByRole('link', { name: 'a save waits' }).click()
        const summary = other.locator('.replay > .said')
        await summary.getByText('A save is not live. 10 requests, 10 would differ.').waitFor(wait)
        await other.getByRole('button', { name: 'publish' }).click()
        await other.locator('#publish').waitFor({ ...wait, state: 'hidden' })
        await summary.getByText(/^10 requests, 10 would differ\./).waitFor(wait)
        expect(await held.ask('/readyz')).toMatchObject({ held: false, degraded: false })
        expect(held.errors).toEqual([])
      } finally {
        await held.close()
      }
    })
  },
)
