// What the rows of the list say: what a delivery was about, where a search found its words, and how often a sender was refused.
import { expect, test } from 'vitest'
import { newDelivery, newJob, parked, request } from '../contract/stage.ts'
import { describeFilled } from './filled.ts'
import { findBarriers, mappings, shoot, show, startStage, transform } from './stage.ts'

const wait = { timeout: 60_000 }
const hourMs = 3_600_000
const files = { 'hooks/transforms/review.ts': transform }
const config = {
  hooks: {
    mappings: [
      ...mappings,
      { id: 'orders', match: { path: 'orders' }, deliver: false, retain: true },
      { id: 'quiet', match: { path: 'quiet' }, messageTemplate: 'Look at\n{{title}}', deliver: false, retain: true },
      {
        id: 'signed',
        match: { path: 'signed' },
        verify: { scheme: 'github', secret: 'a secret of the test' },
        deliver: false,
      },
    ],
  },
}

describeFilled('the rows of the list', (fill) => {
  test('a row says what its delivery was about, also one that an earlier version stored, and shows no secret', async () => {
    const message = JSON.stringify({ issue: { number: 3, title: 'Door is shut' }, action: 'opened' }, undefined, 2)
    const old = newDelivery({
      at: Date.now() - hourMs,
      hook: 'orders',
      event: 'issues',
      jobs: [newJob({ planned: { ...newJob().planned, action: { kind: 'agent', message } } as never })],
    })
    const { dir } = await fill({ config, deliveries: [old] })
    const stage = await startStage({ dir, files })
    try {
      const token = `ghp_${'a1'.repeat(18)}`
      const order = await stage.post('orders', { name: '#1043', total_price: '183.48', currency: 'EUR', type: 'order' })
      const quiet = await stage.post('quiet', { title: `Rotate ${token}` })
      const page = await stage.open()
      const about = (id: string) => page.locator(`#row-${id} .summary`)
      await about(order).getByText('Order #1043, 183.48 EUR').waitFor(wait)
      await about(quiet).getByText('Rotate …').waitFor(wait)
      await about(old.id).getByText('Issue #3 opened: Door is shut').waitFor(wait)
      expect(await page.locator('#list').innerText()).not.toContain('ghp_')
      expect(stage.errors).toEqual([])
    } finally {
      await stage.close()
    }
  })

  test('a search marks the words in the row, and names the payload or the reply that has them', async () => {
    const { dir } = await fill({ config })
    const stage = await startStage({ dir, files })
    try {
      const shown = await stage.post('quiet', { title: 'A heron at the door' })
      const hidden = await stage.post('quiet', { title: 'Nothing', who: { bird: 'grey heron' } })
      const page = await stage.open({ hash: 'q=HERON' })
      const row = (id: string) => page.locator(`#row-${id}`)
      await row(shown).locator('mark').getByText('heron').waitFor(wait)
      expect(await row(shown).locator('.found').count()).toBe(0)
      await row(hidden).locator('.found').waitFor(wait)
      expect(await row(hidden).locator('.found').innerText()).toMatch(/^payload bird .*grey heron/)
      expect(await row(hidden).locator('mark').allInnerTexts()).toEqual(['heron'])
      expect(await findBarriers(page)).toEqual([])
      expect(stage.errors).toEqual([])
    } finally {
      await stage.close()
    }
  })

  test('wrong signatures of one sender are one row, which x opens, and the first line of a refusal is its reason', async () => {
    const { dir } = await fill({ config })
    const stage = await startStage({ dir, files })
    try {
      const signature = `sha256=${'ab'.repeat(32)}`
      for (let n = 0; n < 8; n += 1)
        await stage.post('signed', { n }, { 'x-hub-signature-256': signature, authorization: '' })
      const done = await stage.post('quiet', { title: 'Between' })
      await stage.post('signed', { n: 8 }, { 'x-hub-signature-256': signature, authorization: '' })
      const page = await stage.open()
      const refused = page.locator('.row.refused')
      await page.locator(`#row-${done}`).waitFor(wait)
      await refused.locator('.fold', { hasText: '× 9' }).waitFor(wait)
      expect(await refused.count()).toBe(1)
      await refused.click()
      const problem = page.locator('#detail .problem p')
      await problem.first().waitFor(wait)
      expect(await problem.first().innerText()).toMatch(/signature/i)
      expect(await page.locator('#detail .title time').count()).toBe(2)
      // the part of the signature that came, its time, and what was expected, first and without `hookloom dev`
      const facts = page.locator('#detail .problem .fields')
      expect(await facts.innerText()).toMatch(
        /came at[^]*x-hub-signature-256\s+sha256=abababab[ab]*… \(71 characters\)\s+expected\s+the proof of github/,
      )
      expect(await page.locator('#detail').innerText()).not.toContain('ab'.repeat(16))
      await shoot(page, 'refusal')
      await page.locator('#list').focus()
      await page.keyboard.press('x')
      await expect.poll(() => refused.count(), wait).toBeGreaterThan(5)
      expect(await findBarriers(page)).toEqual([])
      await refused.locator('.fold').click()
      await expect.poll(() => refused.count(), wait).toBe(1)
      expect(stage.errors).toEqual([])
    } finally {
      await stage.close()
    }
  })

  test('the time of a run does not count the hours that its delivery was parked, and no state is cut off', async () => {
    const late = request('{"text":"Late"}')
    const long = newDelivery({
      at: Date.now() - 5 * hourMs,
      hook: 'plain',
      ...parked({ mappingId: 'plain', waitsFor: undefined }),
      request: { ...late, head: { ...late.head, path: 'plain', url: '/hooks/plain' } },
      answer: { status: 200, body: '{"ok":true,"status":"parked"}' },
    })
    const ended = newDelivery({ at: Date.now() - hourMs, hook: 'plain', jobs: [newJob()] })
    const { dir } = await fill({ config, deliveries: [long, ended] })
    const stage = await startStage({ dir, files })
    try {
      await stage.ask(`/api/deliveries/${long.id}/retry`, 'POST')
      for (const width of [360, 860, 1440]) {
        const page = await stage.open({ width })
        const row = page.locator(`#row-${long.id}`)
        await row.locator('.outcome', { hasText: 'done' }).waitFor(wait)
        if (width === 1440) expect(await row.locator('.took').innerText()).not.toMatch(/min|h/)
        const cut = await row.locator('.outcome').evaluate((cell) => {
          cell.textContent = '↷ superseded'
          return cell.scrollWidth - cell.clientWidth
        })
        expect(cut).toBe(0)
        if (width === 1440) {
          await show(page, `id=${long.id}`)
          await page.locator('#detail .title', { hasText: /took [^h]*$/m }).waitFor(wait)
        }
        await page.context().close()
      }
    } finally {
      await stage.close()
    }
  })
})
