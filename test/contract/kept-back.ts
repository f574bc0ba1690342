import { describe, expect, test } from 'vitest'
import type { NewJob } from '../../src/store/records.ts'
import { flowJob } from './flow.ts'
import { claimOne } from './jobs.ts'
import { newDelivery, newJob } from './stage.ts'
import type { Stage } from './store.ts'

const pause = { kind: 'pause', author: 'ada', reason: '', forMs: undefined } as const
const most = { nanos: 0, tokens: 0, turns: 1 }

export function describeKeptBack(stage: () => Stage): void {
  describe('the runs that holds and budgets keep back', () => {
    const add = async (job: NewJob) => {
      const { store, clock } = stage()
      const delivery = newDelivery({ at: clock(), hook: 'plain', jobs: [job] })
      await store.append(delivery)
      clock.advance(1)
      return delivery
    }
    const read = async (each = 9) =>
      (await stage().store.keptBack({ each })).map(({ wait, count, since, deliveries }) => ({
        by: wait.kind === 'hold' ? wait.hold.label : wait.name,
        jobId: wait.jobId,
        count,
        since,
        ids: deliveries.map(({ deliveryId }) => deliveryId),
      }))

    test('a hold keeps back the queued runs that have its label, the newest first, and no others', async () => {
      const { store, clock } = stage()
      const since = clock()
      const mine = [await add(newJob({ labels: ['mapping:a'] })), await add(flowJob({ key: 'k' }, { ring: 'a' }))]
      // a longer label, and a limit with this name
      await add(newJob({ labels: ['mapping:a2'] }))
      const limited = await add(flowJob({ key: 'm', limits: ['a'] }, { ring: 'b' }))
      expect(await read()).toEqual([])
      await store.hold({ ...pause, label: 'mapping:a' })
      const ofMapping = {
        by: 'mapping:a',
        jobId: mine[0]?.jobs[0]?.id,
        count: 2,
        since,
        ids: [mine[1]?.id, mine[0]?.id],
      }
      expect(await read()).toEqual([ofMapping])
      expect((await read(1))[0]).toMatchObject({ count: 2, ids: [mine[1]?.id] })
      await store.hold({ ...pause, label: 'limit:a' })
      expect(await read()).toMatchObject([{ by: 'limit:a', count: 1, ids: [limited.id] }, ofMapping])
      await store.hold({ ...pause, label: 'all' })
      expect(await read()).toMatchObject([{ by: 'all', count: 4 }, {}, {}])
      for (const label of ['all', 'limit:a', 'mapping:a']) await store.unhold({ label, kind: 'pause' })
      expect(await read()).toEqual([])
    })

    test('a budget keeps back the runs that wait for it, until it is raised', async () => {
      const { store, clock } = stage()
      const spent = [{ name: 'daily', startsAt: 0, endsAt: clock() + 3_600_000, limits: { turns: 1 }, most }]
      await add(newJob())
      await store.reserve(await claimOne(store), spent)
      const second = await add(newJob())
      expect(await store.reserve(await claimOne(store), spent)).toMatchObject({ kind: 'waits' })
      expect(await read()).toMatchObject([{ by: 'daily', count: 1, ids: [second.id] }])
      await store.raiseBudget({ name: 'daily', startsAt: 0 }, most)
      expect(await read()).toEqual([])
    })
  })
}
