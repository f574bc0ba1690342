// What an operator asks first, each answered after at most two clicks and without a hint, with 5,000 deliveries in the store, on each engine.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Store } from '../../src/store/store.ts'
import { claimOne } from '../contract/jobs.ts'
import { newDelivery, newJob, parked, request } from '../contract/stage.ts'
import { startFakeTelegram } from '../e2e/fakes/telegram.ts'
import { writeFiles } from '../e2e/gateway.ts'
import { addSilentSender, describeFilled } from './filled.ts'
import { findBarriers, pricedModels, shoot, show, type Stage, startStage } from './stage.ts'

const wait = { timeout: 60_000 }
const hourMs = 3_600_000
const botToken = '110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw'
const module = 'hooks/transforms/orders.ts'
const renderTransform = (line: string) => `export default ({ payload }) => {
  ${line}
  return { message: 'Order ' + payload.order.no, sessionKey: 'hook:orders' }
}`
const broken = renderTransform('if (payload.order.by === undefined) throw new TypeError("no buyer")')
const mended = renderTransform('')

const toConfig = (baseUrl: string) => ({
  hooks: {
    mappings: [
      { id: 'orders', match: { path: 'orders' }, transform: { module: 'orders.ts' }, deliver: false, retain: true },
      { id: 'plain', match: { path: 'plain' }, messageTemplate: 'Say {{text}}', channel: 'last', retain: true },
      { id: 'slow', match: { path: 'slow' }, messageTemplate: 'Slow {{text}}', flow: { key: '{{text}}', delay: '1h' } },
      { id: 'code', match: { path: 'code' }, verify: { scheme: 'github', secret: 'a secret of the test' } },
    ],
  },
  channels: { default: { channel: 'telegram', to: '42' }, telegram: { botToken, baseUrl } },
  models: pricedModels,
})

const dearest = newDelivery({ at: Date.now(), hook: 'orders' })

/** What needs a person, what waits and the dearest run are older than 5,000 others. */
async function fillStore(store: Store): Promise<void> {
  const now = Date.now()
  const kept = request('{"order":{"no":"o-2"}}')
  const problem = {
    code: 'transform-failed' as const,
    detail: 'orders.ts threw TypeError: no buyer',
    frame: 'TypeError: no buyer\n  at orders.ts:2:47\n',
  }
  const inOrders = {
    mappingId: 'orders',
    waitsFor: 'orders.ts',
    request: { ...kept, head: { ...kept.head, path: 'orders' } },
  }
  await store.append(
    newDelivery({
      at: now - 5 * hourMs,
      hook: 'plain',
      ...parked({
        mappingId: 'plain',
        waitsFor: undefined,
        problem: { ...problem, detail: 'too old', frame: 'too old' },
      }),
    }),
  )
  await store.append(newDelivery({ at: now, hook: 'orders', ...parked({ ...inOrders, problem }) }))
  await store.append(newDelivery({ at: now, hook: 'plain', jobs: [newJob()] }))
  const outcome = { kind: 'retry', error: 'ECONNREFUSED 127.0.0.1:4040', afterMs: hourMs } as const
  await store.report(await claimOne(store), { outcome })
  const toStep = (outputTokens: number) => ({
    name: 'run' as const,
    state: 'done' as const,
    at: now,
    model: 'mine/opus',
    usage: { inputTokens: 1_000, outputTokens },
  })
  await store.append({ ...dearest, receivedAt: now, jobs: [newJob({ state: 'done', steps: [toStep(100_000)] })] })
  for (let n = 0; n < 10; n += 1) {
    const some = Array.from({ length: 500 }, (_, place) => {
      const steps = place < 5 ? [toStep(100)] : []
      return newDelivery({ at: now, hook: 'plain', jobs: [newJob({ state: 'done', steps })] })
    })
    await store.appendAll(some, [])
  }
  await addSilentSender(store)
}

type Click = (target: Locator) => Promise<void>

describeFilled('two clicks', (fill) => {
  let stage: Stage
  let page: Page
  let dir: string

  beforeAll(async () => {
    const { baseUrl } = await startFakeTelegram({ botToken, chats: [42] })
    dir = (await fill({ config: toConfig(baseUrl), work: fillStore })).dir
    stage = await startStage({ dir, files: { [module]: broken }, development: true })
    page = await stage.open()
  }, 240_000)
  afterAll(() => stage.close())

  /** Begins with the list, and counts the clicks. */
  const inTwoClicks = (answer: (click: Click) => Promise<void>) => async () => {
    await show(page, 'view=none')
    await show(page, '')
    let clicks = 0
    await answer(async (target) => {
      clicks += 1
      await target.click()
    })
    expect(clicks).toBeLessThanOrEqual(2)
  }
  const view = (name: string) => page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name })
  const attention = () => page.locator('.states').getByRole('link', { name: /^attention/ })
  const cause = (text: string) => page.locator('.cause', { hasText: text })
  const today = () => page.getByRole('navigation', { name: 'Today' })

  test(
    'Attention says what failed in the last hour, and why',
    inTwoClicks(async (click) => {
      await click(attention())
      await cause('too old').waitFor(wait)
      await page.getByLabel('Time').selectOption('last hour')
      await cause('too old').waitFor({ ...wait, state: 'detached' })
      await cause('no buyer · orders.ts:2').getByText('■ 1 parked').waitFor(wait)
      await cause('ECONNREFUSED').getByText('▲ 1 failing').waitFor(wait)
      expect(await findBarriers(page)).toEqual([])
      await shoot(page, 'two-clicks-last-hour')
    }),
  )

  test(
    'Attention says whether a parked delivery would work now',
    inTwoClicks(async (click) => {
      await click(attention())
      await click(cause('no buyer').getByRole('button', { name: 'would they work now?' }))
      await expect.poll(() => cause('no buyer').innerText(), wait).toContain('0 of 1 would work now')
    }),
  )

  test(
    'the hooks say which sender is silent',
    inTwoClicks(async (click) => {
      await click(view('hooks'))
      await expect
        .poll(() => page.locator('.senders .warn').allInnerTexts(), wait)
        .toEqual([expect.stringMatching(/GitHub.*silent/)])
    }),
  )

  test(
    'a delivery says what the agent said, and where it went',
    inTwoClicks(async (click) => {
      const id = await stage.post('plain', { text: 'hello' })
      await click(page.locator(`#row-${id}.done`))
      const said = page.locator('section[aria-label="Beginning of the reply"] .markdown')
      await said.getByText('Say hello').waitFor(wait)
      await expect.poll(() => page.locator('#detail').innerText(), wait).toMatch(/message 1 sent telegram 42/)
    }),
  )

  test(
    'a delivery has its curl command',
    inTwoClicks(async (click) => {
      const id = await stage.post('plain', { text: 'again' })
      await click(page.locator(`#row-${id}.done`))
      await click(page.locator('#copy-curl'))
      await page.getByText('The curl command is in the clipboard.').waitFor(wait)
      expect(await page.evaluate('navigator.clipboard.readText()')).toMatch(/^curl [^]*\/hooks\/plain/)
    }),
  )

  test(
    'the strip leads to what today cost, and which hook most',
    inTwoClicks(async (click) => {
      await click(today().getByRole('link', { name: '$' }))
      // 50 runs for $0.002 each, and one for $1.001
      await page.locator('.verdict', { hasText: '$1.10 today' }).waitFor(wait)
      const rows = page.getByRole('region', { name: 'Costs by hook' }).locator('tbody tr')
      expect(await rows.first().innerText()).toMatch(/^orders\s+\$1\.00\s+\$1\.00/)
      expect(await rows.nth(1).innerText()).toMatch(/^plain\s+\$0\.10\s+<?\$0\.00/)
      expect(await findBarriers(page)).toEqual([])
      await shoot(page, 'two-clicks-costs')
    }),
  )

  test(
    'the hooks lead to the dearest run of today',
    inTwoClicks(async (click) => {
      await click(view('hooks'))
      const cost = page.getByRole('article', { name: 'Hook orders' }).locator('.cost')
      await cost.getByText('$1.00').first().waitFor(wait)
      expect(await findBarriers(page)).toEqual([])
      await shoot(page, 'two-clicks-hooks')
      await click(cost.getByRole('link'))
      await page.locator('#detail', { hasText: dearest.id }).waitFor(wait)
    }),
  )

  test(
    'the bench of a hook says what its template can read',
    inTwoClicks(async (click) => {
      await click(view('hooks'))
      await click(page.getByRole('article', { name: 'Hook plain' }).getByRole('link', { name: 'plain', exact: true }))
      const fields = page.getByRole('list', { name: 'Fields' }).getByRole('button')
      await expect.poll(() => fields.allInnerTexts(), wait).toEqual(['text'])
      await shoot(page, 'two-clicks-fields')
    }),
  )

  test(
    'the strip leads to all that waits, with the reason, and a click starts it',
    inTwoClicks(async (click) => {
      await stage.post('slow', { text: 'later' })
      await click(today().getByRole('link', { name: /wait/ }))
      const row = page.locator('.rows .row')
      await row.getByText(/Slow later · waits until .* for a quiet period/).waitFor(wait)
      // older than 5,000 others
      await row.getByText(/ECONNREFUSED.* · waits until .* for its next attempt/).waitFor(wait)
      expect(await row.count()).toBe(2)
      // the bars are of these rows, and not of those before the click
      await page.locator('.histogram').getByText('at most 1 in a bar').waitFor(wait)
      expect(await findBarriers(page)).toEqual([])
      await shoot(page, 'two-clicks-waiting')
      await click(page.getByRole('group', { name: 'All rows' }).getByRole('button', { name: 'start them now' }))
      await expect.poll(() => row.count(), wait).toBe(0)
    }),
  )

  test(
    'the acts say who changed what, and what the last save changed',
    inTwoClicks(async (click) => {
      const readGeneration = async () => (await stage.ask('/api/health'))['generation']
      const before = await readGeneration()
      writeFileSync(join(dir, module), `${broken}\n// a note\n`)
      await expect.poll(readGeneration, wait).not.toBe(before)
      await click(view('acts'))
      const save = page.locator('.act', { hasText: `a save saved ${module}` }).first()
      await save.waitFor(wait)
      await click(save.getByText('what it changed'))
      await save.locator('.line.added', { hasText: 'a note' }).waitFor(wait)
      await page.locator('.act', { hasText: 'gateway.token made a code for the page' }).first().waitFor(wait)
    }),
  )

  test(
    'the replay says whether the edit is better than what is live',
    inTwoClicks(async (click) => {
      const expected = { request: { path: 'orders', payload: { order: { no: 'o-0' } } }, expect: { decision: 'skip' } }
      // the fixture keeps the edit from going live
      writeFiles(dir, { 'hooks/transforms/orders.fixtures/first.json': JSON.stringify(expected), [module]: mended })
      await click(view('replay'))
      await expect.poll(() => page.locator('.group.now-works h3').innerText(), wait).toContain('1 request')
    }),
  )

  test(
    'Attention tries a whole group now',
    inTwoClicks(async (click) => {
      writeFiles(dir, { 'hooks/transforms/orders.fixtures/first.json': '{}' })
      await click(attention())
      await cause('too old').waitFor(wait)
      await click(cause('too old').getByRole('button', { name: 'retry 1' }))
      await expect.poll(() => cause('too old').count(), wait).toBe(0)
    }),
  )

  test('the page wrote no error to the console', () => {
    expect(stage.errors).toEqual([])
  })
})
