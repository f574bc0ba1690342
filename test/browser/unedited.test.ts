// The replay on the page where nothing was edited, after a restart, with 5,000 other deliveries, and with two gateways on one store.
import { expect, test } from 'vitest'
import { newDelivery } from '../contract/stage.ts'
import { describeFilled } from './filled.ts'
import { startStage, type Stage } from './stage.ts'

const wait = { timeout: 60_000 }
const config = {
  hooks: {
    mappings: [
      {
        id: 'flows',
        match: { path: 'flows' },
        messageTemplate: 'Order {{no}}',
        flow: { key: '{{no}}', delay: '1s', total: 2 },
        sessionKey: 'hook:{{no}}',
        deliver: false,
        retain: true,
      },
      { id: 'wakes', match: { path: 'wakes' }, action: 'wake', textTemplate: 'Order {{no}}', retain: true },
    ],
  },
}

describeFilled('a replay on the page without an edit', (fill) => {
  test('differs in nothing from the record, also after a restart and with requests of another gateway', async () => {
    const deliveries = Array.from({ length: 5_000 }, () => newDelivery({ at: Date.now(), hook: 'plain' }))
    const { dir, another } = await fill({ config, deliveries })
    const first = await startStage({ dir })
    const stages: Stage[] = []
    try {
      for (let no = 0; no < 10; no += 1) for (const hook of ['flows', 'wakes']) await first.post(hook, { no })
      await first.gateway.stop()
      stages.push(await startStage({ dir }, first.browser))
      if (another !== undefined) stages.push(await startStage({ dir: another() }, first.browser))
      for (let no = 10; no < 15; no += 1) await stages.at(-1)?.post('flows', { no })
      const page = await stages[0]?.open({ hash: 'view=replay' })
      await page?.locator('.replay > .said', { hasText: '25 requests, no difference.' }).waitFor(wait)
      expect([first, ...stages].flatMap(({ errors }) => errors)).toEqual([])
    } finally {
      for (const each of [...stages.toReversed(), first]) await each.close()
    }
  })
})
