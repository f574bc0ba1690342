// A stage on which each view of the page has something to show, and the list of these views.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { expect, vi } from 'vitest'
import { createSqliteStore } from '../../src/store/sqlite/sqlite.ts'
import { claimOne } from '../contract/jobs.ts'
import { newDelivery, newJob } from '../contract/stage.ts'
import { gatewayToken, makeConfigDir } from '../e2e/gateway.ts'
import { mappings, pricedModels, show, type Stage, startStage, transform } from './stage.ts'
import { addSilentSender } from './filled.ts'

const wait = { timeout: 20_000 }
const hourMs = 3_600_000
const file = 'hooks/transforms/review.ts'
const later = { id: 'later', match: { path: 'later' }, messageTemplate: 'Later {{text}}', deliver: false, retain: true }
const config = {
  server: { maxBodyBytes: 8_000_000 },
  hooks: {
    mappings: [
      ...mappings,
      { ...later, flow: { key: '{{text}}', delay: '1h' } },
      { id: 'held', match: { path: 'held' }, messageTemplate: 'Held {{text}}', deliver: false },
      { id: 'nightly', match: { path: 'nightly' }, messageTemplate: 'Night {{n}}', channel: 'telegram', to: '42' },
      {
        id: 'code',
        match: { path: 'code' },
        verify: { scheme: 'github', secret: 'a secret of the test' },
        messageTemplate: 'Look at {{title}}',
        deliver: false,
      },
    ],
  },
  channels: { telegram: { botToken: '1:test', baseUrl: 'http://127.0.0.1:9' } },
  budgets: { daily: { usd: 2, period: '1d', timezone: 'UTC' } },
  models: pricedModels,
}

export type Views = {
  readonly stage: Stage
  /** The hash of each view, and what it shows when it is read. */
  readonly views: Readonly<Record<string, readonly [hash: string, shown: string, open?: (page: Page) => Promise<void>]>>
}

/** A day of deliveries before the gateway starts: done with a price, one dead, one failing; and a sender that is silent. */
async function fillDay(dir: string): Promise<void> {
  const store = createSqliteStore({ file: join(dir, 'state/hookloom.db'), clock: Date.now })
  const now = Date.now()
  const usage = { inputTokens: 30_000, outputTokens: 5_000 }
  const old = Array.from({ length: 240 }, (_, n) => {
    const at = now - 26 * hourMs + n * 380_000
    const step = { name: 'run', state: 'done', at: at + 2_000, model: 'mine/opus', usage } as const
    return newDelivery({ at, hook: n % 3 === 0 ? 'review' : 'plain', jobs: [newJob({ state: 'done', steps: [step] })] })
  })
  await store.appendAll(old, [])
  for (const error of ['Telegram: chat 42 not found', 'connect ECONNREFUSED 127.0.0.1:4040']) {
    await store.append(newDelivery({ at: now - hourMs, hook: 'nightly', jobs: [newJob()] }))
    const outcome = error.startsWith('T')
      ? { kind: 'dead' as const, error }
      : { kind: 'retry' as const, error, afterMs: hourMs }
    await store.report(await claimOne(store), { outcome })
  }
  await addSilentSender(store)
  await store.close()
}

export async function startViews(): Promise<Views> {
  const dir = makeConfigDir({ config })
  await fillDay(dir)
  const stage = await startStage({ dir, files: { [file]: transform }, development: true })
  const ask = async (path: string, body: object) => {
    const headers = { authorization: `Bearer ${gatewayToken}`, 'content-type': 'application/json' }
    const answer = await fetch(`${stage.gateway.adminUrl}${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    })
    expect(answer.status).toBe(200)
    await answer.arrayBuffer()
  }
  const readGeneration = async () => (await stage.ask('/api/health'))['generation']
  const before = await readGeneration()
  writeFileSync(join(dir, file), transform.replace("'Review '", "'Look at '"))
  await vi.waitFor(async () => expect(await readGeneration()).not.toBe(before), wait)
  const done = await stage.post('plain', { text: 'A **bold** word of `code`', user: { login: 'ada', tags: ['one'] } })
  await stage.post('review', { title: 'Boil faster' })
  const parked = await stage.post('review', { title: 'Fail', bad: true })
  await stage.post('later', { text: 'Wait' })
  await ask('/api/pauses', { what: 'mapping:held', reason: 'a release', by: 'ada' })
  await stage.post('held', { text: 'Hold' })
  await stage.post('wake', { text: 'The backup is old.', mode: 'next-heartbeat' })
  const body = JSON.stringify({ title: 'Boil' })
  await fetch(`${stage.gateway.url}/code`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'user-agent': 'GitHub-Hookshot/044aadd',
      'x-github-event': 'ping',
      'x-hub-signature-256': `sha256=${'0'.repeat(64)}`,
    },
    body,
  })
  for (let n = 0; n < 3; n += 1) await fetch(`${stage.gateway.url}/nowhere`, { method: 'POST' })
  const readDone = async () => ((await stage.ask(`/api/deliveries/${done}`))['jobs'] as { state: string }[])[0]?.state
  await vi.waitFor(async () => expect(await readDone()).toBe('done'), wait)
  const { refusals } = (await stage.ask('/api/refusals')) as { refusals?: { requestId: string; hook?: string }[] }
  const refused = refusals?.find(({ hook }) => hook === 'code')?.requestId ?? ''
  const tab = (name: string) => (page: Page) => page.getByRole('tab', { name }).click()
  const failing = '#detail .problem'
  return {
    stage,
    views: {
      list: ['', '.row.done'],
      trace: [`id=${done}`, '#detail .stage', tab('Trace')],
      request: [`id=${done}`, '#detail .tree', tab('Request')],
      texts: [`id=${done}`, '#detail .part', tab('Prompt and reply')],
      answer: [`id=${done}`, '#detail pre', tab('Answer')],
      parked: [`id=${parked}`, failing, tab('Trace')],
      menu: [`id=${parked}`, '#detail .menu', (page) => page.locator('#detail .menu > summary').click()],
      refusal: [`id=${refused}`, '#detail :is(.problem, .fields)'],
      attention: ['state=attention', '.cause'],
      hooks: ['view=hooks', '.hook-card'],
      bench: ['view=hooks&bench=plain', '.result .decision'],
      'bench of code': ['view=hooks&bench=review', '.result .decision'],
      replay: ['view=replay', '.report[aria-busy=false]'],
      sessions: ['view=sessions', '.session'],
      session: ['view=sessions&session=main%2Fhook%3Aplain', '.chat .message'],
      health: ['view=health', '[aria-label="Models and channels"] tbody tr'],
      queues: ['view=health', '[aria-label="Queues"] .facts'],
      acts: ['view=acts', '.act'],
      save: [
        'view=acts',
        '.act',
        async (page) => {
          await page.locator('.act', { hasText: 'a save saved' }).first().getByText('what it changed').click()
          await page.locator('.save .line.added').first().waitFor(wait)
        },
      ],
      costs: ['view=costs', '.costs tbody tr'],
      keys: ['', '.row.done', (page) => page.getByRole('button', { name: 'Keys' }).click()],
    },
  }
}

/** Shows a view, and waits until it is read. */
export async function showView(page: Page, { views }: Views, name: string): Promise<void> {
  const [hash = '', shown = '', open] = views[name] ?? []
  await page.keyboard.press('Escape')
  await show(page, 'view=none')
  await show(page, hash)
  await open?.(page)
  await page.locator(shown).first().waitFor(wait)
}
