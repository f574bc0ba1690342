// The views of an operator while runs wait, senders are refused and turns run: in a real browser, against a real gateway.
import { createHmac } from 'node:crypto'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startFakeGitHub, githubApiToken } from '../e2e/fakes/github.ts'
import { freePort, gatewayToken, writeConfig } from '../e2e/gateway.ts'
import { startInside } from '../e2e/inside.ts'
import { findBarriers, hasBrowser, openTab, shoot, show, type Stage, startStage } from './stage.ts'

const wait = { timeout: 60_000 }
const reply = String.raw`# The build

It **failed** in billing:

- three tests
- [the log](https://ci.example/log/7) and [https://bank.example](https://evil.example/x)
- [press](javascript:alert(1)) <img src=x onerror="window.owned=1"> ![pixel](https://evil.example/p.png)

| step | took |
|---|---|
| test | 4 s |
`

const judgedSecret = 'a secret that GitHub has'
const buildMappings = (secret: string) => [
  { id: 'plain', match: { path: 'plain' }, messageTemplate: 'Say {{text}}', deliver: false, retain: true },
  {
    id: 'report',
    match: { path: 'report' },
    messageTemplate: '{{text}}',
    agentId: 'writer',
    sessionKey: 'hook:report',
    deliver: false,
    retain: true,
  },
  {
    id: 'signed',
    match: { path: 'signed' },
    verify: { scheme: 'github', secret },
    messageTemplate: '{{text}}',
    deliver: false,
  },
  {
    id: 'judged',
    match: { path: 'judged' },
    verify: { scheme: 'github', secret: judgedSecret },
    messageTemplate: '{{text}}',
    agentId: 'judge',
    deliver: false,
    verdicts: ['pass', 'fail'],
    channel: 'github',
    status: 'review',
  },
]
const sha = '0123456789abcdef0123456789abcdef01234567'

const buildConfig = (secret: string, adminPort: number, githubUrl: string) => ({
  server: { adminPort },
  channels: { github: { token: githubApiToken, baseUrl: githubUrl } },
  hooks: { mappings: buildMappings(secret) },
  budgets: { daily: { turns: 40, period: '1d', timezone: 'UTC' } },
  runners: {
    judge: { kind: 'command', command: 'sh', args: ['-c', 'cat > /dev/null; echo fail'] },
    slow: { kind: 'command', command: 'sh', args: ['-c', 'cat > /dev/null; sleep 2; cat "$1"', 'sh', 'reply.md'] },
  },
  agents: {
    defaults: { budgets: ['daily'] },
    list: [
      { id: 'main', default: true },
      { id: 'writer', runner: 'slow', workspace: '.' },
      { id: 'judge', runner: 'judge', workspace: '.' },
    ],
  },
})

describe.skipIf(!hasBrowser)('the page of an operator in Chromium', () => {
  let stage: Stage
  let page: Page
  let adminPort: number
  let githubUrl: string
  const row = (id: string) => page.locator(`#row-${id}`)

  async function post(path: string, body: object): Promise<void> {
    const headers = { authorization: `Bearer ${gatewayToken}` }
    const answer = await fetch(`${stage.gateway.adminUrl}${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    })
    expect(answer.status).toBe(200)
  }

  beforeAll(async () => {
    const github = await startFakeGitHub({ commits: [`acme/app@${sha}`] })
    ;[adminPort, githubUrl] = [await freePort(), github.url]
    stage = await startStage({
      config: buildConfig('a secret that the sender does not have', adminPort, githubUrl),
      files: { 'reply.md': reply },
    })
    page = await stage.open()
  })
  afterAll(() => stage.close())

  test('a pause is shown above the list with its author, end and reason and a button that ends it, and a run that it holds back says so', async () => {
    const until = new Date(Date.now() + 3_600_000).toISOString()
    await post('/api/pauses', { what: 'mapping:plain', by: 'ada', reason: 'The repository moves.', until })
    const id = await stage.post('plain', { text: 'later' })
    await row(id).getByText(/waits/).waitFor(wait)
    await page.reload()
    const paused = page.getByRole('region', { name: 'Paused' })
    await paused.getByText('mapping:plain').waitFor(wait)
    const text = (await paused.innerText()).replaceAll(/\s+/g, ' ')
    for (const part of ['by ada', 'until', 'The repository moves.']) expect(text).toContain(part)
    await show(page, `id=${id}`)
    await openTab(page, 'Trace')
    await page
      .locator('#detail .pipe')
      .getByText(/waits .*ada/)
      .waitFor(wait)
    await shoot(page, 'paused')
    await paused.getByRole('button', { name: 'Resume mapping:plain' }).click()
    await expect.poll(() => paused.count(), wait).toBe(0)
    await row(id).getByText('done').waitFor(wait)
    expect((await stage.ask('/api/pauses'))['pauses']).toEqual([])
  })

  test('the end of a pause is shown in the time zone of the reader, even in sentences that commands print in UTC', async () => {
    const until = new Date(Math.floor(Date.now() / 1_000) * 1_000 + 3_600_000)
    const timeZone = 'Asia/Kolkata'
    await post('/api/pauses', { what: 'mapping:plain', by: 'ada', reason: 'It moves.', until: until.toISOString() })
    const id = await stage.post('plain', { text: 'in another zone' })
    const other = await stage.open({ hash: `id=${id}`, timezoneId: timeZone })
    await openTab(other, 'Trace')
    const local = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium', timeZone }).format(until)
    const places = [
      other.locator('#detail .pipe').getByText(/waits until .*ada/),
      other.locator(`#row-${id}`).getByText(/waits until .*ada/),
      other.getByRole('region', { name: 'Paused' }),
    ]
    for (const place of places) {
      await place.waitFor(wait)
      expect(await place.innerText()).toContain(local)
      expect(await place.innerText()).not.toMatch(/\d\d:\d\dZ/)
    }
    await other.context().close()
    await post('/api/resume', { what: 'mapping:plain', by: 'ada' })
    await row(id).getByText('done').waitFor(wait)
  })

  test('health shows what a budget has spent of its limit, and the map of hooks each sender with its last request', async () => {
    await show(page, 'view=health')
    const budgets = page.getByRole('region', { name: 'Budgets' })
    await budgets.getByText(/\d+ of 40 turns/).waitFor(wait)
    expect(await budgets.innerText()).toMatch(/daily each 1d, until /)
    expect(await findBarriers(page)).toEqual([])
    await show(page, 'view=hooks')
    const senders = page.getByRole('article', { name: 'Hook plain' }).getByLabel('Senders')
    await expect
      .poll(async () => {
        await page.reload()
        await page.getByRole('article', { name: 'Hook plain' }).waitFor(wait)
        return (await senders.count()) > 0 ? senders.innerText() : ''
      }, wait)
      .toMatch(/last \d+ (s|min)/)
  })

  test('a plot of health shows the values of the minute under the pointer', async () => {
    await show(page, 'view=health')
    const plot = page.locator('.plot').first()
    expect(await plot.locator('.axes').innerText()).toMatch(/60 min ago/)
    // hovers again and again: the sections above the plot may still grow, and so move the plot
    const said = plot.locator('figcaption').getByText(/^\d\d:\d\d: /)
    await expect
      .poll(async () => {
        await plot.locator('svg').hover({ position: { x: 5, y: 20 } })
        return said.count()
      }, wait)
      .toBe(1)
    await shoot(page, 'health-operate')
  })

  test('health shows each model and channel with its last success, and the findings of doctor', async () => {
    const outlets = page.getByRole('region', { name: 'Models and channels', exact: true })
    const echo = outlets.locator('tbody tr', { hasText: 'echo' })
    await echo.waitFor(wait)
    expect(await echo.locator('td').nth(2).innerText()).toMatch(/^\d+ (s|min)$/)
    expect(await outlets.locator('tbody tr', { hasText: 'slow' }).locator('td').nth(2).innerText()).toBe('none')
    await outlets.getByText(/^Heartbeats in the last 24 hours: \d+ turns?/).waitFor(wait)
    const doctor = page.getByRole('region', { name: 'What doctor finds' })
    await doctor.getByRole('button', { name: 'run doctor' }).click()
    await doctor.getByRole('button', { name: 'run doctor again' }).waitFor({ timeout: 60_000 })
    await doctor.getByText('runner-echo').waitFor(wait)
    await doctor.getByText(/^\d+ checks passed$/).click()
    await doctor.getByText('store-integrity').waitFor(wait)
    expect(await findBarriers(page)).toEqual([])
  })

  test('the bar of a running turn grows on the timeline, and its rendered reply has no active content except safe links', async () => {
    await show(page, `id=${await stage.post('report', { text: 'Which build failed?' })}`)
    await openTab(page, 'Trace')
    const bar = page.locator('#detail .bar .running')
    await bar.waitFor(wait)
    const first = await page.locator('#detail .steps').innerText()
    await expect.poll(() => page.locator('#detail .steps').innerText(), wait).not.toBe(first)
    await page.locator('#detail').getByText('It said').waitFor(wait)
    expect(await page.locator('#detail .markdown').innerText()).toContain('The build')
    await page.getByRole('button', { name: 'prompt and whole reply' }).click()
    const drawn = page.getByRole('group', { name: 'Reply' })
    await drawn.locator('strong', { hasText: 'failed' }).waitFor(wait)
    expect(await drawn.locator('li').count()).toBe(3)
    expect(await drawn.locator('td').allInnerTexts()).toEqual(['test', '4 s'])
    const links = await drawn
      .locator('a')
      .evaluateAll((all) => all.map((each) => [each.getAttribute('href'), each.getAttribute('rel')]))
    expect(links.map(([href]) => href)).toEqual([
      'https://ci.example/log/7',
      'https://evil.example/x',
      'https://evil.example/p.png',
    ])
    expect(links.every(([, rel]) => rel === 'noopener noreferrer nofollow')).toBe(true)
    const text = await drawn.innerText()
    expect(text).toContain('https://bank.example (https://evil.example/x)')
    expect(text).toContain('<img src=x onerror=')
    expect(await drawn.locator('img, script').count()).toBe(0)
    expect(await page.evaluate('window.owned')).toBeUndefined()
    expect(await findBarriers(page)).toEqual([])
    await shoot(page, 'reply')
    await page.getByRole('button', { name: 'as it was written' }).click()
    expect(await page.getByLabel('Reply', { exact: true }).innerText()).toContain('**failed**')
    await openTab(page, 'Trace')
  })

  test('the page says whether a stored refused request would be accepted now, and runs it once the secret is corrected', async () => {
    const body = JSON.stringify({ text: 'signed' })
    const sign = (secret: string) => `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
    const answer = await fetch(`${stage.gateway.url}/signed`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-hub-signature-256': sign('the right secret of 32 characters') },
      body,
    })
    expect(answer.status).toBe(401)
    const requestId = answer.headers.get('x-request-id') ?? ''
    await show(page, 'state=refused')
    await row(requestId).click()
    await page.getByText('Its request is kept, sealed.').waitFor(wait)
    await page.getByRole('button', { name: 'verify again' }).click()
    await page.getByText(/^0 would be accepted, 1 would be still refused: /).waitFor(wait)
    expect(await findBarriers(page)).toEqual([])
    const before = (await stage.ask('/api/health'))['generation']
    writeConfig(stage.gateway.dir, buildConfig('the right secret of 32 characters', adminPort, githubUrl))
    await expect.poll(async () => (await stage.ask('/api/health'))['generation'], wait).not.toBe(before)
    await page.getByRole('button', { name: 'verify again' }).click()
    await page.getByText(/^1 would be accepted\.$/).waitFor(wait)
    await page.getByRole('button', { name: 'accept 1' }).click()
    await page.getByText(/^1 is accepted\.$/).waitFor(wait)
    await show(page, 'hook=signed')
    await page.locator('.rows .row', { hasText: 'done' }).first().waitFor(wait)
  })

  test('a delivery shows the verdict of its run, how the agent gave the verdict, and the commit status', async () => {
    const repository = { full_name: 'acme/app' }
    const payload = JSON.stringify({ text: 'Look', repository, pull_request: { number: 7, head: { sha } } })
    const id = await stage.post('judged', payload, {
      'x-github-event': 'pull_request',
      'x-github-delivery': 'judged-once',
      'x-hub-signature-256': `sha256=${createHmac('sha256', judgedSecret).update(payload).digest('hex')}`,
    })
    await show(page, `id=${id}`)
    await openTab(page, 'Trace')
    const stages = page.locator('#detail .stage')
    const agent = stages.filter({ hasText: /^agent/ })
    await agent.getByText('by last line').waitFor(wait)
    expect(await agent.innerText()).toContain('done verdict fail by last line')
    const status = stages.filter({ hasText: /^status/ })
    await status.getByText(`failure at acme/app@${sha}`).waitFor(wait)
    await status.getByText(`pending at acme/app@${sha}`).waitFor(wait)
    // the task has no session, so it has no button
    expect(await status.getByRole('button').count()).toBe(0)
    await shoot(page, 'verdict')
  })

  test('a plot without traffic says that there was none, and shows no values for any minute', async () => {
    await show(page, 'view=health')
    await page.locator('.plot').first().waitFor(wait)
    const health = { ...(await stage.ask('/api/health')), minutes: [] }
    const other = await stage.open()
    await other.route('**/api/health', (route) => route.fulfill({ json: health }))
    await show(other, 'view=health')
    await other.reload()
    const plots = other.locator('.plot')
    await plots.first().waitFor(wait)
    expect(await plots.locator('svg rect').count()).toBe(0)
    await plots.filter({ hasText: 'Latency' }).getByText('p50 no traffic').waitFor(wait)
    await expect
      .poll(async () => {
        await plots
          .first()
          .locator('svg')
          .hover({ position: { x: 5, y: 20 } })
        return await plots.first().locator('figcaption').innerText()
      }, wait)
      .toMatch(/\d\d:\d\d: nothing$/)
    expect(await findBarriers(other)).toEqual([])
    await other.context().close()
  })

  test('the page wrote no error to the console', () => {
    expect(stage.errors).toEqual([])
  })

  test('the key of a page survives a restart of the gateway: the page connects again, even after it is reloaded', async () => {
    const id = await stage.post('plain', { text: 'before the restart' })
    await show(page, 'hook=plain')
    await stage.gateway.stop()
    await page.getByText('not connected').waitFor(wait)
    const again = await startInside({ dir: stage.gateway.dir })
    expect(again.adminUrl).toBe(stage.gateway.adminUrl)
    await page.locator('.status', { hasText: 'live' }).waitFor({ timeout: 60_000 })
    await page.reload()
    await row(id).waitFor(wait)
  })
})
