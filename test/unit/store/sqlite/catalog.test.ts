// The catalog is extended when it lacks more than 500 rows. Reads return the rows that it has and the rows that it lacks alike.
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newDelivery, newWake } from '../../../contract/stage.ts'
import { newFolder, openStore } from './stage.ts'

test('deliveries, wakes and sessions are found, listed and counted whether or not the catalog has them', async () => {
  const store = openStore(join(newFolder(), 'x.db'))
  const clock = Date.now
  const wakes = Array.from({ length: 1_100 }, (_, index) => newWake(`${index}`, { sessionKey: `s${index % 7}` }))
  const stored = wakes.map((wake, index) =>
    newDelivery({
      at: clock(),
      jobs: [wake],
      event: `e${index}`,
      state: index % 100 === 0 ? 'skipped' : 'accepted',
    }),
  )
  for (const delivery of stored) await store.append(delivery)
  for (const index of [0, 1, 549, 1_098, 1_099]) {
    const found = await store.deliveries({ limit: 3, text: `e${index}` })
    expect(found.at(-1)).toMatchObject({
      event: stored.findLast(({ event }) => event?.includes(`e${index}`))?.event,
    })
    expect(await store.job(wakes[index]?.id ?? '')).toMatchObject({ deliveryId: stored[index]?.id })
    expect((await store.delivery(stored[index]?.id ?? ''))?.jobs).toMatchObject([{ id: wakes[index]?.id }])
  }
  expect(await store.counts()).toMatchObject({
    deliveries: { accepted: 1_089, skipped: 11 },
    jobs: { done: 1_100 },
  })
  expect(await store.countInState('skipped')).toBe(11)
  const skipped = await store.deliveries({ limit: 99, state: 'skipped' })
  expect(skipped.map(({ event }) => event)).toEqual(Array.from({ length: 11 }, (_, index) => `e${index * 100}`))
  expect(await store.sessions({ limit: 99 })).toHaveLength(7)
  const texts: string[] = []
  for (let before: number | undefined; texts.length < wakes.length;) {
    const page = await store.events({ limit: 300, before })
    if (page.length === 0) break
    texts.unshift(...page.map(({ text }) => text))
    before = page[0]?.at
  }
  expect(texts).toEqual(wakes.map((_, index) => `${index}`))
  expect(await store.idsFrom({ prefix: '', limit: 3_000 })).toHaveLength(2_200)
})
