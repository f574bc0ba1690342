import { expect, test } from 'vitest'
import { createThrottle, type Throttle } from '../../../../src/gateway/http/throttle.ts'

function start(options: { maxClients?: number } = {}) {
  const time = { now: 1_700_000_000_000 }
  return { time, throttle: createThrottle({ clock: () => time.now, ...options }) }
}

function fail(throttle: Throttle, client: string, times: number): void {
  for (let count = 0; count < times; count++) throttle.fail(client)
}

test('the twentieth failure within a minute locks its client out, and no other client', () => {
  const { throttle } = start()
  fail(throttle, 'a', 19)
  expect(throttle.readLockSeconds('a')).toBeUndefined()
  throttle.fail('a')
  expect(throttle.readLockSeconds('a')).toBe(60)
  expect(throttle.readLockSeconds('b')).toBeUndefined()
})

test('the lock ends sixty seconds after it began, and the count starts over', () => {
  const { throttle, time } = start()
  fail(throttle, 'a', 20)
  time.now += 59_999
  expect(throttle.readLockSeconds('a')).toBe(1)
  time.now += 1
  expect(throttle.readLockSeconds('a')).toBeUndefined()
  fail(throttle, 'a', 19)
  expect(throttle.readLockSeconds('a')).toBeUndefined()
  throttle.fail('a')
  expect(throttle.readLockSeconds('a')).toBe(60)
})

test('the seconds until the end of a lock are rounded up, so that a client that waits for them is let in', () => {
  const { throttle, time } = start()
  fail(throttle, 'a', 20)
  time.now += 1_500
  expect(throttle.readLockSeconds('a')).toBe(59)
})

test('attempts during the lock do not prolong it', () => {
  const { throttle, time } = start()
  fail(throttle, 'a', 20)
  time.now += 30_000
  fail(throttle, 'a', 100)
  expect(throttle.readLockSeconds('a')).toBe(30)
  time.now += 30_000
  expect(throttle.readLockSeconds('a')).toBeUndefined()
  throttle.fail('a')
  expect(throttle.readLockSeconds('a')).toBeUndefined()
})

test('the minute in which failures are counted begins with a failure, not with a minute of the clock', () => {
  const { throttle, time } = start()
  throttle.fail('a')
  time.now += 59_000
  fail(throttle, 'a', 18)
  time.now += 2_000
  throttle.fail('a')
  expect(throttle.readLockSeconds('a')).toBeUndefined()
  throttle.fail('a')
  expect(throttle.readLockSeconds('a')).toBe(60)
})

test('a client with fewer than twenty failures in each minute is never locked out', () => {
  const { throttle, time } = start()
  for (let count = 0; count < 100; count++) {
    throttle.fail('a')
    time.now += 3_200
  }
  expect(throttle.readLockSeconds('a')).toBeUndefined()
})

test('a flood of clients with one failure each stays within the limit and ends no lock', () => {
  const { throttle } = start({ maxClients: 100 })
  fail(throttle, 'locked', 20)
  for (let index = 0; index < 10_000; index++) throttle.fail(`flood-${index}`)
  expect(throttle.size).toBe(100)
  expect(throttle.readLockSeconds('locked')).toBe(60)
})

test('the client that has been quiet for the longest time is forgotten first', () => {
  const { throttle } = start({ maxClients: 3 })
  fail(throttle, 'early', 19)
  fail(throttle, 'busy', 18)
  throttle.fail('early-too')
  throttle.fail('busy')
  throttle.fail('new')
  throttle.fail('early')
  expect(throttle.readLockSeconds('early')).toBeUndefined()
  throttle.fail('busy')
  expect(throttle.readLockSeconds('busy')).toBe(60)
})

test('a lock is forgotten only if the throttle is full of locks, and the lock that ends first is forgotten first', () => {
  const { throttle, time } = start({ maxClients: 3 })
  for (const client of ['first', 'second', 'third']) {
    fail(throttle, client, 20)
    time.now += 1_000
  }
  throttle.fail('fourth')
  expect(throttle.size).toBe(3)
  expect(throttle.readLockSeconds('first')).toBeUndefined()
  expect(throttle.readLockSeconds('second')).toBe(58)
  expect(throttle.readLockSeconds('third')).toBe(59)
})

test('an ended lock is forgotten before a client that is still counted', () => {
  const { throttle, time } = start({ maxClients: 2 })
  fail(throttle, 'locked', 20)
  time.now += 60_000
  fail(throttle, 'counted', 19)
  throttle.fail('new')
  throttle.fail('counted')
  expect(throttle.readLockSeconds('counted')).toBe(60)
})

test('a clock that is set back does not prolong a lock', () => {
  const { throttle, time } = start()
  fail(throttle, 'a', 20)
  time.now -= 3_600_000
  expect(throttle.readLockSeconds('a')).toBeUndefined()
})
