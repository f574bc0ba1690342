// The hooks as a map: one row a hook, from its senders to its chats, with a day of traffic from the store, sorted by trouble.
import { expect, test } from 'vitest'
import type { Store } from '../../src/store/store.ts'
import { claimOne } from '../contract/jobs.ts'
import { newDelivery, newJob, parked } from '../contract/stage.ts'
import { addSilentSender, describeFilled } from './filled.ts'
import { findBarriers, mappings, shoot, show, startStage, type Stage, transform } from './stage.ts'

const wait = { timeout: 60_000 }
const hourMs = 3_600_000
const files = { 'hooks/transforms/review.ts': transform }
const config = {
  hooks: {
    mappings: [
      ...mappings,
      { id: 'nightly', match: { path: 'nightly' }, messageTemplate: 'Night {{n}}', channel: 'telegram', to: '42' },
      {
        id: 'code',
        match: { path: 'code' },
        verify: { scheme: 'github', secret: 'a secret of the test' },
        agentId: 'reviewer',
      },
    ],
  },
  channels: { telegram: { botToken: '1:test' } },
  agents: { list: [{ id: 'main', default: true }, { id: 'reviewer' }] },
}

/** A day of traffic on one hook, a dead run on another, and a sender that is silent. */
async function fillStore(store: Store): Promise<void> {
  const now = Date.now()
  const old = Array.from({ length: 240 }, (_, n) =>
    newDelivery({ at: now - 23 * hourMs + n * 330_000, hook: 'plain', jobs: [newJob({ state: 'done' })] }),
  )
  const broken = newDelivery({
    at: now - hourMs,
    hook: 'plain',
    ...parked({ mappingId: 'plain', waitsFor: undefined }),
  })
  await store.appendAll([...old, broken], [])
  await store.append(newDelivery({ at: now, hook: 'nightly', jobs: [newJob()] }))
  await store.report(await claimOne(store), { outcome: { kind: 'dead', error: 'Telegram: chat 42 not found' } })
  await addSilentSender(store)
}

describeFilled('the map of the hooks', (fill) => {
  test('each hook is one row from its senders to its chats, after a restart and on each gateway, the one with trouble first', async () => {
    const { dir, another } = await fill({ config, work: fillStore })
    const first = await startStage({ dir, files })
    const stages: Stage[] = [first]
    if (another !== undefined) stages.push(await startStage({ dir: another(), files }, first.browser))
    try {
      const page = await (stages.at(-1) ?? first).open({ hash: 'view=hooks' })
      const row = (name: string) => page.getByRole('article', { name: `Hook ${name}` })
      await row('plain').getByText('241 in 24 h').waitFor(wait)
      await row('plain').getByText('■ 1 parked').first().waitFor(wait)
      expect(await row('plain').locator('.spark g').count()).toBe(24)
      expect(await row('nightly').getByRole('listitem').last().innerText()).toBe(
        'nightly → Night {{n}} → main echo → telegram 42',
      )
      await row('nightly').getByText('✕ 1 dead').waitFor(wait)
      await row('code').getByText('the proof of github').waitFor(wait)
      expect(await row('code').getByRole('listitem').last().innerText()).toMatch(/^code → the whole payload → reviewer/)
      // a silent sender is amber in its row, and in attention
      await row('code')
        .locator('.senders .warn', { hasText: /GitHub.*silent.*usually once in 20 min/ })
        .waitFor(wait)
      const order = await page
        .locator('.hook-card')
        .evaluateAll((all) => all.map((one) => one.getAttribute('aria-label')))
      expect(order.slice(0, 3)).toEqual(['Hook plain', 'Hook nightly', 'Hook code'])
      expect(await findBarriers(page)).toEqual([])
      await shoot(page, 'hook-map')
      await show(page, 'state=attention')
      const cause = page.locator('.cause', { hasText: /GitHub has sent nothing since/ })
      await cause.getByText('◌ 1 silent').waitFor(wait)
      expect(await cause.innerText()).not.toMatch(/\d\d:\d\dZ/)
      await expect.poll(() => page.title(), wait).toBe('(3) Hookloom')
      expect(await findBarriers(page)).toEqual([])
      // health says first whether it is well
      await show(page, 'view=health')
      await page.locator('.verdict', { hasText: 'It is not well: 1 parked' }).waitFor(wait)
      expect(await page.locator('#view > *').first().getAttribute('class')).toContain('verdict')
      // a new delivery counts at once
      await first.post('plain', { text: 'new' })
      await show(page, 'view=hooks')
      await row('plain').getByText('242 in 24 h').waitFor(wait)
      expect(stages.flatMap(({ errors }) => errors)).toEqual([])
    } finally {
      for (const each of stages.toReversed()) await each.close()
    }
  })

  test('on a phone no row of the hooks or of health is wider than the screen, or higher than it needs', async () => {
    const { dir } = await fill({ config, work: fillStore })
    const stage = await startStage({ dir, files })
    try {
      const page = await stage.open({ hash: 'view=hooks', width: 360, height: 760 })
      await page.getByRole('article', { name: 'Hook plain' }).waitFor(wait)
      const overflow = () => page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
      expect(await overflow()).toBeLessThanOrEqual(0)
      await shoot(page, 'hook-map-360')
      // at each width the name of a hook is the first thing in its row
      for (const width of [360, 860, 1_440]) {
        await page.setViewportSize({ width, height: 760 })
        const lefts = await page
          .locator('article .map')
          .first()
          .evaluate((map) => [...map.children].map((cell) => cell.getBoundingClientRect().left))
        expect(Math.min(...lefts)).toBe(lefts[0])
        expect(await overflow()).toBeLessThanOrEqual(0)
      }
      await page.setViewportSize({ width: 360, height: 760 })
      await show(page, 'view=health')
      await page
        .getByRole('region', { name: 'Models and channels', exact: true })
        .locator('tbody tr')
        .first()
        .waitFor(wait)
      const rows = await page
        .locator('.health tbody tr')
        .evaluateAll((all) => all.map((one) => ({ text: one.textContent, height: one.getBoundingClientRect().height })))
      expect(rows.length).toBeGreaterThan(1)
      expect(rows.filter(({ height }) => height > 120)).toEqual([])
      expect(await overflow()).toBeLessThanOrEqual(0)
      await shoot(page, 'health-360')
    } finally {
      await stage.close()
    }
  })
})
