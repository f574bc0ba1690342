// The picture of the README: the page of a gateway that got the README's requests, and some that came to nothing. UPDATE_README=1 writes it.
import { createHmac } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'jsonc-parser'
import { readBlock, readLinks, root } from '../pages.ts'
import { hasBrowser, type Stage, startStage } from './stage.ts'

const wait = { timeout: 60_000 }
const secret = 'a-secret-of-the-webhook'
const transform = readBlock('README.md', 'ts', 'defineTransform')
const [deploy] = parse(readBlock('README.md', 'jsonc', '"path": "deploy"')).hooks.mappings

describe.skipIf(!hasBrowser)('the picture of the README in Chromium', () => {
  let stage: Stage

  beforeAll(async () => {
    stage = await startStage({
      config: {
        hooks: {
          mappings: [
            { ...deploy, id: 'deploy', deliver: false, retain: true },
            {
              id: 'reviews',
              match: { path: 'github', event: 'pull_request' },
              verify: { scheme: 'github', secret },
              transform: { module: 'review.ts' },
              deliver: false,
              retain: true,
            },
          ],
        },
      },
      files: { 'hooks/transforms/review.ts': transform },
      development: true,
    })
  })
  afterAll(() => stage.close())

  const pull = async (id: number, draft: boolean, key: string) => {
    const body = JSON.stringify({
      action: 'opened',
      pull_request: { id, title: 'Boil faster', html_url: `https://github.com/acme/app/pull/${id}`, draft },
    })
    const signature = createHmac('sha256', key).update(body).digest('hex')
    const headers = {
      'content-type': 'application/json',
      'user-agent': 'GitHub-Hookshot/044aadd',
      'x-github-event': 'pull_request',
      'x-github-delivery': `${id}`,
      'x-hub-signature-256': `sha256=${signature}`,
    }
    return (await fetch(`${stage.gateway.url}/github`, { method: 'POST', headers, body })).status
  }

  test('shows a request that ran, one that was skipped and one that was refused, each with its reason', async () => {
    await stage.post('deploy', { service: 'billing', version: '1.4.2' })
    expect(await pull(6, false, secret)).toBe(200)
    expect(await pull(7, true, secret)).toBe(204)
    expect(await pull(8, false, 'another secret')).toBe(401)
    const page = await stage.open({ width: 1_240, height: 620 })
    await page.locator('.row', { hasText: 'Review https://github.com/acme/app/pull/6' }).waitFor(wait)
    await page.locator('.row', { hasText: 'The mapping "reviews" made no action.' }).waitFor(wait)
    await page.locator('.row.refused', { hasText: 'github' }).click()
    await page.locator('#detail').getByText('Its request is kept, sealed.').waitFor(wait)
    expect(stage.errors).toEqual([])
    const [picture = ''] = readLinks('README.md').flatMap(({ target }) => (target.endsWith('.png') ? [target] : []))
    if (process.env['UPDATE_README'] === '1') await page.screenshot({ path: join(root, picture) })
    expect(existsSync(join(root, picture))).toBe(true)
  })
})
