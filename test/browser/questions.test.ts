// The questions of an operator, each answered after at most two clicks; and rare rows: recovered deliveries, deliveries with many actions,
// refusals of strangers.
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { githubToken, startGitHub } from '../e2e/fakes/github-deliveries.ts'
import { hookToken, writeFiles } from '../e2e/gateway.ts'
import { findBarriers, hasBrowser, openTab, show, type Stage, startStage } from './stage.ts'

const wait = { timeout: 60_000 }
const file = 'hooks/transforms/orders.ts'
const renderTransform = (line: string) => `export default ({ payload }) => {
  ${line}
  return { message: 'Order ' + payload.order.no, sessionKey: 'hook:orders' }
}`
const broken = renderTransform('if (payload.order.by === undefined) throw new TypeError("no buyer")')

describe.skipIf(!hasBrowser)('questions that the page answers in Chromium', () => {
  let stage: Stage
  let page: Page
  let github: Awaited<ReturnType<typeof startGitHub>>
  let behindMs = 0

  beforeAll(async () => {
    github = await startGitHub({ clock: () => Date.now() - behindMs })
    const mappings = [
      { id: 'orders', match: { path: 'orders' }, transform: { module: 'orders.ts' }, deliver: false, retain: true },
      {
        id: 'mails',
        match: { path: 'mails' },
        forEach: 'messages',
        messageTemplate: '{{messages[0].subject}}',
        deliver: false,
      },
      {
        id: 'github',
        match: { path: 'github' },
        verify: { scheme: 'github', secret: 'github-secret-of-it' },
        messageTemplate: 'Push {{n}}',
        deliver: false,
        recover: { sender: 'github', repository: 'acme/app', hookId: 77, token: githubToken, baseUrl: github.url },
      },
    ]
    stage = await startStage({ config: { hooks: { mappings } }, files: { [file]: broken }, development: true })
    await stage.post('orders', { order: { no: 'o-1', by: 'Ada' } })
    for (const no of ['o-2', 'o-3']) await stage.post('orders', { order: { no } })
    page = await stage.open()
  })
  afterAll(() => stage.close())

  test('the list shows which deliveries failed, and why, without a click', async () => {
    const rows = page.locator('.rows .row.parked')
    await expect.poll(() => rows.count(), wait).toBe(2)
    expect(await rows.first().innerText()).toMatch(/parked[^]*orders[^]*TypeError: no buyer · orders\.ts:2/)
  })

  test('one click shows since when deliveries have failed', async () => {
    await page.getByRole('link', { name: /^attention/ }).click()
    const cause = page.locator('.cause', { hasText: 'no buyer · orders.ts:2' })
    await cause.getByText(/^■ 2 parked$/).waitFor(wait)
    expect(await cause.innerText()).toMatch(/the first \d+ (s|min) ago/)
  })

  test('one click in Attention shows whether a failure is fixed, and one click on Replay whether an edit would fix it', async () => {
    const cause = page.locator('.cause', { hasText: 'no buyer' })
    await cause.getByRole('button', { name: 'would they work now?' }).click()
    await cause.getByText('0 of 2 would work now').waitFor(wait)
    // the fixture keeps this edit from going live, so the edit changes nothing yet
    const request = { path: 'orders', payload: { order: { no: 'o-0' } } }
    writeFiles(stage.gateway.dir, {
      'hooks/transforms/orders.fixtures/first.json': JSON.stringify({ request, expect: { decision: 'skip' } }),
      [file]: renderTransform(''),
    })
    await page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name: 'replay' }).click()
    const works = page.locator('.group.now-works h3')
    await works.waitFor(wait)
    expect(await works.innerText()).toContain('2 requests')
    const failing = page.getByRole('region', { name: 'Fixtures that fail' })
    await failing.getByRole('button', { name: 'update fixtures' }).click()
    await failing.waitFor({ ...wait, state: 'hidden' })
    // the edit is live, and the parked deliveries have run again without a click
    await page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name: 'health' }).click()
    await page.locator('.verdict', { hasText: 'Nothing needs attention.' }).waitFor(wait)
  })

  test('one click on a delivery shows its reply', async () => {
    await page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name: 'deliveries' }).click()
    await page.locator('.states').getByRole('link', { name: 'all' }).click()
    await page.locator('.rows .row', { hasText: 'Order o-2' }).click()
    const said = page.locator('section[aria-label="Beginning of the reply"] .markdown')
    await said.waitFor(wait)
    expect(await said.innerText()).toContain('Order o-2')
  })

  test('the list and the trace of a delivery say that the gateway fetched it from its sender', async () => {
    behindMs = 300_000
    github.addAttempt({ payload: { n: 1 } })
    behindMs = 0
    const since = new Date(Date.now() - 600_000).toISOString()
    await stage.ask(`/api/recover?since=${since}`, 'POST')
    await show(page, '')
    const row = page.locator('.rows .row', { hasText: 'Push 1' })
    await row.getByText('· recovered').waitFor(wait)
    await row.click()
    await openTab(page, 'Trace')
    await page.locator('#recovered', { hasText: 'fetched from its sender' }).waitFor(wait)
    expect(await findBarriers(page)).toEqual([])
  })

  test('a delivery of many actions shows the first of them, and folds the others', async () => {
    const messages = Array.from({ length: 9 }, (_, n) => ({ subject: `Mail ${n}` }))
    await show(page, `id=${await stage.post('mails', { messages })}`)
    const stages = page.locator('#detail .pipe > .stage')
    await page.locator('#detail summary', { hasText: '4 more actions' }).waitFor(wait)
    expect(await stages.last().locator('.stage').first().isVisible()).toBe(false)
    await page.locator('#detail summary', { hasText: '4 more actions' }).click()
    expect(await stages.last().locator('ol > .stage').count()).toBe(4)
  })

  test('refusals of one unknown client are one muted row, and do not count as needing attention', async () => {
    const before = (await stage.ask('/api/attention'))['count']
    // from the address of the sender of the accepted orders, with another user agent
    const headers = { 'user-agent': 'masscan/1.3' }
    for (let sent = 0; sent < 7; sent += 1) await fetch(`${stage.gateway.url}/orders`, { method: 'POST', headers })
    await show(page, '')
    await page.locator('.row.refused.quiet', { hasText: '× 7' }).waitFor(wait)
    expect(await page.locator('.row.refused').count()).toBe(1)
    expect((await stage.ask('/api/attention'))['count']).toBe(before)
  })

  test('a request for an unknown hook is shown with its body, and can become a hook on the bench', async () => {
    const answer = await fetch(`${stage.gateway.url}/invoices`, {
      method: 'POST',
      headers: { authorization: `Bearer ${hookToken}`, 'content-type': 'application/json' },
      body: '{"invoice":"i-7"}',
    })
    expect(answer.status).toBe(404)
    await page.locator('.row.refused', { hasText: 'invoices' }).click()
    await page.locator('#detail .tree', { hasText: 'i-7' }).waitFor(wait)
    await page.locator('#detail').getByText('hookloom verify --explain').waitFor(wait)
    await page.getByRole('button', { name: 'add this hook' }).click()
    await page.locator('.beside [aria-label=after]').getByText('"invoice":"i-7"').waitFor(wait)
    expect(stage.errors).toEqual([])
  })
})
