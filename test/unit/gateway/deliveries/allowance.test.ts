// The time for learning: a share of the time for which the event loop is busy, and a little of the time that passes.
import { expect, test } from 'vitest'
import { createAllowance } from '../../../../src/gateway/deliveries/shapes/allowance.ts'

/** `work`: the time that it takes to learn from one request, in milliseconds. */
function createStage({ work }: { readonly work: number }) {
  let at = 0
  let busy = 0
  const allowance = createAllowance({ clock: () => at, busy: () => busy })
  let spent = 0
  return {
    /** The event loop is busy for `busyMs` of `passedMs`. */
    pass(busyMs: number, passedMs: number) {
      at += passedMs
      busy += busyMs
    },
    /** Learns as often as the allowance permits. `pausedMs`: the thread is stopped for this time before each allowance is used. */
    learn(pausedMs = 0): number {
      let times = 0
      for (; allowance.hasTime(); times += 1) {
        allowance.spend(() => {
          at += work + pausedMs
          busy += work + pausedMs
          spent += work
        })
      }
      return times
    },
    spent: () => spent,
  }
}

test('a process spends less than two percent of its busy time on learning shapes', () => {
  for (const busy of [1, 0.1]) {
    const stage = createStage({ work: 0.1 })
    stage.learn()
    const before = stage.spent()
    for (let second = 0; second < 600; second += 1) {
      stage.pass(1_000 * busy, 1_000)
      expect(stage.learn()).toBeGreaterThan(3)
    }
    expect((stage.spent() - before) / (600_000 * busy)).toBeLessThan(0.0155)
  }
})

test('there is time to learn from the first nine hundred requests, and later from a hundred requests a minute in an idle process', () => {
  const stage = createStage({ work: 0.1 })
  expect(stage.learn()).toBeGreaterThan(900)
  for (let minute = 0; minute < 60; minute += 1) {
    stage.pass(1, 60_000)
    expect(stage.learn()).toBeGreaterThan(100)
  }
})

test('the first five hundred requests are learnt from on a machine that is ten thousand times slower', () => {
  expect(createStage({ work: 1_000 }).learn()).toBeGreaterThanOrEqual(500)
  expect(createStage({ work: 0.1 }).learn(60_000)).toBeGreaterThanOrEqual(500)
})

test('after a pause of a minute during its learning, a process learns again once its event loop was busy for twenty seconds', () => {
  const stage = createStage({ work: 0.1 })
  // after the first requests, and with an allowance that is full again
  stage.learn()
  stage.pass(1_000_000, 1_000_000)
  expect(stage.learn(60_000)).toBe(1)
  stage.pass(18_000, 18_000)
  expect(stage.learn()).toBe(0)
  stage.pass(2_000, 2_000)
  expect(stage.learn()).toBeGreaterThan(0)
})
