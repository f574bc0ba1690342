import { describe, expect, test } from 'vitest'
import { createHolds } from '../../src/live/holds.ts'
import { toGeneration } from './decide.ts'

describe('a generation', () => {
  test('is gone when it no longer serves and its last request has ended', async () => {
    const holds = createHolds()
    const generation = toGeneration([])
    const end = holds.begin(generation)
    const requests = [holds.hold(generation), holds.hold(generation)]
    const order: string[] = []
    const gone = holds.gone(generation).then(() => order.push('gone'))
    end()
    for (const [index, release] of requests.entries()) {
      await new Promise((resolve) => setImmediate(resolve))
      order.push(`request ${index} ends`)
      release()
    }
    await gone
    expect(order).toEqual(['request 0 ends', 'request 1 ends', 'gone'])
  })

  test('is let go once by each who holds it, however often that one says so', async () => {
    const holds = createHolds()
    const generation = toGeneration([])
    const end = holds.begin(generation)
    const request = holds.hold(generation)
    const order: string[] = []
    const gone = holds.gone(generation).then(() => order.push('gone'))
    request()
    request()
    await new Promise((resolve) => setImmediate(resolve))
    order.push('still serves')
    end()
    await gone
    expect(order).toEqual(['still serves', 'gone'])
  })

  test('that is gone, or never was, holds nobody up', async () => {
    const holds = createHolds()
    const generation = toGeneration([])
    await expect(holds.gone(generation)).resolves.toBeUndefined()
    expect(() => holds.hold(generation)()).not.toThrow()
  })
})
