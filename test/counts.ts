// What a case counted, for the report of `npm run accept`: requests that were acknowledged, kills, what was lost.
import type { TestContext } from 'vitest'

/** `lost`: acknowledged and not in the store. `twice`: stored, performed or posted more than once. Others have the names of their units. */
export type Counts = Readonly<Partial<Record<'acknowledged' | 'lost' | 'twice', number>> & Record<string, number>>

declare module 'vitest' {
  interface TaskMeta {
    counts?: Counts
  }
}

const number = new Intl.NumberFormat('en')

/** `acknowledged 1,949, lost 0`. */
export function describe(counts: Counts): string {
  return Object.entries(counts)
    .map(([name, value]) => `${name} ${number.format(value)}`)
    .join(', ')
}

/** Adds to the counts of a case. */
export function count({ task }: Pick<TestContext, 'task'>, counts: Counts): void {
  const before: Counts = task.meta.counts ?? {}
  const sums = Object.entries(counts).map(([name, value]) => [name, (before[name] ?? 0) + value])
  task.meta.counts = { ...before, ...Object.fromEntries(sums) }
}
