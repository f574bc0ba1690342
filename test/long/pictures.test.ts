// Takes pictures of every view in three states: a gateway that received nothing, one that works, and one with faults. axe-core checks each
// view in the pairs of width and colours that `browser/views` leaves out, and each must fit into the window. The pictures are kept in
// `.screenshots/` for people. Each width is a test of its own, so that a busy machine has the time of one width for each.
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { gatewayToken, writeFiles } from '../e2e/gateway.ts'
import { startFakeTelegram } from '../e2e/fakes/telegram.ts'
import { findBarriers, hasBrowser, openTab, shoot, show, type Stage, startStage, transform } from '../browser/stage.ts'

const wait = { timeout: 60_000 }
const botToken = '110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw'
const widths = [360, 860, 1_200, 2_560] as const
const narrow = [360, 1_200] as const
const colors = ['light', 'dark'] as const

const mappings = [
  { id: 'review', match: { path: 'review' }, transform: { module: 'review.ts' }, deliver: false, retain: true },
  { id: 'drafts', match: { path: 'orders', payload: { draft: true } }, messageTemplate: 'never', deliver: false },
  {
    id: 'orders',
    match: { path: 'orders' },
    messageTemplate: 'Order {{order.no}} of {{order.by}}',
    sessionKey: 'hook:orders',
    deliver: false,
    retain: true,
  },
  { id: 'tells', match: { path: 'tells' }, messageTemplate: '{{text}}', channel: 'telegram', to: '42' },
  { id: 'lost', match: { path: 'lost' }, messageTemplate: '{{text}}', channel: 'telegram', to: '7' },
]

type View = { readonly name: string; readonly hash: string; readonly sign: string; open?(page: Page): Promise<void> }

describe.skipIf(!hasBrowser)('pictures of the page in Chromium', { timeout: 300_000 }, () => {
  const stages: Stage[] = []

  async function start(): Promise<Stage> {
    const { baseUrl } = await startFakeTelegram({ botToken, chats: [42] })
    const config = {
      hooks: { mappings },
      channels: { telegram: { botToken, baseUrl } },
      budgets: { daily: { turns: 40, period: '1d', timezone: 'UTC' } },
      agents: { defaults: { budgets: ['daily'] } },
    }
    const files = { 'hooks/transforms/review.ts': transform }
    const stage = await startStage({ config, files, development: true }, stages[0]?.browser)
    stages.push(stage)
    return stage
  }

  async function sendRequests(stage: Stage): Promise<string> {
    for (let no = 1; no <= 24; no += 1) {
      await stage.post('orders', { order: { no: `o-${no}`, by: no % 2 === 0 ? 'Ada' : 'Grace' } })
      if (no % 6 === 0) await stage.post('tells', { text: `The build ${no} is green.` })
    }
    const github = { 'x-github-event': 'pull_request', 'x-github-delivery': 'once' }
    const done = await stage.post(
      'review',
      { title: 'Fix the login of the shop', pull: { number: 7, labels: ['bug'] } },
      github,
    )
    await stage.post('wake', { text: 'The backup is old.' })
    await stage.post('agent', { message: 'What failed in the last build?' })
    return done
  }

  /**
   * Resolves with the findings of axe-core, the views that are wider than `width` (pixels), and the errors on the console. `at`: the time on
   * the page.
   */
  async function inspectViews(
    stage: Stage,
    state: string,
    width: number,
    views: readonly View[],
    at?: number,
  ): Promise<string[]> {
    const found: string[] = []
    const page = await stage.open()
    if (at !== undefined) await page.clock.setFixedTime(at)
    await page.setViewportSize({ width, height: width < 500 ? 760 : 900 })
    for (const { name, hash, sign, open } of views) {
      await show(page, hash)
      await page.locator(sign).first().waitFor(wait)
      await open?.(page)
      for (const colorScheme of colors) {
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
        await shoot(page, `${state}-${name}-${width}-${colorScheme}`)
        // other widths have the same elements
        if (!(width === 360 && colorScheme === 'light') && !(width === 1_200 && colorScheme === 'dark')) continue
        for (const barrier of await findBarriers(page)) found.push(`${name} ${colorScheme}: ${barrier}`)
      }
      const overflow = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
      if (overflow > 0) found.push(`${name}: ${overflow} px wider than the window`)
    }
    await page.context().close()
    // a clock that is set on an open page is at 1970 for a moment
    return [...found, ...stage.errors.filter((error) => !error.includes('since=1970-01-01'))]
  }

  const listCommonViews = (from = ''): readonly View[] => [
    { name: 'attention', hash: 'state=attention', sign: '.causes' },
    { name: 'hooks', hash: 'view=hooks', sign: '.hook-card' },
    { name: 'bench', hash: `view=hooks&bench=review${from}`, sign: '#decision' },
    { name: 'replay', hash: 'view=replay', sign: '.report[aria-busy=false]' },
    { name: 'sessions', hash: 'view=sessions', sign: '.sessions nav :is(.session, .empty:not(:empty))' },
    { name: 'health', hash: 'view=health', sign: '.plot' },
    { name: 'acts', hash: 'view=acts', sign: '.act' },
  ]

  afterAll(async () => {
    for (const stage of stages.toReversed()) await stage.close()
  })

  describe('a gateway that received nothing', () => {
    let stage: Stage
    beforeAll(async () => {
      stage = await start()
    })

    test.each(widths)('at %i px each view fits into the window, without barriers or errors', async (width) => {
      const views = [
        { name: 'list', hash: '', sign: '.start' },
        { name: 'filtered', hash: 'q=nothing', sign: '.empty' },
        ...listCommonViews(),
      ]
      expect(await inspectViews(stage, 'empty', width, views)).toEqual([])
    })
  })

  describe('a gateway that works', () => {
    let stage: Stage
    let done: string
    beforeAll(async () => {
      stage = await start()
      done = await sendRequests(stage)
    })

    test.each(widths)('at %i px each view fits into the window, without barriers or errors', async (width) => {
      const buildTabView = (name: string, label: Parameters<typeof openTab>[1], sign: string): View => ({
        name,
        hash: `id=${done}`,
        sign: '#detail [role=tab]',
        open: async (page) => {
          await openTab(page, label)
          await page.locator(sign).first().waitFor(wait)
        },
      })
      const views = [
        { name: 'list', hash: '', sign: '.rows .row' },
        buildTabView('trace', 'Trace', '#detail .bar'),
        buildTabView('request', 'Request', '#detail .tree'),
        buildTabView('texts', 'Prompt and reply', '#detail .markdown'),
        buildTabView('answer', 'Answer', '#detail pre'),
        { name: 'chat', hash: 'view=sessions&session=main/hook:orders', sign: '.message.assistant' },
        {
          name: 'menu',
          hash: `id=${done}`,
          sign: '#detail .menu',
          open: async (page: Page) => {
            await page.locator('#detail .menu > summary').click()
          },
        },
        ...listCommonViews(`&from=${done}`),
        {
          name: 'template',
          hash: 'view=hooks&bench=orders',
          sign: '#bench-template',
          open: async (page: Page) => {
            await page.locator('#bench-template').fill('Order {{order.no}} by {{order.byy}}')
            await page.locator('#unread .warn').waitFor(wait)
            // on a busy machine, some of the kept requests are not tried in time
            await page
              .locator('.result')
              .getByText(/^On the last /)
              .waitFor(wait)
          },
        },
      ]
      expect(await inspectViews(stage, 'full', width, views)).toEqual([])
    })

    describe('a day later, with an edit that changes each outcome of a hook', () => {
      beforeAll(() => {
        writeFiles(stage.gateway.dir, { 'hooks/transforms/review.ts': transform.replace('Review ', 'Look at ') })
      })

      test.each(narrow)('at %i px each view fits into the window, without barriers or errors', async (width) => {
        const tomorrow = new Date()
        tomorrow.setDate(tomorrow.getDate() + 1)
        const diff = { name: 'diff', hash: 'view=replay', sign: '.report .group' }
        const views = [diff, { name: 'list', hash: '', sign: '.rows .row' }, ...listCommonViews(`&from=${done}`)]
        expect(await inspectViews(stage, 'yesterday', width, views, tomorrow.setHours(23, 30))).toEqual([])
      })
    })
  })

  describe('a gateway with parked, dead, refused and paused deliveries', () => {
    let stage: Stage
    let parked: string | undefined
    let dead: string
    let held: string
    beforeAll(async () => {
      stage = await start()
      await sendRequests(stage)
      ;[parked] = await Promise.all(
        ['one', 'two', 'three'].map((name) => stage.post('review', { title: name, bad: true })),
      )
      dead = await stage.post('lost', { text: 'Nobody gets this.' })
      for (let n = 0; n < 3; n += 1) await fetch(`${stage.gateway.url}/orders`, { method: 'POST' })
      const answer = await fetch(`${stage.gateway.adminUrl}/api/pauses`, {
        method: 'POST',
        headers: { authorization: `Bearer ${gatewayToken}` },
        body: JSON.stringify({ what: 'mapping:orders', by: 'ada', reason: 'The shop moves to another server.' }),
      })
      if (!answer.ok) throw new Error(`the hook was not paused: ${answer.status}`)
      held = await stage.post('orders', { order: { no: 'o-99', by: 'Ada' } })
      writeFiles(stage.gateway.dir, { 'hooks/transforms/review.ts': `${transform}\n(` })
      const page = await stage.open({ hash: 'view=health' })
      await page.locator('.health .problem pre').waitFor(wait)
      await page.context().close()
    })

    test.each(widths)('at %i px each view fits into the window, without barriers or errors', async (width) => {
      const open = async (page: Page) => openTab(page, 'Trace')
      const views = [
        { name: 'list', hash: '', sign: '.rows .row' },
        { name: 'parked', hash: `id=${parked}`, sign: '#detail .problem', open },
        { name: 'dead', hash: `id=${dead}`, sign: '#detail .problem', open },
        { name: 'paused', hash: `id=${held}`, sign: '#detail .pipe', open },
        { name: 'refused', hash: 'state=refused', sign: '.row.refused' },
        ...listCommonViews(),
      ]
      expect(await inspectViews(stage, 'faults', width, views)).toEqual([])
    })
  })
})
