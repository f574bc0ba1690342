// The deliveries of the last hour, counted in the store in short steps, so that the count delays no other request.
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Tally } from '../../../store/counts.ts'
import type { Clock, StoreReader } from '../../../store/store.ts'

const hourMs = 3_600_000
/** What looks for a time goes back this much further, because the clock may have been set back between two deliveries. */
export const clockMs = 3_600_000
/** Such a step takes some milliseconds. */
const stepRows = 2_000
/** Deliveries that are further back are not counted: this many take some hundred milliseconds. */
const maxSteps = 50

/** `since`: the moment back to which all deliveries were counted: an hour ago, or later if they were too many. */
export type HourOfStore = { readonly since: number; readonly tallies: readonly Tally[] }

type HourParts = { readonly store: Pick<StoreReader, 'stepBack' | 'tally'>; readonly clock: Clock }

/** Returns a function that counts. Callers at the same time share a count. */
export function createHourOfStore({ store, clock }: HourParts): () => Promise<HourOfStore> {
  let counting: Promise<HourOfStore> | undefined
  return () => {
    counting ??= countHour(store, clock() - hourMs).finally(() => (counting = undefined))
    return counting
  }
}

async function countHour(store: HourParts['store'], hourAgo: number): Promise<HourOfStore> {
  // whole minutes, so that the first minute of a plot has all its deliveries
  const since = Math.ceil(hourAgo / 60_000) * 60_000
  const tallies: Tally[] = []
  let before: string | undefined
  for (let steps = 1; ; steps += 1) {
    const step = await store.stepBack({ before, rows: stepRows })
    tallies.push(...(await store.tally({ since, before, from: step?.id })))
    if (step === undefined || step.receivedAt < since - clockMs) return { since, tallies }
    if (steps === maxSteps) return { since: Math.max(since, step.receivedAt), tallies }
    before = step.id
    await nextTurn()
  }
}
