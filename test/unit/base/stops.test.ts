import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createStops } from '../../../src/base/stops.ts'
import { silentLog } from '../../../src/base/log.ts'

describe('createStops', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  const lines: object[] = []
  const log = { ...silentLog, error: (fields: object, message: string) => void lines.push({ ...fields, message }) }
  beforeEach(() => void lines.splice(0))

  test('the parts of a gateway stop once, one after the other, in reverse order', async () => {
    const stops = createStops(log)
    const said: string[] = []
    stops.add('first', async () => void said.push('first'))
    stops.add('second', async () => {
      await Promise.resolve()
      said.push('second')
    })
    await Promise.all([stops.run(), stops.run()])
    expect(said).toEqual(['second', 'first'])
    expect(lines).toEqual([])
  })

  test('all parts share the configured time for the stop, and a part whose turn comes late still gets one second', async () => {
    const stops = createStops(log)
    const stoppedParts: string[] = []
    stops.setTotalLimitMs(3_000)
    for (const part of ['first', 'second', 'third'])
      stops.add(part, () => new Promise(() => stoppedParts.push(part)), { limitMs: 2_500 })
    const stopped = stops.run()
    await vi.advanceTimersByTimeAsync(4_500)
    await stopped
    expect(stoppedParts).toEqual(['third', 'second', 'first'])
    expect(lines.map((line) => Reflect.get(line, 'limitMs'))).toEqual([2_500, 1_000, 1_000])
  })

  test('a part that does not stop is logged, and the stop continues', async () => {
    const stops = createStops(log)
    let isClosed = false
    stops.add('the store', () => void (isClosed = true))
    stops.add('the transforms', () => new Promise(() => {}), { limitMs: 5_000 })
    const stopped = stops.run()
    await vi.advanceTimersByTimeAsync(4_999)
    expect(isClosed).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    await stopped
    expect(isClosed).toBe(true)
    expect(lines).toEqual([
      {
        part: 'the transforms',
        limitMs: 5_000,
        message: 'the transforms did not stop in time; the shutdown continues',
      },
    ])
  })

  test('a part that throws during the stop is logged, and the stop continues', async () => {
    const stops = createStops(log)
    let isClosed = false
    const err = new Error('no')
    stops.add('the store', () => void (isClosed = true))
    stops.add('the port', () => Promise.reject(err))
    await stops.run()
    expect(isClosed).toBe(true)
    expect(lines).toEqual([{ part: 'the port', err, message: 'the port failed to stop; the shutdown continues' }])
  })
})
