import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openDatabase } from '../../../../src/store/sqlite/driver.ts'
import { flowJob } from '../../../contract/flow.ts'
import { claimOne } from '../../../contract/jobs.ts'
import { createClock, newDelivery } from '../../../contract/stage.ts'
import { newFolder, openStore } from './stage.ts'

test('a sweep deletes the starts that no rate limit counts any more, and keeps the others', async () => {
  const file = join(newFolder(), 'x.db')
  const clock = createClock()
  const store = openStore(file, { clock })
  const start = async (key: string) => {
    const job = flowJob({ key, rateLimit: { limit: 2, period: '31d' } })
    await store.append(newDelivery({ at: clock(), jobs: [job] }))
    await store.report(await claimOne(store), { outcome: { kind: 'done' } })
    return clock()
  }
  await start('a')
  clock.advance(31 * 86_400_000)
  const late = await start('b')
  clock.advance(1)
  await store.sweep(365 * 86_400_000)
  const db = openDatabase(file, { readOnly: true, busyMs: 1_000 })
  expect(db.all('SELECT at FROM flow_counts')).toEqual([{ at: late }])
  db.close()
})
