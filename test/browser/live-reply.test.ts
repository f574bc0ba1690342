// A run is seen while it runs: its reply comes into the opened delivery, and at its end what it cost. On each engine.
import type { ServerResponse } from 'node:http'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { chatCompletions } from '../e2e/fakes/chat-completions.ts'
import { apiKey, type FakeProvider, startFakeProvider } from '../e2e/fakes/provider.ts'
import { describeFilled } from './filled.ts'
import { findBarriers, openTab, shoot, show, type Stage, startStage } from './stage.ts'

const wait = { timeout: 60_000 }
const hostile = '<img src=x onerror=alert(1)>\u202e'
const pieces = [
  `## What failed\n\nThe **login** ${hostile}\n\n`,
  '- the first test\n- the second test\n\n',
  `${'A long explanation of the cause. '.repeat(20)}\n\n`,
  'The last block.',
]
const ask = { id: 'ask', match: { path: 'ask' }, messageTemplate: '{{text}}', deliver: false, sessionKey: 'hook:ask' }

describeFilled('a run that is seen while it runs', (fill) => {
  let stage: Stage
  let page: Page
  let fake: FakeProvider
  let answer: ServerResponse | undefined
  const events = chatCompletions.toEvents(pieces)
  const write = (from: number, until?: number) => answer?.write(events.slice(from, until).join(''))

  beforeAll(async () => {
    fake = await startFakeProvider(chatCompletions)
    fake.answer = (_api, request, response) => {
      if (request.method === 'GET') return void response.end('{"data":[]}')
      answer = response.writeHead(200, { 'content-type': 'text/event-stream' })
    }
    const model = { id: chatCompletions.model, cost: { input: 100, output: 1_000 } }
    const { dir } = await fill({
      config: {
        hooks: { mappings: [ask] },
        agents: { defaults: { model: `mine/${chatCompletions.model}` } },
        models: {
          providers: { mine: { kind: chatCompletions.kind, baseUrl: fake.baseUrl, apiKey, models: [model] } },
        },
      },
    })
    stage = await startStage({ dir })
    page = await stage.open()
  })
  afterAll(async () => {
    await stage.close()
    fake.close()
  })

  test('the reply comes into the detail piece by piece, drawn as Markdown, and its beginning ends with a whole block', async () => {
    await show(page, `id=${await stage.post('ask', { text: 'Why?' })}`)
    await openTab(page, 'Trace')
    await expect.poll(() => answer !== undefined, wait).toBe(true)
    const live = page.locator('section[aria-label="Reply so far"] .markdown')
    write(0, 2)
    await live.locator('.heading', { hasText: 'What failed' }).waitFor(wait)
    await live.locator('strong', { hasText: 'login' }).waitFor(wait)
    expect(await live.locator('li').count()).toBe(0)
    expect(await page.locator('#detail .running').count()).toBeGreaterThan(0)
    write(2, 3)
    await live.locator('li', { hasText: 'the second test' }).waitFor(wait)
    expect(await page.locator('#detail img').count()).toBe(0)
    expect(await page.locator('#detail').innerText()).not.toContain('\u202e')
    expect(await findBarriers(page)).toEqual([])
    await shoot(page, 'live-reply')
    answer?.end(events.slice(3).join(''))
    const beginning = page.locator('section[aria-label="Beginning of the reply"] .markdown')
    await beginning.getByText('A long explanation').waitFor(wait)
    expect(await live.count()).toBe(0)
    // the block that passes the limit is whole, and the next one is left out
    const text = await beginning.innerText()
    expect(text.match(/A long explanation/g)).toHaveLength(20)
    expect(text).not.toContain('The last block')
    expect(text.trimEnd()).toMatch(/…$/)
    expect(await beginning.locator('li').count()).toBe(2)
  })

  test('the bars have a scale, and at the end stand what the run cost and its tokens', async () => {
    // 11 tokens for 100 dollars a million, 4 of them cached, and 7 for 1,000 dollars
    await page.getByLabel('What it used').getByText('$0.0081').waitFor(wait)
    expect(await page.getByLabel('What it used').innerText()).toBe('$0.0081 11 tokens in, 7 out')
    const marks = await page.locator('#detail .scale span').allInnerTexts()
    expect(marks[0]).toBe('0')
    expect(marks.length).toBeGreaterThan(1)
    expect(marks.length).toBeLessThan(7)
    expect(await findBarriers(page)).toEqual([])
    await shoot(page, 'run-cost')
  })

  test('the page wrote no error to the console', () => {
    expect(stage.errors).toEqual([])
  })
})
