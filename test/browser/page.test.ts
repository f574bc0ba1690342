// The page in a real browser: its views, its actions, and its safety against a hostile payload.
import { execFile } from 'node:child_process'
import { readdirSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hookToken, writeFiles } from '../e2e/gateway.ts'
import { onFileEnd } from '../file-end.ts'
import { startFakeTelegram } from '../e2e/fakes/telegram.ts'
import { findBarriers, hasBrowser, openTab, shoot, show, type Stage, startStage, transform, usual } from './stage.ts'

const wait = { timeout: 60_000 }
const botToken = '110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw'
const buildReplyMapping = (path: string, to: string) => ({
  id: path,
  match: { path },
  messageTemplate: '{{text}}',
  channel: 'telegram',
  to,
})

describe.skipIf(!hasBrowser)(
  'the page in Chromium (apt-get install chromium, or CHROMIUM=<file>)',
  { timeout: 120_000 },
  () => {
    let stage: Stage
    let page: Page
    const openMenu = () => page.locator('.menu > summary').click()
    const measureBox = async (selector: string) => {
      const box = await page.locator(selector).first().boundingBox()
      if (box === null) throw new Error(`${selector} is not drawn`)
      return box
    }
    const ids = { done: '', parked: '', event: '' }
    const row = (id: string) => page.locator(`#row-${id}`)
    const readFocusedId = () => page.evaluate<string>('document.activeElement.id')
    const readChosenId = () => page.evaluate<string | null>("new URLSearchParams(location.hash.slice(1)).get('id')")

    beforeAll(async () => {
      const { baseUrl } = await startFakeTelegram({ botToken, chats: [42] })
      const { config, files } = usual
      const later = { ...buildReplyMapping('later', '42'), channel: 'mattermost', to: 'a'.repeat(26) }
      const mappings = [
        ...config.hooks.mappings,
        buildReplyMapping('tells', '42'),
        buildReplyMapping('lost', '7'),
        later,
      ]
      const busy = createServer((_request, response) => response.writeHead(503).end())
      onFileEnd(() => new Promise((done) => busy.close(done)))
      await new Promise<void>((done) => busy.listen(0, '127.0.0.1', done))
      // as: a server that listens on a port has this address
      const { port } = busy.address() as AddressInfo
      const mattermost = { baseUrl: `http://127.0.0.1:${port}`, token: 'm'.repeat(26) }
      stage = await startStage({
        config: {
          ...config,
          hooks: { ...config.hooks, mappings },
          channels: { telegram: { botToken, baseUrl }, mattermost },
        },
        files,
      })
      for (let n = 0; n < 60; n++) await stage.post('plain', { text: `old ${n}` })
      ids.done = await stage.post('review', { title: 'Fix the login', pull: { number: 7, labels: ['bug', 'ui'] } })
      ids.parked = await stage.post('review', { title: 'x', bad: true })
      ids.event = await stage.post('wake', { text: 'The backup is old.' })
      await fetch(`${stage.gateway.url}/plain`, { method: 'POST' })
      page = await stage.open()
    })
    afterAll(() => stage.close())

    test('the page exchanges the code of its link for a key, removes the code from the address, and keeps no cookie', async () => {
      expect(new URL(page.url()).hash).toBe('')
      expect(await page.context().cookies()).toEqual([])
      expect(await page.evaluate('document.cookie + JSON.stringify(localStorage)')).toBe('{}')
      expect(await page.evaluate<string>("sessionStorage.getItem('hookloom-key')")).toMatch(/^hlk_/)
    })

    test('a new link pasted into a tab without a key opens the page, and its code does not stay in the history', async () => {
      // another tab of the browser has the key
      const other = await page.context().newPage()
      await other.goto(stage.gateway.adminUrl)
      await other.getByRole('navigation', { name: 'Views' }).waitFor(wait)
      // a tab of another browser
      const alone = await stage.browser.newContext()
      const tab = await alone.newPage()
      await tab.goto(`${stage.gateway.adminUrl}/#view=health`)
      await tab.getByText('hookloom open').waitFor(wait)
      const { code } = await stage.ask('/api/page/code', 'POST')
      await show(tab, `k=${String(code)}`)
      await tab.getByRole('region', { name: 'Health' }).waitFor(wait)
      expect(new URL(tab.url()).hash).toBe('#view=health')
      await tab.goBack()
      expect(tab.url()).not.toContain(String(code))
      // a used link does not remove the key
      const refused = other.waitForResponse((answer) => answer.url().endsWith('/api/page/key'), wait)
      await show(other, `k=${String(code)}`)
      await refused
      await expect.poll(() => new URL(other.url()).hash, wait).toBe('')
      await other.getByRole('navigation', { name: 'Views' }).waitFor(wait)
      await other.close()
      await alone.close()
    })

    test('the page sends its key only to a program that proves that it made the key', async () => {
      const other = await stage.open()
      // ends the requests of the page, but keeps its key
      await other.goto('about:blank')
      const sent: string[] = []
      other.on('request', (request) => void sent.push(request.headers()['authorization'] ?? ''))
      await other.route('**/api/page/proof', (route) => route.fulfill({ json: { ok: true, proof: '0'.repeat(64) } }))
      await other.goto(stage.gateway.adminUrl)
      await other.getByRole('alert').getByText('no longer valid').waitFor(wait)
      expect(sent.filter((text) => text !== '')).toEqual([])
      expect(await other.evaluate("sessionStorage.getItem('hookloom-key')")).toBeNull()
      await other.close()
    })

    test('a reload of the page transfers neither its script nor its style sheet again', async () => {
      const other = await stage.open()
      const session = await other.context().newCDPSession(other)
      const files = new Map<string, string>()
      const codes: [requestId: string, code: number][] = []
      session.on('Network.requestWillBeSent', ({ requestId, request }) => files.set(requestId, request.url))
      // it may come before the event of its request
      session.on('Network.responseReceivedExtraInfo', ({ requestId, statusCode }) =>
        codes.push([requestId, statusCode]),
      )
      const listAnswers = () =>
        codes
          .map(([requestId, code]) => `${code} ${new URL(files.get(requestId) ?? 'http://unknown/').pathname}`)
          .filter((answer) => answer.includes(' /inspector/page'))
          .toSorted()
      await session.send('Network.enable')
      await other.reload()
      await other.getByRole('navigation', { name: 'Views' }).waitFor(wait)
      const expected = ['304 /inspector/page.css', '304 /inspector/page.js']
      await expect.poll(listAnswers, wait).toEqual(expected)
      await other.close()
    })

    describe('the list of deliveries on the page', () => {
      test('a row shows what a delivery is about, and new deliveries appear without a reload', async () => {
        await row(ids.parked).getByText('parked').waitFor(wait)
        await row(ids.parked).getByText('Error: no reviewer for this · review.ts:3').waitFor(wait)
        await row(ids.done).getByText('Review Fix the login').waitFor(wait)
        await row(ids.event).getByText('The backup is old.').waitFor(wait)
        await page.locator('.row.refused').getByText('127.0.0.1').waitFor(wait)
        const id = await stage.post('plain', { text: 'new' })
        await row(id).getByText('done').waitFor(wait)
        expect(await page.locator('.rows .row').first().getAttribute('id')).toBe(`row-${id}`)
        await page.locator('#said', { hasText: 'new' }).waitFor({ ...wait, state: 'attached' })
      })

      test('yesterday’s rows are legible: no cell covers another one, and the day has a heading', async () => {
        const other = await stage.open()
        // at noon tomorrow, the rows are from yesterday, at whatever time the test runs
        const tomorrow = new Date()
        tomorrow.setDate(tomorrow.getDate() + 1)
        await other.clock.setFixedTime(tomorrow.setHours(12))
        for (const width of [1440, 860, 360]) {
          await other.setViewportSize({ width, height: 900 })
          await other.locator('.day', { hasText: 'yesterday' }).waitFor(wait)
          const cells = other.locator('.rows .row').first().locator('> span:visible')
          const boxes = await Promise.all((await cells.all()).map((cell) => cell.boundingBox()))
          expect(boxes.length).toBeGreaterThan(3)
          for (const [at, one] of boxes.entries()) {
            for (const two of boxes.slice(at + 1)) {
              if (one === null || two === null) throw new Error('a cell is not drawn')
              const isBeside = one.x + one.width <= two.x || two.x + two.width <= one.x
              expect(isBeside || one.y + one.height <= two.y || two.y + two.height <= one.y).toBe(true)
            }
          }
          const age = other.locator('.rows .row .age').first()
          expect(await age.innerText()).toMatch(/^[A-Z][a-z]{2} \d\d:\d\d$/)
          await shoot(other, `yesterday-${width}`)
        }
        expect(
          await other.evaluate<number>(
            "[...document.querySelectorAll('.row .age, .row .outcome')].filter((cell) => cell.scrollWidth > cell.clientWidth).length",
          ),
        ).toBe(0)
        await other.close()
      })

      test('rows keep their height and their columns when a delivery is opened next to them', async () => {
        await page.setViewportSize({ width: 1200, height: 900 })
        await show(page, '')
        await row(ids.done).waitFor(wait)
        const before = await measureBox(`#row-${ids.done}`)
        const column = await measureBox(`#row-${ids.done} .hook`)
        await row(ids.done).click()
        await page.locator('#detail .stage').first().waitFor(wait)
        expect((await measureBox(`#row-${ids.done}`)).height).toBe(before.height)
        expect((await measureBox(`#row-${ids.done} .hook`)).x).toBe(column.x)
        expect(await row(ids.done).locator('.summary').isVisible()).toBe(true)
        await show(page, '')
        await page.setViewportSize({ width: 1440, height: 900 })
      })

      test('filters and search are kept in the address, and a filter applies to new rows', async () => {
        await page.getByRole('link', { name: /^parked/ }).click()
        await row(ids.parked).waitFor(wait)
        await expect.poll(() => page.locator('.rows .row').count(), wait).toBe(1)
        expect(new URL(page.url()).hash).toBe('#state=parked')
        await page.keyboard.press('/')
        await page.keyboard.type('revi')
        await expect.poll(() => new URL(page.url()).hash, wait).toBe('#state=parked&q=revi')
        const [unfit, fit] = [await stage.post('plain', { text: 'x' }), await stage.post('review', { bad: true })]
        await row(fit).waitFor(wait)
        expect(await row(unfit).count()).toBe(0)
        await page.goBack()
        await expect.poll(() => page.locator('.rows .row').count(), wait).toBeGreaterThan(10)
      })

      test('an opened refusal stays open when a filter hides its row', async () => {
        await show(page, '')
        await page.locator('.row.refused').first().click()
        await page.locator('#detail').getByText('unauthorized').waitFor(wait)
        await page.getByRole('link', { name: /^parked/ }).click()
        await expect.poll(() => page.locator('.row.refused').count(), wait).toBe(0)
        expect(await page.locator('#detail').innerText()).toContain('unauthorized')
        // a bookmark of a refusal works too
        await page.reload()
        await page.locator('#detail').getByText('unauthorized').waitFor(wait)
        await show(page, '')
        // the browser logs that no delivery has the id
        expect(stage.errors.splice(0)).toEqual([expect.stringContaining('status of 404')])
      })

      test('a paused list counts new deliveries, and shows them when it is resumed', async () => {
        await page.getByRole('button', { name: 'pause' }).click()
        const [one, two] = [await stage.post('plain', { text: '1' }), await stage.post('plain', { text: '2' })]
        await page.getByRole('button', { name: 'resume · 2 new' }).waitFor(wait)
        expect([await row(one).count(), await row(two).count()]).toEqual([0, 0])
        await page.keyboard.press('p')
        await row(two).waitFor(wait)
        await row(one).waitFor(wait)
      })

      test('a sender is shown by its common name, and new rows do not move the rows that the reader scrolled to', async () => {
        const id = await stage.post('plain', { source: 'github', text: 'named' })
        await row(id).getByText('GitHub', { exact: true }).waitFor(wait)
        await page.evaluate("document.getElementById('list').scrollTop = 900")
        const readAttribute = async (name: string) =>
          Number(await page.locator('.rows .row').nth(12).getAttribute(name))
        await expect.poll(() => readAttribute('aria-posinset'), wait).toBeGreaterThan(20)
        const readId = await page.locator('.rows .row').nth(12).getAttribute('id')
        const measureTop = () =>
          page.evaluate<number>(`document.getElementById('${readId}').getBoundingClientRect().top`)
        const [before, count] = [await measureTop(), await readAttribute('aria-setsize')]
        const last = await stage.post('plain', { text: 'above' })
        await expect.poll(() => readAttribute('aria-setsize'), wait).toBe(count + 1)
        expect(await measureTop()).toBe(before)
        await page.evaluate("document.getElementById('list').scrollTop = 0")
        await row(last).waitFor(wait)
      })

      test('the list can be used by keyboard alone, and keeps the focus', async () => {
        const first = (await page.locator('.rows .row').first().getAttribute('id'))?.slice(4)
        await page.keyboard.press('j')
        await expect.poll(readChosenId, wait).toBe(first)
        await page.keyboard.press('j')
        await page.keyboard.press('k')
        await expect.poll(readChosenId, wait).toBe(first)
        expect(await readFocusedId()).toBe('list')
        await page.keyboard.press('Enter')
        expect(await readFocusedId()).toBe('detail')
        await stage.post('plain', { text: 'comes while one reads' })
        await page.keyboard.press('Escape')
        expect(await readFocusedId()).toBe('list')
        expect(await readChosenId()).toBe(first)
        await page.keyboard.press('?')
        await page.getByRole('dialog', { name: 'Keys' }).waitFor(wait)
        await page.keyboard.press('Escape')
        await page.keyboard.press('Escape')
        await page.getByRole('dialog', { name: 'Keys' }).waitFor({ ...wait, state: 'hidden' })
      })

      test('arrow keys scroll an opened delivery, and open no delivery in the views Replay, Sessions and Health', async () => {
        await page.setViewportSize({ width: 1440, height: 300 })
        await show(page, `id=${ids.done}`)
        await page.locator('#detail .stage').first().waitFor(wait)
        await page.locator('#detail').focus()
        const readScrollTop = () => page.evaluate<number>("document.getElementById('detail').scrollTop")
        await page.keyboard.press('ArrowDown')
        await expect.poll(readScrollTop, wait).toBeGreaterThan(0)
        expect(await readChosenId()).toBe(ids.done)
        // the next delivery is shown from its top
        await page.evaluate("document.getElementById('detail').scrollTop = 100")
        await show(page, `id=${ids.parked}`)
        await page.locator('#detail').getByText('no reviewer for this').first().waitFor(wait)
        await expect.poll(readScrollTop, wait).toBe(0)
        for (const view of ['replay', 'sessions', 'health']) {
          await show(page, `view=${view}`)
          for (const key of ['ArrowDown', 'ArrowUp', 'j', 'Enter']) await page.keyboard.press(key)
          expect(new URL(page.url()).hash).toBe(`#view=${view}`)
        }
        await page.setViewportSize({ width: 1440, height: 900 })
      })

      test('single-character shortcuts can be turned off, and the page remembers the choice', async () => {
        await show(page, '')
        await page.keyboard.press('?')
        const box = page.getByRole('checkbox', { name: 'keys of one character' })
        await box.uncheck()
        await page.getByRole('button', { name: 'close' }).click()
        await page.keyboard.press('j')
        await page.keyboard.press('2')
        expect(new URL(page.url()).hash).toBe('')
        await page.reload()
        await page.getByRole('navigation', { name: 'Views' }).waitFor(wait)
        await page.keyboard.press('2')
        expect(new URL(page.url()).hash).toBe('')
        await page.locator('.rows .row').first().waitFor(wait)
        await page.keyboard.press('ArrowDown')
        await expect.poll(readChosenId, wait).not.toBeNull()
        await page.getByRole('button', { name: 'Keys' }).click()
        await box.check()
        await page.keyboard.press('Escape')
        expect(await page.evaluate('JSON.stringify(localStorage)')).toBe('{}')
      })

      test('the page reopens its event stream after forty seconds of silence', async () => {
        const other = await stage.open()
        await other.clock.install()
        await other.reload()
        await other.getByText('live', { exact: true }).waitFor(wait)
        const again = other.waitForRequest((request) => request.url().endsWith('/api/stream'), wait)
        await other.clock.fastForward(41_000)
        expect((await again).method()).toBe('GET')
        await other.close()
        stage.errors.splice(0)
      })
    })

    test('a request that was refused while the event stream of the page was down appears once the stream is back', async () => {
      const other = await stage.open()
      await other.clock.install()
      await other.reload()
      await other.getByText('live', { exact: true }).waitFor(wait)
      await other.route('**/api/stream', (route) => route.abort())
      await other.clock.fastForward(41_000)
      await other.getByText('not connected').waitFor(wait)
      expect((await fetch(`${stage.gateway.url}/during-the-cut`, { method: 'POST' })).status).toBe(401)
      expect(await other.locator('.row.refused', { hasText: 'during-the-cut' }).count()).toBe(0)
      await other.unroute('**/api/stream')
      await other.clock.fastForward(60_000)
      await other.locator('.row.refused', { hasText: 'during-the-cut' }).waitFor(wait)
      await other.context().close()
      stage.errors.splice(0)
    })

    describe('a delivery on the page', () => {
      test('a delivery and its row show the number of repetitions as soon as it is known', async () => {
        const twice = { 'idempotency-key': 'twice' }
        const id = await stage.post('plain', { text: 'x' }, twice)
        for (let sent = 0; sent < 2; sent += 1) await stage.post('plain', { text: 'x' }, twice)
        await row(id).getByText('· repeated 2 times').waitFor(wait)
        await show(page, `id=${id}`)
        const readRepetitions = () => page.locator('#repeated').innerText()
        await expect.poll(readRepetitions, wait).toMatch(/^repeated 2 times, last \d\d:\d\d:\d\d$/)
      })

      test('a delivery is shown as the stages of the pipe, with its payload, prompt, reply and answer', async () => {
        await show(page, `id=${ids.done}`)
        const detail = page.locator('#detail')
        await detail.getByText('seen Fix the login').waitFor(wait)
        const text = await detail.innerText()
        for (const part of ['the hook token', 'path is "review"', 'review.ts', 'hook:review', 'summary']) {
          expect(text).toContain(part)
        }
        await shoot(page, 'delivery-light')
        await openTab(page, 'Answer')
        await detail.getByText('Answer to the sender: 200').waitFor(wait)
        await openTab(page, 'Prompt and reply')
        await detail.getByText('from outside', { exact: true }).waitFor(wait)
        expect(await detail.getByLabel('Text from outside').innerText()).toContain('Review Fix the login')
        await detail.getByText('the whole prompt').click()
        await detail
          .getByText(/untrusted/i)
          .first()
          .waitFor(wait)
        await openTab(page, 'Request')
        expect(await detail.getByText('labels').isVisible()).toBe(true)
        await detail.getByText('9 headers').click()
        await detail.getByText('application/json').first().waitFor(wait)
        // the next delivery opens in the same tab, and the arrow keys choose another tab
        await show(page, `id=${await stage.post('plain', { text: 'x' })}`)
        await detail.locator('.tree').waitFor(wait)
        await page.getByRole('tab', { name: 'Request' }).focus()
        await page.keyboard.press('ArrowLeft')
        await detail.getByText('Say {{text}}').waitFor(wait)
        expect(await detail.locator('.tried li').allInnerTexts()).toEqual([
          expect.stringMatching(/^· skips payload\.skip/),
          expect.stringMatching(/^✓ plain path is "plain"/),
        ])
      })

      test('a parked delivery names the line that failed, and links to it in the editor', async () => {
        await show(page, `id=${ids.parked}`)
        await page.getByText('no reviewer for this').first().waitFor(wait)
        const link = page.locator('#open-editor')
        expect(await link.getAttribute('href')).toBe(
          `vscode://file/${stage.gateway.dir.slice(1)}/hooks/transforms/review.ts:3`,
        )
      })

      test('a code frame is not wrapped on a phone: the mark stays below the place that failed', async () => {
        const phone = await stage.open({ hash: `id=${ids.parked}`, width: 360, height: 760 })
        const frame = phone.getByLabel('Code frame')
        await frame.waitFor(wait)
        const drawn = await frame
          .locator('bdi')
          .evaluate((text) => new Set([...text.getClientRects()].map(({ top }) => Math.round(top))).size)
        expect(drawn).toBe((await frame.innerText()).trimEnd().split('\n').length)
        expect(await frame.evaluate(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)).toBe(true)
        expect(await phone.evaluate('document.documentElement.scrollWidth')).toBe(360)
        await phone.context().close()
      })

      test('the key e opens the transform in the editor', async () => {
        await page.evaluate(
          `document.getElementById('open-editor').addEventListener('click', (event) => { event.preventDefault(); window.opened = event.currentTarget.href })`,
        )
        await page.keyboard.press('e')
        expect(await page.evaluate('window.opened')).toContain('review.ts:3')
      })

      test('headers with a sender’s secret are masked in the store, and a copied command leaves them out', async () => {
        const masked = ['x-api-key', 'api-key', 'x-auth-token', 'x-access-token', 'x-shop-secret', 'x-shop-token']
        const sent = Object.fromEntries(masked.map((name) => [name, `hidden-${name}`]))
        const id = await stage.post('plain', { text: 'masked' }, { ...sent, 'x-shop-order': 'o-17' })
        await show(page, `id=${id}`)
        await openTab(page, 'Request')
        await page.locator('#detail summary', { hasText: 'headers' }).click()
        const names = page.locator('#detail .fields dt')
        const readValue = (name: string) =>
          names.filter({ hasText: new RegExp(`^${name}$`) }).locator('xpath=following-sibling::dd[1]')
        for (const name of masked) {
          expect(await readValue(name).innerText()).toBe('[secret]')
        }
        expect(await readValue('x-shop-order').innerText()).toBe('o-17')
        expect(JSON.stringify(await stage.ask(`/api/deliveries/${id}/request`))).not.toContain('hidden-')
        await page.locator('#detail').focus()
        await page.keyboard.press('c')
        await page.getByText('The curl command is in the clipboard.').waitFor(wait)
        const curl = await page.evaluate<string>('navigator.clipboard.readText()')
        expect(curl).toContain('x-shop-order: o-17')
        expect(masked.filter((name) => curl.includes(name))).toEqual([])
      })

      test('a delivery can be copied as a curl command that contains no token and makes a new delivery when a shell runs it', async () => {
        const payload = { title: 'it\'s $(id) `id` \\ " !!\n', bad: true }
        const github = { 'x-github-event': 'push', 'x-github-delivery': 'sent-once' }
        const first = await stage.post('review', payload, github)
        await show(page, `id=${first}`)
        await openTab(page, 'Request')
        await page.locator('#detail .string', { hasText: 'it' }).first().waitFor(wait)
        await openTab(page, 'Trace')
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
        expect(deliveryId).not.toBe(first)
        expect(JSON.parse(String((await stage.ask(`/api/deliveries/${deliveryId}/request`))['body']))).toEqual(payload)
        await show(page, `id=${ids.parked}`)
        await page.getByText('no reviewer for this').first().waitFor(wait)
      })

      test('a delivery is saved as a fixture of its transform under the chosen name, and never replaces another fixture', async () => {
        const folder = join(stage.gateway.dir, 'hooks/transforms/review.fixtures')
        const write = async (name: string) => {
          await openMenu()
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
        await expect.poll(() => page.evaluate('document.activeElement.innerText'), wait).toBe('more')
        await write('red')
        await page.locator('.said.bad', { hasText: 'exists already' }).waitFor(wait)
        expect(readdirSync(folder).toSorted()).toEqual(['red.json', `review-${ids.parked.slice(-8)}.json`])
        rmSync(folder, { recursive: true })
        await show(page, `id=${await stage.post('plain', { text: 'no transform' })}`)
        await page.locator('#detail h2', { hasText: 'plain' }).waitFor(wait)
        await openMenu()
        await expect.poll(() => page.getByRole('button', { name: 'capture as fixture' }).isDisabled(), wait).toBe(true)
        await show(page, `id=${ids.parked}`)
        await page.locator('#detail h2', { hasText: 'review' }).waitFor(wait)
      })

      test('a delivery can be sent again, with the same body or another one', async () => {
        await openMenu()
        await page.getByRole('button', { name: 'edit and send' }).click()
        const area = page.getByRole('textbox', { name: 'Body' })
        await area.fill('{"title":"edited"}')
        await page.getByRole('button', { name: 'send as a new delivery' }).click()
        await page.locator('#detail').getByText('seen edited').waitFor(wait)
        const edited = await readChosenId()
        expect(edited).not.toBe(ids.parked)
        await page.getByRole('button', { name: 'run again' }).click()
        // the new delivery opens at once, so the sentence may be gone already
        await expect.poll(readChosenId, wait).not.toBe(edited)
        expect((await stage.ask(`/api/deliveries/${await readChosenId()}/request`))['body']).toBe('{"title":"edited"}')
      })

      test('numbers are shown and sent again with the digits in which they arrived', async () => {
        const body = '{"title":"numbers","big":12345678901234567890,"price":1.50,"at":1770000000}'
        const id = await stage.post('review', body)
        await show(page, `id=${id}`)
        await openTab(page, 'Request')
        const tree = page.locator('#detail .tree')
        await tree.getByText('12345678901234567890').waitFor(wait)
        expect(await tree.innerText()).toContain('price: 1.50')
        expect(await tree.innerText()).toMatch(/at: 1770000000 = Monday, 2 February 2026 at/)
        await openMenu()
        await page.getByRole('button', { name: 'edit and send' }).click()
        await page.getByRole('button', { name: 'send as a new delivery' }).click()
        await expect.poll(readChosenId, wait).not.toBe(id)
        await openTab(page, 'Trace')
        const { body: sent } = await stage.ask(`/api/deliveries/${await readChosenId()}/request`)
        expect(String(sent).replaceAll(/\s/g, '')).toBe(body)
      })

      test('a payload can be shown raw, searched and expanded, and its values and paths can be copied', async () => {
        const detail = page.locator('#detail')
        const body = '{ "text":"x", "user": {"login":"ada","tags":[{"name":"first"}]},  "n": 1.0 }'
        await show(page, `id=${await stage.post('plain', body)}`)
        await openTab(page, 'Request')
        const tree = detail.locator('.tree')
        await tree.getByText('"ada"').waitFor(wait)
        await detail.getByRole('button', { name: 'raw' }).click()
        expect(await detail.getByLabel('Raw payload').innerText()).toBe(body)
        await detail.getByRole('button', { name: 'raw' }).click()
        await detail.getByRole('searchbox', { name: 'Search in the payload' }).fill('FIRST')
        await tree.getByText('"first"').waitFor(wait)
        expect(await tree.innerText()).not.toContain('ada')
        await tree.getByRole('button', { name: 'name' }).click()
        await detail.getByRole('button', { name: 'copy {{user.tags[0].name}}' }).click()
        await detail.getByText('The path is in the clipboard.').waitFor(wait)
        expect(await page.evaluate('navigator.clipboard.readText()')).toBe('{{user.tags[0].name}}')
        await detail.getByRole('button', { name: 'copy value' }).click()
        await detail.getByText('The value is in the clipboard.').waitFor(wait)
        expect(await page.evaluate('navigator.clipboard.readText()')).toBe('first')
        await detail.getByRole('searchbox', { name: 'Search in the payload' }).fill('')
        await detail.getByRole('button', { name: 'expand all' }).click()
        await tree.getByText('"first"').waitFor(wait)
        await openTab(page, 'Trace')
      })

      test('a parked delivery can be run again, or dropped after some seconds unless the drop is undone', async () => {
        const id = await stage.post('review', { bad: true, title: 'unwanted' })
        const other = await stage.open()
        await other.clock.install()
        await show(other, `id=${id}`)
        await other.locator('#detail').getByText('seen unwanted').waitFor(wait)
        await other.keyboard.press('r')
        await other.getByText('It ran again and is parked.').waitFor(wait)
        const drop = other.getByRole('button', { name: 'drop', exact: true })
        const undo = other.getByRole('button', { name: 'undo the drop' })
        await drop.click()
        await undo.click()
        await drop.waitFor(wait)
        await other.clock.fastForward(10_000)
        expect(await stage.ask(`/api/deliveries/${id}`)).toMatchObject({ state: 'parked' })
        await drop.click()
        await undo.waitFor(wait)
        await other.clock.fastForward(5_000)
        await other.getByText('It is dropped.').waitFor(wait)
        await other.locator(`#row-${id}.dropped`).waitFor(wait)
        expect(await stage.ask(`/api/deliveries/${id}`)).toMatchObject({ state: 'dropped' })
        await other.close()
      })
    })

    test('a message shows the id that its provider gave it, and a dead message can be queued again', async () => {
      await show(page, `id=${await stage.post('tells', { text: 'hello' })}`)
      const sent = page.locator('.steps li', { hasText: 'message 1' })
      await sent.getByText('sent telegram 42').waitFor(wait)
      expect(await sent.locator('code').innerText()).toBe('1')
      const id = await stage.post('lost', { text: 'hello' })
      await show(page, `state=dead&id=${id}`)
      await page.locator(`#row-${id}.dead`).waitFor(wait)
      expect(await row(id).locator('.took').innerText()).toBe('')
      await page.locator('#detail .problem', { hasText: 'must write to the bot first' }).waitFor(wait)
      await page.locator('#list').focus()
      await page.keyboard.press('r')
      await page.getByText('1 queued again.').waitFor(wait)
      await page.locator('#detail b.dead').waitFor(wait)
    })

    test('Attention groups deliveries by cause, and can retry or drop a whole group', async () => {
      const ids = await Promise.all(['one', 'two'].map((title) => stage.post('review', { bad: true, title })))
      const other = await stage.open({ hash: 'state=attention' })
      const cause = other.locator('.cause', { hasText: 'no reviewer for this · review.ts:3' })
      await cause.waitFor(wait)
      await expect.poll(() => other.title(), wait).toMatch(/^\(\d+\) Hookloom$/)
      expect(await other.locator('link[rel=icon]').getAttribute('href')).toBe('/inspector/icon-alert.svg')
      await expect
        .poll(async () => Number(/\d+/.exec(await cause.locator('.state').innerText())?.[0]), wait)
        .toBeGreaterThan(1)
      await cause.getByRole('button', { name: /^retry/ }).click()
      await cause.getByText(/^\d+ now parked\.$/).waitFor(wait)
      await cause.getByRole('button', { name: 'open' }).click()
      await other.locator('#detail').getByText('no reviewer for this').first().waitFor(wait)
      expect(await findBarriers(other)).toEqual([])
      await cause.getByRole('button', { name: /^drop/ }).click()
      await cause.getByRole('button', { name: 'undo the drop' }).click()
      await other.clock.install()
      await cause.getByRole('button', { name: /^drop/ }).click()
      await cause.getByRole('button', { name: 'undo the drop' }).waitFor(wait)
      await other.clock.fastForward(5_000)
      await cause.waitFor({ ...wait, state: 'hidden' })
      for (const id of ids) expect(await stage.ask(`/api/deliveries/${id}`)).toMatchObject({ state: 'dropped' })
      await other.close()
    })

    test('a run that waits for a retry can be dropped, and its row and its details then show it as dropped', async () => {
      const other = await stage.open()
      await other.clock.install()
      const id = await stage.post('later', { text: 'try again' })
      await other.locator(`#row-${id}.failing`).waitFor(wait)
      await show(other, `id=${id}`)
      await other.locator('#detail .problem.mild').getByText('will be tried again').waitFor(wait)
      await openTab(other, 'Trace')
      // the reply waits for Mattermost; each failed attempt is a tick on the bar, and a line with its error
      const bar = other.locator('#detail .bar', { has: other.locator('.tick') })
      await bar.waitFor(wait)
      expect(await bar.getAttribute('aria-label')).toMatch(/^waited [^,]*, failed at \+/)
      const failures = other.locator('#detail .failures')
      await failures.getByText(/^[1-9]\d* failed$/).click()
      await failures
        .getByText(/at \+\d.* Mattermost answered 503/i)
        .first()
        .waitFor(wait)
      expect(await findBarriers(other)).toEqual([])
      await shoot(other, 'attempts')
      await other.getByRole('button', { name: 'drop', exact: true }).click()
      await other.getByRole('button', { name: 'undo the drop' }).waitFor(wait)
      await other.clock.fastForward(5_000)
      await other.locator(`#row-${id}.dropped`).waitFor(wait)
      await other.locator('#detail b.dropped').waitFor(wait)
      await other.locator('#detail .state.dropped').waitFor(wait)
      expect((await stage.ask(`/api/deliveries/${id}`))['jobs']).toMatchObject([{ state: 'dropped' }])
      await other.close()
    })

    test('a session is shown as a chat, with its events', async () => {
      await show(page, 'view=sessions&session=main/hook:review')
      await page.locator('.message.user').first().waitFor(wait)
      await page.locator('.message.assistant').first().waitFor(wait)
      await page.getByRole('link', { name: /^main / }).click()
      await page.locator('.event-line', { hasText: 'The backup is old.' }).waitFor(wait)
      expect(await page.locator('.event-line.waits').count()).toBeGreaterThanOrEqual(0)
    })

    test('a session that cannot be read shows why, and not the transcript of the session before it', async () => {
      await show(page, 'view=sessions&session=main/hook:review')
      await page.locator('.message.user').first().waitFor(wait)
      await show(page, 'view=sessions&session=main/hook:missing')
      await page.locator('.chat .bad').waitFor(wait)
      expect(await page.locator('.chat .message').count()).toBe(0)
      stage.errors.splice(0)
    })

    test('sessions of a single run are folded by hook, and a phone shows either the list of sessions or the chat', async () => {
      await stage.post('tells', { text: 'folded' })
      await page.setViewportSize({ width: 360, height: 760 })
      await show(page, 'view=sessions')
      const folded = page.locator('.singles').filter({ has: page.locator('summary', { hasText: 'tells' }) })
      await folded.waitFor(wait)
      expect(await page.locator('.chat').isVisible()).toBe(false)
      expect(await folded.locator('.session').first().isVisible()).toBe(false)
      await folded.locator('summary').click()
      await folded.locator('.session').first().click()
      await page.locator('.message.assistant').first().waitFor(wait)
      expect(await page.getByRole('navigation', { name: 'Sessions' }).isVisible()).toBe(false)
      await page.getByRole('link', { name: '← sessions' }).click()
      await page.getByRole('navigation', { name: 'Sessions' }).waitFor(wait)
      await page.setViewportSize({ width: 1440, height: 900 })
    })

    test('Health shows at once that a saved file is not live, with its code frame, and later that it was fixed', async () => {
      await show(page, 'view=health')
      await page.getByText('All saved files are live.').waitFor(wait)
      const outlets = page.getByRole('region', { name: 'Models and channels', exact: true })
      const telegram = outlets.locator('tr').filter({ has: page.getByRole('cell', { name: 'telegram', exact: true }) })
      await telegram.getByRole('link', { name: /must write to the bot first/ }).waitFor(wait)
      expect((await telegram.locator('td').allInnerTexts()).slice(2, 4)).toEqual([expect.stringMatching(/^\d/), '1'])
      writeFiles(stage.gateway.dir, { 'hooks/transforms/review.ts': 'export default (\n' })
      await page.getByText('A saved file is not live.').waitFor(wait)
      await page.locator('.health .problem pre').waitFor(wait)
      await page.getByRole('link', { name: '1 not live' }).waitFor(wait)
      await shoot(page, 'health-light')
      writeFiles(stage.gateway.dir, { 'hooks/transforms/review.ts': transform })
      await page.getByText('All saved files are live.').waitFor(wait)
      expect(await page.locator('.plot rect').count()).toBeGreaterThan(0)
      const gateways = page.getByRole('region', { name: 'Gateways' }).locator('tbody tr')
      expect(await gateways.count()).toBe(1)
      const { generation } = await stage.ask('/readyz')
      expect((await gateways.innerText()).split(/\s+/)).toContain(generation)
    })

    describe('a hostile payload on the page', () => {
      const markup =
        '<img src=x onerror="window.owned=1"><script>window.owned=1</script><a href="javascript:owned=1">x</a>'
      const bidi = '\u202Egnp.exe\u2066\u200F'
      const ansi = '\u001B[2J\u001B]0;owned\u0007\u009B31m'

      test('HTML, ANSI escapes and direction marks are shown as text', async () => {
        const title = `${markup}${ansi}${bidi}`
        const id = await stage.post('review', {
          title,
          [markup]: markup,
          __proto__: null,
          constructor: { prototype: markup },
        })
        await show(page, `id=${id}`)
        await openTab(page, 'Request')
        await page.locator('#detail .string', { hasText: '<img src=x' }).first().waitFor(wait)
        expect(await page.evaluate('window.owned')).toBeUndefined()
        expect(await page.locator('#detail img, #detail script, #detail a[href^="javascript"]').count()).toBe(0)
        const text = await page.locator('#detail').innerText()
        expect(text).toContain('\u241B[2J')
        expect([...'\u001B\u009B\u202E\u2066'].filter((mark) => text.includes(mark))).toEqual([])
      })

      test('markup in a source or in the name of a hook is shown as text', async () => {
        const answer = await fetch(`${stage.gateway.url}/${encodeURIComponent(markup).slice(0, 200)}`, {
          method: 'POST',
        })
        expect(answer.status).toBe(401)
        const id = await stage.post('plain', { source: `${markup}${bidi}`, text: 'x' })
        await show(page, '')
        await row(id).getByText('<img src=x').waitFor(wait)
        expect(await page.evaluate('window.owned')).toBeUndefined()
      })

      test('the page cuts a string of five million characters', async () => {
        const id = await stage.post('plain', { text: 'hello', long: 'x'.repeat(5_000_000) })
        await show(page, `id=${id}`)
        await page.getByText('5,000,000 characters').waitFor(wait)
        expect(await page.evaluate<number>('document.body.innerText.length')).toBeLessThan(200_000)
        await page.getByText('… 5,000,000 characters').click()
        await page.keyboard.press('Escape')
        await page.keyboard.press('j')
        await expect.poll(readChosenId, wait).not.toBe(id)
      })

      test('only part of a payload with fifty thousand fields or sixty levels is drawn', async () => {
        const wide = Object.fromEntries(Array.from({ length: 50_000 }, (_, n) => [`field ${n}`, n]))
        await show(page, `id=${await stage.post('plain', { text: 'x', wide })}`)
        await page.getByText('49900 more').waitFor(wait)
        const deep = `${'['.repeat(60)}${']'.repeat(60)}`
        await show(page, `id=${await stage.post('plain', `{"text":"deep","deep":${deep}}`)}`)
        await page.locator('#detail .string', { hasText: 'deep' }).waitFor(wait)
        expect(await page.locator('#detail .branch > details').count()).toBeLessThan(10)
      })
    })

    test('a refusal that is older than the newest rows appears when the reader scrolls down to it', async () => {
      const busy = await startStage(usual, stage.browser)
      try {
        await fetch(`${busy.gateway.url}/plain`, { method: 'POST' })
        for (let n = 0; n < 220; n++) await busy.post('plain', { text: `new ${n}` })
        const list = await busy.open()
        await list.locator('.row.done').first().waitFor(wait)
        const scrollDown = "document.getElementById('list').scrollTop = 1e6"
        await expect
          .poll(async () => (await list.evaluate(scrollDown), list.locator('.row.refused').count()), wait)
          .toBe(1)
        busy.errors.splice(0)
      } finally {
        await busy.close()
      }
    })

    test('the page writes no error to the console, and says so when its key is no longer valid', async () => {
      expect(stage.errors).toEqual([])
      await page.evaluate("sessionStorage.setItem('hookloom-key', 'hlk_' + 'x'.repeat(43))")
      await show(page, '')
      await show(page, 'q=ended')
      await page.getByRole('alert').getByText('no longer valid').waitFor(wait)
      expect(await page.evaluate("sessionStorage.getItem('hookloom-key')")).toBeNull()
    })
  },
)
