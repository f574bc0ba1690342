import { beforeEach, describe, expect, test, vi } from 'vitest'
import { createPeerLookup } from '../../../../src/gateway/http/client.ts'
import { createReadiness } from '../../../../src/gateway/http/readiness.ts'
import { silentLog } from '../../../../src/base/log.ts'

describe('readiness of a gateway', () => {
  beforeEach(() => void vi.useFakeTimers())

  function createStage({ trouble }: { trouble?: string } = {}) {
    const health = async () => ({ engine: 'x', trouble, facts: {} })
    const readiness = createReadiness({
      store: { health },
      peerOf: createPeerLookup(() => ['10.0.0.0/8']),
      log: silentLog,
    })
    const check = (remoteAddress: string, headers = {}) =>
      // as: the only fields of a request that are read
      readiness.check({ headers, socket: { remoteAddress } } as Parameters<typeof readiness.check>[0])
    let hasRetired = false
    const retire = () => void readiness.retire(10_000).then(() => (hasRetired = true))
    const hasEnded = async () => {
      await vi.advanceTimersByTimeAsync(0)
      return hasRetired
    }
    return { readiness, check, retire, hasEnded }
  }

  test('trusted proxies see whether the gateway is ready, and clients behind them do not', async () => {
    const { check } = createStage()
    expect(await check('10.0.0.1')).toBe(true)
    expect(await check('192.0.2.1')).toBeUndefined()
    expect(await check('10.0.0.1', { 'x-forwarded-for': '192.0.2.1' })).toBeUndefined()
    expect(await createStage({ trouble: 'the disk is full' }).check('10.0.0.1')).toBe(false)
  })

  test('a stop makes the gateway unready and waits until each balancer was told three times', async () => {
    const { readiness, check, retire, hasEnded } = createStage()
    expect(readiness.isStopping()).toBe(false)
    await check('10.0.0.1')
    await check('10.0.0.2')
    retire()
    expect(readiness.isStopping()).toBe(true)
    for (const address of ['10.0.0.1', '10.0.0.2', '10.0.0.1', '10.0.0.2', '10.0.0.1']) {
      expect(await check(address)).toBe(false)
      expect(await hasEnded()).toBe(false)
    }
    await check('10.0.0.2')
    expect(await hasEnded()).toBe(true)
  })

  test('a check of a balancer that began before the stop counts if its answer says unready', async () => {
    const { check, retire, hasEnded } = createStage()
    await check('10.0.0.1')
    const early = check('10.0.0.1')
    retire()
    expect(await early).toBe(false)
    await check('10.0.0.1')
    expect(await hasEnded()).toBe(false)
    await check('10.0.0.1')
    expect(await hasEnded()).toBe(true)
  })

  test('a stop is not delayed if no balancer asks, or no longer asks', async () => {
    const { retire, hasEnded } = createStage()
    retire()
    expect(await hasEnded()).toBe(true)
    const left = createStage()
    await left.check('10.0.0.1')
    await vi.advanceTimersByTimeAsync(31_000)
    left.retire()
    expect(await left.hasEnded()).toBe(true)
  })

  test('a stop waits for balancers at most until its limit', async () => {
    const { check, retire, hasEnded } = createStage()
    await check('10.0.0.1')
    retire()
    await vi.advanceTimersByTimeAsync(9_999)
    expect(await hasEnded()).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(await hasEnded()).toBe(true)
  })
})
