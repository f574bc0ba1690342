// The page in a real browser: what it shows, what it does, and what a hostile payload cannot do.
import { execFile } from 'node:child_process'
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hookToken, writeFiles } from '../e2e/gateway.ts'
import { startFakeTelegram } from '../e2e/fakes/telegram.ts'
import { findBarriers, hasBrowser, shoot, show, type Stage, startStage, transform, usual } from './stage.ts'

const wait = { timeout: 15_000 }
const botToken = '110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw'
const replies = (path: string, to: string) => ({
  id: path,
  match: { path },
  messageTemplate: '{{text}}',
  channel: 'telegram',
  to,
})

describe.skipIf(!hasBrowser)(
  'the page, in Chromium (apt-get install chromium, or CHROMIUM=<file>)',
  { timeout: 60_000 },
  () => {
    let stage: Stage
    let page: Page
    const ids = { done: '', parked: '', event: '' }
    const row = (id: string) => page.locator(`#row-${id}`)
    const focused = () => page.evaluate<string>('document.activeElement.id')
    const chosen = () => page.evaluate<string | null>("new URLSearchParams(location.hash.slice(1)).get('id')")

    beforeAll(async () => {
      const { baseUrl } = await startFakeTelegram({ botToken, chats: [42] })
      const { config, files } = usual
      const mappings = [...config.hooks.mappings, replies('tells', '42'), replies('lost', '7')]
      stage = await startStage({
        config: { ...config, hooks: { ...config.hooks, mappings }, channels: { telegram: { botToken, baseUrl } } },
        files,
      })
      for (let n = 0; n < 60; n++) await stage.post('plain', { text: `old ${n}` })
      ids.done = await stage.post('review', { title: 'Fix the login', pull: { number: 7, labels: ['bug', 'ui'] } })
      ids.parked = await stage.post('review', { title: 'x', bad: true })
      ids.event = await stage.post('wake', { text: 'The backup is old.' })
      await fetch(`${stage.gateway.url}/plain`, { method: 'POST' })
      page = await stage.open()
    }, 60_000)
    afterAll(() => stage.close())

    test('exchanges the code of its link, takes it out of the address, and keeps no cookie', async () => {
      expect(new URL(page.url()).hash).toBe('')
      expect(await page.context().cookies()).toEqual([])
      expect(await page.evaluate('document.cookie + JSON.stringify(localStorage)')).toBe('{}')
      expect(await page.evaluate<string>("sessionStorage.getItem('hookloom-key')")).toMatch(/^hlk_/)
      // another tab has no key, and a link that was used has none to give
      const other = await page.context().newPage()
      await other.goto(stage.gateway.adminUrl)
      await other.getByText('hookloom open').waitFor(wait)
      await other.close()
    })

    describe('the list', () => {
      test('shows what came and what needs a look, and new rows as they come', async () => {
        await row(ids.parked).getByText('parked').waitFor(wait)
        await page.locator('.row.refused').getByText('127.0.0.1').waitFor(wait)
        const id = await stage.post('plain', { text: 'new' })
        await row(id).getByText('done').waitFor(wait)
        expect(await page.locator('.row').first().getAttribute('id')).toBe(`row-${id}`)
        await page.locator('#said', { hasText: 'new' }).waitFor({ ...wait, state: 'attached' })
      })

      test('keeps filters and search in the address, and a filter holds for rows that come', async () => {
        await page.getByRole('button', { name: 'parked', exact: true }).click()
        await row(ids.parked).waitFor(wait)
        await expect.poll(() => page.locator('.row').count(), wait).toBe(1)
        expect(new URL(page.url()).hash).toBe('#state=parked')
        await page.keyboard.press('/')
        await page.keyboard.type('revi')
        await expect.poll(() => new URL(page.url()).hash, wait).toBe('#state=parked&q=revi')
        const [unfit, fit] = [await stage.post('plain', { text: 'x' }), await stage.post('review', { bad: true })]
        await row(fit).waitFor(wait)
        expect(await row(unfit).count()).toBe(0)
        await page.goBack()
        await expect.poll(() => page.locator('.row').count(), wait).toBeGreaterThan(10)
      })

      test('pauses, counts what came, and catches up', async () => {
        await page.getByRole('button', { name: 'pause' }).click()
        const [one, two] = [await stage.post('plain', { text: '1' }), await stage.post('plain', { text: '2' })]
        await page.getByRole('button', { name: 'resume · 2 new' }).waitFor(wait)
        expect([await row(one).count(), await row(two).count()]).toEqual([0, 0])
        await page.keyboard.press('p')
        await row(two).waitFor(wait)
        await row(one).waitFor(wait)
      })

      test('names the sender as people do, and rows that come do not move what one reads further down', async () => {
        const id = await stage.post('plain', { source: 'github', text: 'named' })
        await row(id).getByText('GitHub', { exact: true }).waitFor(wait)
        await page.evaluate("document.getElementById('list').scrollTop = 900")
        const nth = async (name: string) => Number(await page.locator('.row').nth(12).getAttribute(name))
        await expect.poll(() => nth('aria-posinset'), wait).toBeGreaterThan(20)
        const readId = await page.locator('.row').nth(12).getAttribute('id')
        const place = () => page.evaluate<number>(`document.getElementById('${readId}').getBoundingClientRect().top`)
        const [before, count] = [await place(), await nth('aria-setsize')]
        const last = await stage.post('plain', { text: 'above' })
        await expect.poll(() => nth('aria-setsize'), wait).toBe(count + 1)
        expect(await place()).toBe(before)
        await page.evaluate("document.getElementById('list').scrollTop = 0")
        await row(last).waitFor(wait)
      })

      test('is used by keys alone, and the focus stays', async () => {
        const first = (await page.locator('.row').first().getAttribute('id'))?.slice(4)
        await page.keyboard.press('j')
        await expect.poll(chosen, wait).toBe(first)
        await page.keyboard.press('j')
        await page.keyboard.press('k')
        await expect.poll(chosen, wait).toBe(first)
        expect(await focused()).toBe('list')
        await page.keyboard.press('Enter')
        expect(await focused()).toBe('detail')
        await stage.post('plain', { text: 'comes while one reads' })
        await page.keyboard.press('Escape')
        expect(await focused()).toBe('list')
        expect(await chosen()).toBe(first)
        await page.keyboard.press('?')
        await page.getByRole('dialog', { name: 'Keys' }).waitFor(wait)
        await page.keyboard.press('Escape')
        await page.keyboard.press('Escape')
        await page.getByRole('dialog', { name: 'Keys' }).waitFor({ ...wait, state: 'hidden' })
      })
    })

    describe('one delivery', () => {
      test('says how often it was repeated, in its row too, as soon as that is counted', async () => {
        const twice = { 'idempotency-key': 'twice' }
        const id = await stage.post('plain', { text: 'x' }, twice)
        for (let sent = 0; sent < 2; sent += 1) await stage.post('plain', { text: 'x' }, twice)
        await row(id).getByText('· repeated 2 times').waitFor(wait)
        await show(page, `id=${id}`)
        const said = () => page.locator('#repeated').innerText()
        await expect.poll(said, wait).toMatch(/^repeated 2 times, last \d\d:\d\d:\d\d$/)
      })

      test('is a picture of the pipe, with payload, prompt, reply and answer', async () => {
        await show(page, `id=${ids.done}`)
        const detail = page.locator('#detail')
        await detail.getByText('seen Fix the login').waitFor(wait)
        const text = await detail.innerText()
        for (const part of [
          'the hook token',
          'path is "review"',
          'review.ts',
          'hook:review',
          'summary',
          'Answer to the sender: 200',
        ]) {
          expect(text).toContain(part)
        }
        await detail.getByText('Prompt, as it was built').click()
        await detail
          .getByText(/untrusted/i)
          .first()
          .waitFor(wait)
        expect(await detail.getByText('labels').isVisible()).toBe(true)
        await detail.getByText('9 headers').click()
        await detail.getByText('application/json').first().waitFor(wait)
        await shoot(page, 'delivery-light')
        await show(page, `id=${await stage.post('plain', { text: 'x' })}`)
        await detail.getByText('Say {{text}}').waitFor(wait)
        expect(await detail.locator('.tried li').allInnerTexts()).toEqual([
          expect.stringMatching(/^· skips payload\.skip/),
          expect.stringMatching(/^✓ plain path is "plain"/),
        ])
      })

      test('names the line that failed, and links to it in the editor', async () => {
        await show(page, `id=${ids.parked}`)
        await page.getByText('no reviewer for this').first().waitFor(wait)
        const link = page.locator('#open-editor')
        expect(await link.getAttribute('href')).toBe(
          `vscode://file/${stage.gateway.dir.slice(1)}/hooks/transforms/review.ts:3`,
        )
      })

      test('opens its transform in the editor with a key', async () => {
        await page.evaluate(
          `document.getElementById('open-editor').addEventListener('click', (event) => { event.preventDefault(); window.opened = event.currentTarget.href })`,
        )
        await page.keyboard.press('e')
        expect(await page.evaluate('window.opened')).toContain('review.ts:3')
      })

      test('is copied as a curl command without a token, which a shell runs as it is', async () => {
        const payload = { title: 'it\'s $(id) `id` \\ " !!\n', bad: true }
        await show(page, `id=${await stage.post('review', payload)}`)
        await page.locator('#detail .string', { hasText: 'it' }).first().waitFor(wait)
        await page.keyboard.press('c')
        await page.getByText('The curl command is in the clipboard.').waitFor(wait)
        const curl = await page.evaluate<string>('navigator.clipboard.readText()')
        expect(curl).toContain(`'${stage.gateway.url}/review'`)
        expect(curl).toContain('"Authorization: Bearer $HOOKLOOM_TOKEN"')
        expect(curl).not.toContain(hookToken)
        const { stdout } = await promisify(execFile)('sh', ['-c', curl], {
          env: { ...process.env, HOOKLOOM_TOKEN: hookToken },
        })
        const { deliveryId } = JSON.parse(stdout)
        expect(JSON.parse(String((await stage.ask(`/api/deliveries/${deliveryId}/request`))['body']))).toEqual(payload)
        await show(page, `id=${ids.parked}`)
        await page.getByText('no reviewer for this').first().waitFor(wait)
      })

      test('becomes a fixture of its transform, under a name that one may choose, and never over another one', async () => {
        const folder = join(stage.gateway.dir, 'hooks/transforms/review.fixtures')
        const write = async (name: string) => {
          await page.getByRole('button', { name: 'capture as fixture' }).click()
          await page.getByRole('textbox', { name: 'name of the fixture' }).fill(name)
          await page.keyboard.press('Enter')
        }
        await write('')
        const created = page.locator('.said', { hasText: /Created.* It fails until the code is fixed: .*/ })
        await created.waitFor(wait)
        expect(await created.innerText()).toContain(`${folder}/review-${ids.parked.slice(-8)}.json`)
        await write('red')
        await page.locator('.said', { hasText: 'red.json' }).waitFor(wait)
        await expect.poll(() => page.evaluate('document.activeElement.innerText'), wait).toBe('capture as fixture')
        await write('red')
        await page.locator('.said.bad', { hasText: 'exists already' }).waitFor(wait)
        expect(readdirSync(folder).toSorted()).toEqual(['red.json', `review-${ids.parked.slice(-8)}.json`])
        rmSync(folder, { recursive: true })
        await show(page, `id=${await stage.post('plain', { text: 'no transform' })}`)
        await expect.poll(() => page.getByRole('button', { name: 'capture as fixture' }).isDisabled(), wait).toBe(true)
        await show(page, `id=${ids.parked}`)
        await page.getByText('no reviewer for this').first().waitFor(wait)
      })

      test('is sent again, as it was and with another body', async () => {
        await page.getByRole('button', { name: 'edit and send' }).click()
        const area = page.getByRole('textbox', { name: 'Body' })
        await area.fill('{"title":"edited"}')
        await page.getByRole('button', { name: 'send as a new delivery' }).click()
        await page.locator('#detail').getByText('seen edited').waitFor(wait)
        expect(await chosen()).not.toBe(ids.parked)
        await page.getByRole('button', { name: 'run again' }).click()
        await expect
          .poll(async () => await page.locator('.row.done .hook', { hasText: 'review' }).count(), wait)
          .toBeGreaterThan(2)
      })

      test('runs again after a fix and is dropped, and the page follows', async () => {
        const id = await stage.post('review', { bad: true, title: 'dropped' })
        await show(page, `id=${id}`)
        await page.locator('#detail').getByText('seen dropped').waitFor(wait)
        await page.keyboard.press('r')
        await page.getByText('It ran again and is parked.').waitFor(wait)
        await page.getByRole('button', { name: 'drop', exact: true }).click()
        await page.getByText('It is dropped.').waitFor(wait)
        await row(id).getByText('dropped').waitFor(wait)
        expect(await stage.ask(`/api/deliveries/${id}`)).toMatchObject({ state: 'dropped' })
      })
    })

    test('shows the id that the provider gave a message, and queues a dead one again', async () => {
      await show(page, `id=${await stage.post('tells', { text: 'hello' })}`)
      const sent = page.locator('.steps li', { hasText: 'message 1' })
      await sent.getByText('sent telegram 42').waitFor(wait)
      expect(await sent.locator('code').innerText()).toBe('1')
      const id = await stage.post('lost', { text: 'hello' })
      await show(page, `state=dead&id=${id}`)
      await page.locator(`#row-${id}.dead`).waitFor(wait)
      await page.locator('#detail .warn', { hasText: 'must write to the bot first' }).waitFor(wait)
      await page.locator('#list').focus()
      await page.keyboard.press('r')
      await page.getByText('1 queued again.').waitFor(wait)
      await page.locator('#detail b.dead').waitFor(wait)
    })

    test('shows a session as a chat, with the events that wait', async () => {
      await show(page, 'view=sessions&session=main/hook:review')
      await page.locator('.message.user').first().waitFor(wait)
      await page.locator('.message.assistant').first().waitFor(wait)
      await page.getByRole('button', { name: /^main main/ }).click()
      await page.locator('.event-line', { hasText: 'The backup is old.' }).waitFor(wait)
      expect(await page.locator('.event-line.waits').count()).toBeGreaterThanOrEqual(0)
    })

    test('shows at once what was saved and is not live, with its code frame, and that it is mended', async () => {
      await show(page, 'view=health')
      await page.getByText('All saved files are live.').waitFor(wait)
      writeFiles(stage.gateway.dir, { 'hooks/transforms/review.ts': 'export default (\n' })
      await page.getByText('A saved file is not live.').waitFor(wait)
      await page.locator('.health .problem pre').waitFor(wait)
      await page.getByRole('button', { name: '1 not live' }).waitFor(wait)
      await shoot(page, 'health-light')
      writeFiles(stage.gateway.dir, { 'hooks/transforms/review.ts': transform })
      await page.getByText('All saved files are live.').waitFor(wait)
      expect(await page.locator('.plot rect').count()).toBeGreaterThan(0)
      const gateways = page.getByRole('region', { name: 'Gateways' }).locator('tbody tr')
      expect(await gateways.count()).toBe(1)
      const { generation } = await stage.ask('/readyz')
      expect((await gateways.innerText()).split(/\s+/)).toContain(generation)
    })

    describe('a hostile payload stays text, and the page stays alive', () => {
      const markup =
        '<img src=x onerror="window.owned=1"><script>window.owned=1</script><a href="javascript:owned=1">x</a>'
      const bidi = '\u202Egnp.exe\u2066\u200F'
      const ansi = '\u001B[2J\u001B]0;owned\u0007\u009B31m'

      test('HTML, ANSI and bidi', async () => {
        const title = `${markup}${ansi}${bidi}`
        const id = await stage.post('review', {
          title,
          [markup]: markup,
          __proto__: null,
          constructor: { prototype: markup },
        })
        await show(page, `id=${id}`)
        await page.locator('#detail .string', { hasText: '<img src=x' }).first().waitFor(wait)
        expect(await page.evaluate('window.owned')).toBeUndefined()
        expect(await page.locator('#detail img, #detail script, #detail a[href^="javascript"]').count()).toBe(0)
        const text = await page.locator('#detail').innerText()
        expect(text).toContain('\u241B[2J')
        expect([...'\u001B\u009B\u202E\u2066'].filter((mark) => text.includes(mark))).toEqual([])
      })

      test('markup in what a sender chooses of the list: source, event and hook', async () => {
        const answer = await fetch(`${stage.gateway.url}/${encodeURIComponent(markup).slice(0, 200)}`, {
          method: 'POST',
        })
        expect(answer.status).toBe(401)
        const id = await stage.post('plain', { source: `${markup}${bidi}`, text: 'x' })
        await show(page, '')
        await row(id).getByText('<img src=x').waitFor(wait)
        expect(await page.evaluate('window.owned')).toBeUndefined()
      })

      test('a string of five million characters', async () => {
        const id = await stage.post('plain', { text: 'hello', long: 'x'.repeat(5_000_000) })
        await show(page, `id=${id}`)
        await page.getByText('5,000,000 characters').waitFor(wait)
        expect(await page.evaluate<number>('document.body.innerText.length')).toBeLessThan(200_000)
        await page.getByText('… 5,000,000 characters').click()
        await page.keyboard.press('Escape')
        await page.keyboard.press('j')
        await expect.poll(chosen, wait).not.toBe(id)
      })

      test('a payload of fifty thousand fields, and one that is sixty levels deep', async () => {
        const wide = Object.fromEntries(Array.from({ length: 50_000 }, (_, n) => [`field ${n}`, n]))
        await show(page, `id=${await stage.post('plain', { text: 'x', wide })}`)
        await page.getByText('49900 more').waitFor(wait)
        const deep = `${'['.repeat(60)}${']'.repeat(60)}`
        await show(page, `id=${await stage.post('plain', `{"text":"deep","deep":${deep}}`)}`)
        await page.locator('#detail .string', { hasText: 'deep' }).waitFor(wait)
        expect(await page.locator('#detail .branch > details').count()).toBeLessThan(10)
      })
    })

    test(
      'nothing serious for axe-core, nothing that jumps aside, and screenshots, in light and dark, narrow and wide',
      { timeout: 120_000 },
      async () => {
        for (const [colorScheme, width] of [
          ['light', 1440],
          ['dark', 1440],
          ['light', 360],
          ['dark', 3840],
        ] as const) {
          await page.emulateMedia({ colorScheme })
          await page.setViewportSize({ width, height: 900 })
          for (const [name, hash, sign] of [
            ['list', '', '.row'],
            ['delivery', `id=${ids.done}`, '#detail .stage'],
            ['sessions', 'view=sessions&session=main/main', '.event-line'],
            ['health', 'view=health', '.plot'],
          ] as const) {
            await show(page, hash)
            await page.locator(sign).first().waitFor(wait)
            await shoot(page, `${name}-${colorScheme}-${width}`)
            if (width !== 3840) expect(await findBarriers(page), `${name} ${colorScheme} ${width}`).toEqual([])
            const overflow = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
            expect(overflow, `${name} ${width}`).toBeLessThanOrEqual(0)
          }
        }
      },
    )

    test('a key that has ended leads back to hookloom open, and no error was written to the console until then', async () => {
      expect(stage.errors).toEqual([])
      await page.evaluate("sessionStorage.setItem('hookloom-key', 'hlk_' + 'x'.repeat(43))")
      await show(page, '')
      await show(page, 'q=ended')
      await page.getByRole('alert').getByText('no longer valid').waitFor(wait)
      expect(await page.evaluate("sessionStorage.getItem('hookloom-key')")).toBeNull()
    })
  },
)
