// Makes random walks over flows on both engines; see flow-model.ts.
import { expect, test } from 'vitest'
import { createMemoryStore } from '../../src/store/sqlite/sqlite.ts'
import { count } from '../counts.ts'
import { openStores, whyNoPostgres } from '../contract/postgres-stage.ts'
import { createClock } from '../contract/stage.ts'
import { seed as first } from '../seed.ts'
import { type Seen, type Walk, walkFlows } from './flow-model.ts'

const [sqliteSteps = 50_000, postgresSteps = 2_000] = (process.env['HOOKLOOM_FLOW_STEPS'] ?? '')
  .split(',')
  .filter((text) => text !== '')
  .map(Number)
const timeout = 7_200_000

type Engine = {
  readonly open: (clock: Walk['clock']) => Promise<Walk['stores']>
  readonly steps: number
  /** The number of calls of one walk. In a longer walk the store grows, so the walk is slower, and its failure is harder to understand. */
  readonly stepsOfWalk: number
}

/** Makes walks, each with another seed and on an empty store. Returns how often each kind of event happened in all of them. */
async function walk({ open, steps, stepsOfWalk }: Engine): Promise<[name: string, count: number][]> {
  const seen: Seen[] = []
  for (let done = 0; done < steps; done += stepsOfWalk) {
    const clock = createClock()
    const stores = await open(clock)
    try {
      seen.push(await walkFlows({ stores, clock, seed: first + done, steps: Math.min(stepsOfWalk, steps - done) }))
    } catch (error) {
      throw new Error(`It failed with HOOKLOOM_SEED=${first + done}.`, { cause: error })
    } finally {
      await Promise.all([...new Set(stores)].map((store) => store.close()))
    }
  }
  const names = Object.keys(seen[0] ?? {}) as (keyof Seen)[] // as: a walk returns these keys
  return names.map((name) => [name, seen.reduce((sum, each) => sum + each[name], 0)])
}

test('flows keep their promises in SQLite after random calls', { timeout }, async (context) => {
  const open = async (clock: Walk['clock']) => {
    const store = createMemoryStore({ clock })
    return [store, store, store] as const
  }
  const seen = await walk({ open, steps: sqliteSteps, stepsOfWalk: 5_000 })
  expect(seen.filter(([, times]) => times === 0)).toEqual([])
  count(context, { steps: sqliteSteps, ...Object.fromEntries(seen) })
})

test.skipIf(whyNoPostgres)(
  'flows keep their promises in Postgres after any calls of three gateways',
  { timeout },
  async (context) => {
    const open = async (clock: Walk['clock']) => {
      const [one, two, three] = await openStores(3, clock)
      if (one === undefined || two === undefined || three === undefined) throw new Error('three stores were asked for')
      return [one, two, three] as const
    }
    const seen = await walk({ open, steps: postgresSteps, stepsOfWalk: 1_000 })
    expect(seen.filter(([, times]) => times === 0)).toEqual([])
    count(context, { steps: postgresSteps, ...Object.fromEntries(seen) })
  },
)
