// What waits is started where one sees it: a pause, a quiet period, a budget, and refused requests, from the opened delivery and from attention.
import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import type { Store } from '../../src/store/store.ts'
import { claimOne } from '../contract/jobs.ts'
import { newDelivery, newJob } from '../contract/stage.ts'
import { gatewayToken, writeConfig } from '../e2e/gateway.ts'
import { describeFilled } from './filled.ts'
import { findBarriers, shoot, show, startStage, type Stage } from './stage.ts'

const wait = { timeout: 60_000 }
const text = { messageTemplate: 'Say {{text}}', deliver: false, retain: true }
const formerSecret = 'the former secret of the sender, 1'
const secret = 'the new secret of the sender, 22222'
const buildConfig = (given: string) => ({
  hooks: {
    mappings: [
      { id: 'plain', match: { path: 'plain' }, ...text },
      { id: 'slow', match: { path: 'slow' }, ...text, flow: { key: '{{text}}', delay: '1h' } },
      { id: 'dear', match: { path: 'dear' }, ...text, budgets: ['daily'] },
      { id: 'signed', match: { path: 'signed' }, ...text, verify: { scheme: 'github', secret: given } },
    ],
  },
  budgets: { daily: { turns: 1, period: '1d', timezone: 'UTC' } },
  models: {
    providers: {
      acme: {
        baseUrl: 'http://127.0.0.1:9',
        kind: 'openai-compatible',
        models: [{ id: 'one', cost: { input: 1, output: 2 } }],
      },
    },
  },
  agents: { list: [{ id: 'main', default: true }] },
})

const problem = (page: Page) => page.getByRole('region', { name: 'Problem' })
const cause = (page: Page, title: string | RegExp) => page.locator('.cause', { hasText: title })
const row = (page: Page, id: string) => page.locator(`#row-${id}`)
const done = (page: Page, id: string) => page.locator(`#row-${id}.done`).waitFor(wait)

/** A turn that cost $0.04. */
async function fillTurn(store: Store): Promise<void> {
  await store.append(newDelivery({ at: Date.now(), hook: 'dear', jobs: [newJob()] }))
  const usage = { inputTokens: 30_000, outputTokens: 5_000 }
  const step = { name: 'run', state: 'done', at: Date.now(), model: 'acme/one', usage } as const
  await store.report(await claimOne(store), { steps: [step], outcome: { kind: 'done' } })
}

async function postSigned(stage: Stage, body: string, key: string): Promise<number> {
  const signature = `sha256=${createHmac('sha256', key).update(body).digest('hex')}`
  const headers = { 'content-type': 'application/json', 'x-hub-signature-256': signature }
  const answer = await fetch(`${stage.gateway.url}/signed`, { method: 'POST', headers, body })
  await answer.arrayBuffer()
  return answer.status
}

async function pause(stage: Stage, what: string): Promise<void> {
  const headers = { authorization: `Bearer ${gatewayToken}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ what, by: 'ada', reason: 'a release' })
  expect((await fetch(`${stage.gateway.adminUrl}/api/pauses`, { method: 'POST', headers, body })).status).toBe(200)
}

describeFilled('what waits', (fill) => {
  test('a quiet period is ended, a pause too, and a budget is raised, with what that starts', async () => {
    const { dir } = await fill({ config: buildConfig(secret), work: fillTurn })
    const stage = await startStage({ dir })
    try {
      const page = await stage.open()
      const slow = await stage.post('slow', { text: 'later' })
      const readWaitEnd = async () => (await stage.ask(`/api/deliveries/${slow}`))['waitEnd']
      await expect.poll(readWaitEnd, wait).toEqual({ kind: 'retry', turns: 1, usd: null })
      await row(page, slow).click()
      await problem(page).getByText('for a quiet period').waitFor(wait)
      await problem(page).getByText('1 turn', { exact: true }).waitFor(wait)
      await problem(page).getByRole('button', { name: 'start now' }).click()
      await done(page, slow)
      await expect.poll(() => problem(page).count(), wait).toBe(0)

      await pause(stage, 'mapping:plain')
      const plain = [await stage.post('plain', { text: 'one' }), await stage.post('plain', { text: 'two' })]
      await row(page, plain[0] ?? '').click()
      await problem(page).getByText('because ada paused its mapping').waitFor(wait)
      await problem(page).getByText('2 turns', { exact: true }).waitFor(wait)
      await show(page, 'state=attention')
      const paused = cause(page, 'because ada paused its mapping')
      await paused.getByText('○ 2 waiting').waitFor(wait)
      await paused.getByRole('button', { name: 'resume mapping:plain' }).click()
      await page.getByText('Nothing needs attention.').waitFor(wait)
      await show(page, '')
      for (const id of plain) await done(page, id)

      // another pause, which the banner ends
      await pause(stage, 'all')
      const held = await stage.post('plain', { text: 'held' })
      await row(page, held).click()
      await problem(page).getByRole('button', { name: 'resume all' }).click()
      await done(page, held)

      const first = await stage.post('dear', { text: 'one' })
      await done(page, first)
      const dear: string[] = []
      for (const n of ['two', 'three', 'four']) dear.push(await stage.post('dear', { text: n }))
      for (const id of dear) await row(page, id).getByText('for the budget daily').waitFor(wait)
      await row(page, dear[0] ?? '').click()
      await problem(page).getByRole('button', { name: 'raise daily by 3 turns' }).waitFor(wait)
      await problem(page).getByText('3 turns, about $0.12', { exact: true }).waitFor(wait)
      expect(await findBarriers(page)).toEqual([])
      await shoot(page, 'wait-end-banner')
      await show(page, 'state=attention')
      const waiting = cause(page, 'for the budget daily')
      await waiting.getByText('○ 3 waiting').waitFor(wait)
      await waiting.getByText('3 turns, about $0.12', { exact: true }).waitFor(wait)
      // it is no failure
      expect(await page.title()).toBe('Hookloom')
      expect(await findBarriers(page)).toEqual([])
      await shoot(page, 'wait-end-attention')
      await waiting.getByRole('button', { name: 'raise daily by 3 turns' }).click()
      await page.getByText('Nothing needs attention.').waitFor(wait)
      await show(page, '')
      for (const id of dear) await done(page, id)
      const late = await stage.post('dear', { text: 'late' })
      await row(page, late).click()
      await problem(page).getByRole('button', { name: 'raise daily by 1 turn' }).click()
      await done(page, late)
      expect(stage.errors).toEqual([])
    } finally {
      await stage.close()
    }
  })

  test('refused requests of a sender are verified again: first counted, then accepted', async () => {
    const { dir } = await fill({ config: buildConfig(formerSecret) })
    const stage = await startStage({ dir })
    try {
      // a sender is known after its first accepted request
      expect(await postSigned(stage, '{"text":"known"}', formerSecret)).toBe(200)
      for (const n of [1, 2]) expect(await postSigned(stage, `{"text":"new ${n}"}`, secret)).toBe(401)
      const page = await stage.open({ hash: 'state=attention' })
      const refused = page.locator('.cause', { hasText: 'refused' })
      await refused.getByRole('button', { name: 'verify again' }).click()
      await refused.getByText(/^0 would be accepted, 2 would be still refused: /).waitFor(wait)
      expect(await refused.getByRole('button', { name: /^accept/ }).count()).toBe(0)
      const before = (await stage.ask('/api/health'))['generation']
      writeConfig(dir, { ...buildConfig(secret), ...readStoreConfig(dir) })
      await expect.poll(async () => (await stage.ask('/api/health'))['generation'], wait).not.toBe(before)
      await refused.getByRole('button', { name: 'verify again' }).click()
      await refused.getByText(/^2 would be accepted\.$/).waitFor(wait)
      expect(await findBarriers(page)).toEqual([])
      await shoot(page, 'wait-end-refused')
      await refused.getByRole('button', { name: 'accept 2' }).click()
      await show(page, 'hook=signed')
      for (const n of [1, 2]) await page.locator('.rows .row.done', { hasText: `new ${n}` }).waitFor(wait)
      expect(stage.errors).toEqual([])
    } finally {
      await stage.close()
    }
  })
})

/** The part of a configuration that says where its store is. */
function readStoreConfig(dir: string): object {
  const { store } = JSON.parse(readFileSync(join(dir, 'hookloom.jsonc'), 'utf8')) as { store?: object }
  return store === undefined ? {} : { store }
}
