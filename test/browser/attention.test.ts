// What needs a person is read from the store, by its cause: it survives a restart and thousands of newer deliveries, and every gateway shows it.
import { expect, test } from 'vitest'
import type { Store } from '../../src/store/store.ts'
import { claimOne } from '../contract/jobs.ts'
import { newDelivery, newJob } from '../contract/stage.ts'
import { describeFilled } from './filled.ts'
import { findBarriers, shoot, startStage, type Stage, transform } from './stage.ts'

const wait = { timeout: 60_000 }
const files = { 'hooks/transforms/review.ts': transform }
const hourMs = 3_600_000
/** The store has the reason without words of the request. */
const refused = /The body (is not JSON|does not parse)/

/** A dead run and a failing one, and then 5,000 deliveries without a fault. */
async function fillStore(store: Store): Promise<void> {
  const at = Date.now() - 20 * hourMs
  for (const error of ['Telegram: chat 42 not found', 'ECONNREFUSED 127.0.0.1:4040']) {
    await store.append(newDelivery({ at, hook: 'plain', jobs: [newJob()] }))
    const outcome = error.startsWith('E')
      ? { kind: 'retry' as const, error, afterMs: hourMs }
      : { kind: 'dead' as const, error }
    await store.report(await claimOne(store), { outcome })
  }
  for (let n = 0; n < 10; n += 1) {
    const newer = Array.from({ length: 500 }, () =>
      newDelivery({ at: at + hourMs, hook: 'plain', jobs: [newJob({ state: 'done' })] }),
    )
    await store.appendAll(newer, [])
  }
}

describeFilled('attention after a restart', (fill) => {
  test(
    'dead and failing runs behind 5,000 deliveries and the refusals of a known sender stay until a person ends them',
    { timeout: 240_000 },
    async () => {
      const { dir, another } = await fill({ work: fillStore })
      const first = await startStage({ dir, files })
      const stages: Stage[] = [first]
      try {
        await first.post('plain', { text: 'known' })
        const readRefused = async (stage: Stage) => {
          const { senders } = (await stage.ask('/api/senders')) as { senders: { hook: string; refused: object[] }[] }
          return senders.find(({ hook }) => hook === 'plain')?.refused.length
        }
        await expect.poll(() => readRefused(first), wait).toBe(0)
        await first.post('plain', '{"text":')
        await expect.poll(() => readRefused(first), wait).toBe(1)
        await first.gateway.stop()
        const stage = await startStage({ dir, files }, first.browser)
        stages.push(stage)
        const other = another === undefined ? stage : await startStage({ dir: another(), files }, first.browser)
        if (other !== stage) stages.push(other)

        const page = await other.open({ hash: 'state=attention' })
        const cause = (text: string | RegExp) => page.locator('.cause', { hasText: text })
        await cause('chat 42 not found').getByText('✕ 1 dead').waitFor(wait)
        await cause('ECONNREFUSED').getByText('▲ 1 failing').waitFor(wait)
        await cause(refused).getByText('⊘ 1 refused').waitFor(wait)
        await expect.poll(() => page.title(), wait).toBe('(3) Hookloom')
        await shoot(page, 'attention-after-restart')
        expect(await findBarriers(page)).toEqual([])
        // the channels and models of health know of them too
        const { outlets } = (await other.ask('/api/outlets')) as { outlets: { failed: number }[] }
        expect(outlets.reduce((sum, { failed }) => sum + failed, 0)).toBe(2)

        await cause(refused).getByRole('button', { name: 'it is over' }).click()
        await cause(refused).getByText('Ended, until the next one.').waitFor(wait)
        await page.reload()
        await cause('ECONNREFUSED').waitFor(wait)
        expect(await cause(refused).count()).toBe(0)
        for (const { ids } of ((await stage.ask('/api/attention')) as { groups: { ids: string[] }[] }).groups)
          await stage.ask(`/api/deliveries/${ids[0]}/drop`, 'POST')
        await page.reload()
        await page.getByText('Nothing needs attention.').waitFor(wait)
        await expect.poll(() => page.title(), wait).toBe('Hookloom')
        // the next refusal counts again
        await other.post('plain', '{"text":')
        await page.reload()
        await cause(refused).getByText('⊘ 1 refused').waitFor(wait)
        expect(stages.flatMap(({ errors }) => errors)).toEqual([])
      } finally {
        for (const each of stages.toReversed()) await each.close()
      }
    },
  )
})
