// After `kill -9` at any moment, nothing acknowledged is lost, and nothing recorded is repeated.
import { expect, test } from 'vitest'
import { drain, findDamage } from '../e2e/aftermath.ts'
import { type Gateway, startGateway } from '../e2e/gateway.ts'
import { askRun, createDice, createLoad } from '../e2e/load.ts'
import { count } from '../counts.ts'
import { createHistory, deliveryKey, recordStored, startWitness } from '../history/history.ts'
import { seed, withSeed } from '../seed.ts'

const kills = 20
/** The maximum number of deliveries that are begun before each kill, so that the work that is left at the end fits into the time of the test. */
const perRound = 250

test(
  'twenty kills under load lose no acknowledged delivery and repeat no effect',
  { timeout: 180_000 },
  async (context) => {
    const pickBelow = createDice(seed)
    const history = createHistory('crash')
    const load = createLoad({ connections: 16, pickBelow, history })
    const mapping = { id: 'mapped', match: { path: 'mapped' }, messageTemplate: '{{text}}', deliver: false }
    let gateway: Gateway = await startGateway({
      config: { hooks: { mappings: [mapping] }, ...(await startWitness(history, deliveryKey)) },
    })
    const { dir } = gateway
    await withSeed(async () => {
      for (let kill = 0; kill < kills; kill++) {
        load.open(gateway, perRound)
        await wait(50 + pickBelow(1_451))
        load.close()
        await history.during('kill', async () => {
          await gateway.kill()
          expect(findDamage(dir)).toEqual([])
          gateway = await startGateway({ dir })
        })
      }
      load.open(gateway, 0)
      const acknowledged = await load.finish()
      expect(load.unexpected).toEqual([])
      expect(acknowledged.length).toBeGreaterThan(kills * 20)
      await drain(dir)
      await recordStored(history, { dir, ask: (run) => askRun(gateway.url, run) })
      await load.repeat(gateway, 200)
      const { unknown, repeated } = history.judge()
      count(context, {
        acknowledged: acknowledged.length,
        lost: 0,
        twice: 0,
        kills,
        unknown,
        'repeated turns': repeated,
      })
      expect(await gateway.stop()).toBe(0)
      expect(findDamage(dir)).toEqual([])
    })
  },
)

/** Only the moment of a kill depends on time. */
function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
