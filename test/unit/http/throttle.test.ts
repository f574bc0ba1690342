import { expect, test } from 'vitest'
import { createThrottle, type Throttle } from '../../../src/http/throttle.ts'

function start(options: { maxClients?: number } = {}) {
  const time = { now: 1_700_000_000_000 }
  return { time, throttle: createThrottle({ clock: () => time.now, ...options }) }
}

function fail(throttle: Throttle, client: string, times: number): void {
  for (let count = 0; count < times; count++) throttle.fail(client)
}

test('the twentieth failure inside a minute locks its client, and no other', () => {
  const { throttle } = start()
  fail(throttle, 'a', 19)
  expect(throttle.lockedFor('a')).toBeUndefined()
  throttle.fail('a')
  expect(throttle.lockedFor('a')).toBe(60)
  expect(throttle.lockedFor('b')).toBeUndefined()
})

test('the lock ends sixty seconds after it began, and the count starts over', () => {
  const { throttle, time } = start()
  fail(throttle, 'a', 20)
  time.now += 59_999
  expect(throttle.lockedFor('a')).toBe(1)
  time.now += 1
  expect(throttle.lockedFor('a')).toBeUndefined()
  fail(throttle, 'a', 19)
  expect(throttle.lockedFor('a')).toBeUndefined()
  throttle.fail('a')
  expect(throttle.lockedFor('a')).toBe(60)
})

test('seconds are rounded up, so that whoever waits as told is let in', () => {
  const { throttle, time } = start()
  fail(throttle, 'a', 20)
  time.now += 1_500
  expect(throttle.lockedFor('a')).toBe(59)
})

test('attempts during the lock do not prolong it', () => {
  const { throttle, time } = start()
  fail(throttle, 'a', 20)
  time.now += 30_000
  fail(throttle, 'a', 100)
  expect(throttle.lockedFor('a')).toBe(30)
  time.now += 30_000
  expect(throttle.lockedFor('a')).toBeUndefined()
  throttle.fail('a')
  expect(throttle.lockedFor('a')).toBeUndefined()
})

test('any sixty seconds count, not those of a calendar', () => {
  const { throttle, time } = start()
  throttle.fail('a')
  time.now += 59_000
  fail(throttle, 'a', 18)
  time.now += 2_000
  throttle.fail('a')
  expect(throttle.lockedFor('a')).toBeUndefined()
  throttle.fail('a')
  expect(throttle.lockedFor('a')).toBe(60)
})

test('failures that are a minute apart never lock', () => {
  const { throttle, time } = start()
  for (let count = 0; count < 100; count++) {
    throttle.fail('a')
    time.now += 3_200
  }
  expect(throttle.lockedFor('a')).toBeUndefined()
})

test('memory is bounded whoever floods, and a lock outlives a flood of single failures', () => {
  const { throttle } = start({ maxClients: 100 })
  fail(throttle, 'locked', 20)
  for (let index = 0; index < 10_000; index++) throttle.fail(`flood-${index}`)
  expect(throttle.size).toBe(100)
  expect(throttle.lockedFor('locked')).toBe(60)
})

test('of the clients that are only counted, the longest quiet is forgotten first', () => {
  const { throttle } = start({ maxClients: 3 })
  fail(throttle, 'early', 19)
  fail(throttle, 'busy', 18)
  throttle.fail('early-too')
  throttle.fail('busy')
  throttle.fail('new')
  throttle.fail('early')
  expect(throttle.lockedFor('early')).toBeUndefined()
  throttle.fail('busy')
  expect(throttle.lockedFor('busy')).toBe(60)
})

test('only where every place is a lock does the one that ends soonest give way', () => {
  const { throttle, time } = start({ maxClients: 3 })
  for (const client of ['first', 'second', 'third']) {
    fail(throttle, client, 20)
    time.now += 1_000
  }
  throttle.fail('fourth')
  expect(throttle.size).toBe(3)
  expect(throttle.lockedFor('first')).toBeUndefined()
  expect(throttle.lockedFor('second')).toBe(58)
  expect(throttle.lockedFor('third')).toBe(59)
})

test('a lock that has ended makes room before anybody is forgotten', () => {
  const { throttle, time } = start({ maxClients: 2 })
  fail(throttle, 'locked', 20)
  time.now += 60_000
  fail(throttle, 'counted', 19)
  throttle.fail('new')
  throttle.fail('counted')
  expect(throttle.lockedFor('counted')).toBe(60)
})

test('a clock that is set back holds nobody longer than the lock', () => {
  const { throttle, time } = start()
  fail(throttle, 'a', 20)
  time.now -= 3_600_000
  expect(throttle.lockedFor('a')).toBeUndefined()
})
