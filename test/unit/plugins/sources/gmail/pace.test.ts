// Concurrent requests for the same work: a fetch is shared, and a sync runs once more.
import { describe, expect, test } from 'vitest'
import { coalesce, singleFlight } from '../../../../../src/plugins/sources/gmail/pace.ts'

/** Work that the test ends: `runs` has the functions that end each run, in the order in which the runs began. */
function createWork() {
  const runs: { end: (value: string) => void; fail: (error: Error) => void }[] = []
  const startWork = () => new Promise<string>((end, fail) => void runs.push({ end, fail }))
  return { runs, startWork }
}

describe('a fetch', () => {
  test('concurrent callers share one fetch and its result', async () => {
    const { runs, startWork } = createWork()
    const fetchToken = singleFlight(startWork)
    const asked = [fetchToken(), fetchToken(), fetchToken()]
    runs[0]?.end('one')
    expect(await Promise.all(asked)).toEqual(['one', 'one', 'one'])
    expect(runs).toHaveLength(1)
  })

  test('a caller after the end of a fetch, successful or not, starts another one', async () => {
    const { runs, startWork } = createWork()
    const fetchToken = singleFlight(startWork)
    const failing = [fetchToken(), fetchToken()]
    runs[0]?.fail(new Error('no network'))
    expect(await Promise.allSettled(failing)).toMatchObject([{ status: 'rejected' }, { status: 'rejected' }])
    const next = fetchToken()
    runs[1]?.end('two')
    expect(await next).toBe('two')
    expect(runs).toHaveLength(2)
  })
})

describe('a sync', () => {
  test('requests for a sync during another one cause one more sync, however many requests there are', async () => {
    const { runs, startWork } = createWork()
    const sync = coalesce(startWork)
    const first = sync()
    const further = [sync(), sync(), sync()]
    expect(runs).toHaveLength(1)
    runs[0]?.end('one')
    expect(await first).toBe('one')
    await expect.poll(() => runs.length).toBe(2)
    runs[1]?.end('two')
    expect(await Promise.all(further)).toEqual(['two', 'two', 'two'])
    expect(runs).toHaveLength(2)
  })

  test('a sync that failed does not prevent the next one', async () => {
    const { runs, startWork } = createWork()
    const sync = coalesce(startWork)
    const [first, second] = [sync(), sync()]
    runs[0]?.fail(new Error('no network'))
    await expect(first).rejects.toThrow('no network')
    await expect.poll(() => runs.length).toBe(2)
    runs[1]?.end('two')
    expect(await second).toBe('two')
  })

  test('two syncs never run at once, even if one is requested just as another ends', async () => {
    let running = 0
    let most = 0
    const sync = coalesce(async () => {
      running += 1
      most = Math.max(most, running)
      for (let turn = 0; turn < 20; turn++) await Promise.resolve()
      running -= 1
    })
    const asked: Promise<void>[] = []
    // a call in each microtask covers every moment between two runs
    for (let turn = 0; turn < 200; turn++) {
      asked.push(sync())
      await Promise.resolve()
    }
    await Promise.all(asked)
    expect(most).toBe(1)
  })
})
