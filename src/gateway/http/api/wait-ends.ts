// What keeps runs back, and what a person can do so that they wait no longer.
import type { WaitEnd } from '../../../model/api/answers.ts'
import type { AttentionGroup } from '../../../model/api/operations.ts'
import type { DeliveryRecord } from '../../../store/records.ts'
import type { Wait } from '../../../store/waits.ts'
import { readBudgets } from '../../deliveries/budgets.ts'
import { toIsoTime } from '../../deliveries/records.ts'
import { findWaitEnd, isSameCause, type MeanTurn, readMeanTurn } from '../../deliveries/wait-ends.ts'
import { describeKeptBack } from '../../deliveries/waits.ts'
import type { ApiParts } from './parts.ts'
import { nameLabel } from './pause-targets.ts'

type WaitEndParts = Pick<ApiParts, 'store' | 'generation' | 'clock'>

type Asked = { readonly wait: Wait; readonly turns: number; readonly hook: string | undefined }

/** Returns a function that finds the ends of waits. It reads the last turns of each hook once. */
async function createFinder({ store, generation, clock }: WaitEndParts) {
  const current = generation()
  const { config } = current
  const budgets = await readBudgets(store, config, clock())
  const means = new Map<string | undefined, Promise<MeanTurn>>()
  const readMean = (hook: string | undefined) => {
    const mean = means.get(hook) ?? readMeanTurn(store, { hook, models: config.models })
    means.set(hook, mean)
    return mean
  }
  return async ({ wait, turns, hook }: Asked) => {
    const nameOf = (label: string) => nameLabel(label, current)
    return findWaitEnd(wait, { turns, mean: await readMean(hook), budgets, nameLabel: nameOf })
  }
}

/** How the first queued run of a delivery can start now. `waits`: those of its runs. */
export async function readWaitEnd(
  parts: WaitEndParts,
  { jobs, hook }: DeliveryRecord,
  waits: readonly Wait[],
): Promise<WaitEnd | undefined> {
  const queued = jobs.find(({ state }) => state === 'queued')
  const wait = waits.find(({ jobId }) => jobId === queued?.id)
  if (wait === undefined) return undefined
  const isKept = wait.kind === 'hold' || wait.kind === 'budget'
  if (!isKept && wait.kind !== 'quiet') return undefined
  const kept = isKept
    ? (await parts.store.keptBack({ each: 0 })).find((each) => isSameCause(wait, each.wait))
    : undefined
  return (await createFinder(parts))({ wait, turns: kept?.count ?? 1, hook })
}

/** The runs that holds and budgets keep back, a group for each. `each`: the maximum number of ids of a group. */
export async function readKeptGroups(parts: WaitEndParts, each: number): Promise<AttentionGroup[]> {
  const { store, generation, clock } = parts
  const found = await store.keptBack({ each })
  if (found.length === 0) return []
  const facts = { config: generation().config, now: clock() }
  const findEnd = await createFinder(parts)
  return Promise.all(
    found.map(async ({ wait, count, since, deliveries }): Promise<AttentionGroup> => {
      const hooks = [...new Set(deliveries.map(({ hook }) => hook))]
      return {
        kind: 'waiting',
        title: describeKeptBack({ wait }, facts),
        place: null,
        code: null,
        hooks: hooks.slice(0, 5),
        count,
        since: toIsoTime(since),
        at: toIsoTime(since),
        ids: deliveries.map(({ deliveryId }) => deliveryId),
        waitEnd: await findEnd({ wait, turns: count, hook: hooks[0] }),
      }
    }),
  )
}
