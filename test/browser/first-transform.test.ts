// A person with one request of an unknown sender makes a transform of it, knowing only what the page shows.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Browser } from 'playwright-core'
import { type Gateway, post, startGateway } from '../e2e/gateway.ts'
import { findBarriers, hasBrowser, openPage, shoot, startBrowser } from './stage.ts'

const wait = { timeout: 60_000 }
const payload = { event_type: 'TRANSFER_FAILED', transfer_id: 't-1', amount: { amount: 4899, currency: 'USD' } }

describe.skipIf(!hasBrowser)('hookloom dev and its page in Chromium', () => {
  let gateway: Gateway
  let browser: Browser

  beforeAll(async () => {
    ;[gateway, browser] = await Promise.all([startGateway({ command: 'dev' }), startBrowser()])
  })
  afterAll(() => browser.close())

  test.each(['light', 'dark'] as const)(
    'a request from an unknown sender becomes a typed and tested transform with three clicks, and an edit of it is shown, in %s',
    async (colorScheme) => {
      const hook = `sender-${colorScheme}`
      const file = join(gateway.dir, `hooks/transforms/${hook}.ts`)
      expect(await post(gateway, hook, payload)).toMatchObject({ code: 'hook-unknown' })
      const errors: string[] = []
      const page = await openPage(browser, gateway, { colorScheme, errors })
      const click = (name: string) => page.getByRole('button', { name, exact: true }).click()
      const follow = (name: string) => page.getByRole('link', { name, exact: true }).click()
      await page.locator('.row.refused', { hasText: hook }).click()
      await click('add this hook')
      await click('make a transform')
      await page.getByText(`${hook}.ts is made, with its types and its first fixture.`).waitFor(wait)
      await expect.poll(() => page.evaluate('document.activeElement.id'), wait).toBe('bench-body')

      const prompt = page.getByLabel('Prompt, as the agent reads it')
      await prompt.getByText('Look at this event_type: TRANSFER_FAILED').waitFor(wait)
      const code = readFileSync(file, 'utf8')
      expect(code).toContain(`from './payloads/${hook}.ts'`)
      expect(readFileSync(join(gateway.dir, `hooks/transforms/payloads/${hook}.d.ts`), 'utf8')).toContain(
        'transfer_id?',
      )
      expect(existsSync(join(gateway.dir, `hooks/transforms/${hook}.fixtures/first.json`))).toBe(true)
      // the link opens the module in an editor, at its first line
      const link = page.getByRole('link', { name: `${hook}.ts`, exact: true })
      expect(await link.getAttribute('href')).toContain(encodeURI(`${file.slice(1)}:1`))
      writeFileSync(file, code.replace('Look at this event_type: ${event_type}', 'Ask about ${payload.transfer_id}'))
      await prompt.getByText('Ask about t-1').waitFor(wait)
      // the first fixture keeps the edit from going live, until it expects the new message
      await page.getByText('1 not live', { exact: true }).waitFor(wait)
      await follow('replay')
      await click('update fixtures')
      await page.getByText('live', { exact: true }).waitFor(wait)
      await follow('hooks')
      await click('what do its fixtures cover?')
      await page.getByText(`${hook}.ts:8`).waitFor(wait)
      await shoot(page, `first-transform-${colorScheme}`)
      expect(await findBarriers(page)).toEqual([])

      await click('save as fixture')
      await page.getByText('It expects the decision accept.').waitFor(wait)
      await click('send it for real')
      await page.getByRole('status').getByText('200').waitFor(wait)
      await follow('the delivery')
      await page.locator('#detail').getByText('Ask about t-1').first().waitFor(wait)
      expect(errors).toEqual([])
    },
  )

  test('no transform is made from a body that is not JSON, and no existing transform is overwritten', async () => {
    const make = async (hook: string, body: string) => {
      const headers = { authorization: `Bearer ${gateway.gatewayToken}` }
      const asked = { method: 'POST', headers, body: JSON.stringify({ hook, body }) }
      const answer = await fetch(`${gateway.adminUrl}/api/transforms`, asked)
      return [answer.status, await answer.json()]
    }
    expect(await make('made', '{"a":1}')).toMatchObject([200, { ok: true, module: 'made.ts' }])
    expect(await make('made', '{"a":1}')).toMatchObject([expect.any(Number), { code: 'config-invalid' }])
    expect(await make('other', 'plain')).toMatchObject([400, { code: 'usage-invalid' }])
    expect(await make('../other', '{}')).toMatchObject([400, { code: 'usage-invalid' }])
    expect(existsSync(join(gateway.dir, 'hooks/transforms/other.ts'))).toBe(false)
  })
})
