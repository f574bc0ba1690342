// The processor time for learning: a share of what the process uses, and a little of the time that passes.
import { expect, test } from 'vitest'
import { createAllowance } from '../../../src/deliveries/shapes/allowance.ts'

/** `work`: what learning from one request takes, in milliseconds of processor time. */
function createStage({ work }: { readonly work: number }) {
  let at = 0
  let used = 0
  const allowance = createAllowance({ clock: () => at, used: () => used })
  let spent = 0
  return {
    /** The processor works for `busyMs` of `passedMs`. */
    pass(busyMs: number, passedMs: number) {
      at += passedMs
      used += busyMs
    },
    /** Learns as often as it may. `pausedMs`: the thread does not run for that long meanwhile. */
    learn(pausedMs = 0): number {
      let times = 0
      for (; allowance.has(); times += 1) {
        allowance.spend(() => {
          at += work + pausedMs
          used += work
          spent += work
        })
      }
      return times
    },
    spent: () => spent,
  }
}

test('a busy process spends at most two percent of its processor time on learning, however long it has to wait', () => {
  for (const busy of [1, 0.1]) {
    const stage = createStage({ work: 0.1 })
    stage.learn()
    const before = stage.spent()
    for (let second = 0; second < 600; second += 1) {
      stage.pass(1_000 * busy, 1_000)
      expect(stage.learn()).toBeGreaterThan(3)
    }
    expect((stage.spent() - before) / (600_000 * busy)).toBeLessThan(0.021)
  }
})

test('the first hundreds of requests, and few requests later, are all learnt from', () => {
  const stage = createStage({ work: 0.1 })
  expect(stage.learn()).toBeGreaterThan(900)
  for (let minute = 0; minute < 60; minute += 1) {
    stage.pass(1, 60_000)
    expect(stage.learn()).toBeGreaterThan(100)
  }
})

test('a thread that another process interrupts is not charged for the interruption', () => {
  const [quiet, interrupted] = [createStage({ work: 0.1 }), createStage({ work: 0.1 })]
  expect(interrupted.learn(5)).toBeGreaterThanOrEqual(quiet.learn())
})
