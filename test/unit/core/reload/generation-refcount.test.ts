import { describe, expect, test } from 'vitest'
import { createGenerationRefcount } from '../../../../src/core/reload/generation-refcount.ts'
import { toGeneration } from '../mapping/decide.ts'

describe('a generation', () => {
  test('a generation is unused when it no longer serves and its last request has ended', async () => {
    const refcount = createGenerationRefcount()
    const generation = toGeneration([])
    const end = refcount.add(generation)
    const requests = [refcount.acquire(generation), refcount.acquire(generation)]
    const order: string[] = []
    const gone = refcount.waitUntilUnused(generation).then(() => order.push('gone'))
    end()
    for (const [index, release] of requests.entries()) {
      await new Promise((resolve) => setImmediate(resolve))
      order.push(`request ${index} ends`)
      release()
    }
    await gone
    expect(order).toEqual(['request 0 ends', 'request 1 ends', 'gone'])
  })

  test('a reference to a generation is released once, even if its release function is called again', async () => {
    const refcount = createGenerationRefcount()
    const generation = toGeneration([])
    const end = refcount.add(generation)
    const request = refcount.acquire(generation)
    const order: string[] = []
    const gone = refcount.waitUntilUnused(generation).then(() => order.push('gone'))
    request()
    request()
    await new Promise((resolve) => setImmediate(resolve))
    order.push('still serves')
    end()
    await gone
    expect(order).toEqual(['still serves', 'gone'])
  })

  test('a generation that was never counted is unused at once', async () => {
    const refcount = createGenerationRefcount()
    const generation = toGeneration([])
    await expect(refcount.waitUntilUnused(generation)).resolves.toBeUndefined()
    expect(() => refcount.acquire(generation)()).not.toThrow()
  })
})
