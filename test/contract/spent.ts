import { describe, expect, test } from 'vitest'
import type { Step } from '../../src/model/job.ts'
import type { Spent } from '../../src/store/spent.ts'
import { claimOne } from './jobs.ts'
import { newDelivery, newJob, newWake } from './stage.ts'
import type { Stage } from './store.ts'
import { newTask } from './tasks.ts'

const dayMs = 86_400_000

export function describeSpent(stage: () => Stage): void {
  describe('what runs used', () => {
    const usage = { inputTokens: 700, outputTokens: 20, cachedInputTokens: 500, cacheWriteTokens: 100, costUsd: 0.25 }

    /** Stores a run that ends after 4,321 ms. */
    async function runOnce(hook: string, step: Partial<Step>): Promise<string> {
      const { store, clock } = stage()
      const delivery = newDelivery({ at: clock(), hook, jobs: [newJob()] })
      await store.append(delivery)
      const job = await claimOne(store)
      clock.advance(4_321)
      await store.report(job, {
        steps: [{ name: 'run', state: 'done', at: clock(), ...step }],
        outcome: { kind: 'done' },
      })
      return delivery.id
    }

    test('runs are counted by day, hook, agent, model, state and duration, with what they used', async () => {
      const { store, clock } = stage()
      await runOnce('old', { usage })
      clock.advance(dayMs)
      const since = clock()
      const dearest = await runOnce('github', { model: 'anthropic/opus', usage })
      await runOnce('github', { model: 'anthropic/opus', usage: { inputTokens: 1, outputTokens: 2 } })
      await runOnce('github', { model: 'anthropic/opus' })
      await store.append(newDelivery({ at: clock(), hook: 'stripe', jobs: [newJob()] }))
      await store.report(await claimOne(store), { outcome: { kind: 'dead', error: 'no model' } })
      await store.append(newDelivery({ at: clock(), hook: 'stripe', jobs: [newJob()] }))
      await store.report(await claimOne(store), { outcome: { kind: 'retry', error: 'busy', afterMs: 60_000 } })
      await store.append(newDelivery({ at: clock(), hook: 'stripe', jobs: [newJob()] }))
      clock.advance(dayMs - 20_000)
      await store.append(newDelivery({ at: clock(), hook: 'github', jobs: [newWake('no run')] }))
      // a task without a run, and a heartbeat
      await store.addTask(newTask())

      const { groups, next } = await store.spent({ since, rows: 100 })
      expect(next).toBeUndefined()
      const nothing = {
        day: 0,
        agentId: 'main',
        model: '',
        tookMs: undefined,
        runs: 1,
        counted: 0,
        inputTokens: 0,
        outputTokens: 0,
        cachedInputTokens: 0,
        cacheWriteTokens: 0,
        costUsd: undefined,
        dearest: undefined,
      }
      const sort = (all: readonly Spent[]) => all.toSorted((one, other) => (one.state < other.state ? -1 : 1))
      expect(sort(groups)).toEqual([
        { ...nothing, hook: 'stripe', state: 'dead' },
        {
          ...nothing,
          hook: 'github',
          model: 'anthropic/opus',
          state: 'done',
          tookMs: 4_000,
          runs: 3,
          counted: 2,
          inputTokens: 701,
          outputTokens: 22,
          cachedInputTokens: 500,
          cacheWriteTokens: 100,
          costUsd: 0.25,
          dearest: { deliveryId: dearest, ...usage },
        },
        { ...nothing, hook: 'stripe', state: 'failing' },
        { ...nothing, hook: 'stripe', state: 'waiting' },
      ])
      // the steps together are the whole, and what is older is in none
      const pieces: Spent[] = []
      let [before, steps]: [number | undefined, number] = [undefined, 0]
      do {
        const step = await store.spent({ since, rows: 2, before })
        pieces.push(...step.groups)
        before = step.next
        steps += 1
      } while (before !== undefined && steps < 9)
      expect(pieces.reduce((sum, { runs }) => sum + runs, 0)).toBe(6)
      expect(pieces.reduce((sum, { inputTokens }) => sum + inputTokens, 0)).toBe(701)
      expect((await store.spent({ since: since - dayMs, rows: 100 })).groups.map(({ day }) => day)).toContain(1)
    })

    test('the run that used most is named, once for its day, hook, agent and model', async () => {
      const { store, clock } = stage()
      const since = clock()
      const tokens = (inputTokens: number, outputTokens: number) => ({ usage: { inputTokens, outputTokens } })
      await runOnce('free', tokens(400, 10))
      const long = await runOnce('free', tokens(100, 90))
      clock.advance(60_000)
      await runOnce('free', tokens(300, 20))
      await runOnce('priced', { usage: { inputTokens: 9_000, outputTokens: 9_000, costUsd: 0.01 } })
      const priced = await runOnce('priced', { usage: { inputTokens: 10, outputTokens: 10, costUsd: 0.02 } })
      await runOnce('uncounted', {})
      const { groups } = await store.spent({ since, rows: 100 })
      const named = groups.flatMap(({ hook, dearest }) => (dearest === undefined ? [] : [[hook, dearest.deliveryId]]))
      expect(named.toSorted()).toEqual([
        ['free', long],
        ['priced', priced],
      ])
    })
  })
}
