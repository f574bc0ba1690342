// What other gateways on the store change. The stream of a gateway has its own changes; while a page is open, the store is asked once a second for
// those of the others: new deliveries, and the ends of what a page was shown before its end.
import { setTimeout as sleep } from 'node:timers/promises'
import type { DeliveryRecord } from '../../../store/records.ts'
import type { Changes } from '../../../store/changes.ts'
import type { StoreReader } from '../../../store/store.ts'

const everyMs = 1_000
/** More new deliveries than this at once make the pages read their lists again. */
const maxNew = 501
/** The number of jobs and deliveries that are watched. The oldest are forgotten. */
const maxWatched = 2_000

type OthersParts = {
  readonly store: Pick<StoreReader, 'nodes' | 'deliveries' | 'progress'>
  readonly changes: Pick<Changes, 'count' | 'since' | 'noteChange'>
}

export type Others = {
  /** Notes what pages are shown, so that its changes are found. */
  note(records: readonly DeliveryRecord[]): void
  /** Watches until the signal is aborted. From when this resolves, no change is missed. */
  watch(signal: AbortSignal): Promise<void>
}

export function createOthers({ store, changes }: OthersParts): Others {
  const watched = new Map<string, { readonly state: string; readonly change?: string }>()
  const watchers = new Set<AbortSignal>()
  let looking: Promise<void> | undefined
  /** The newest delivery of each of the last two looks: a row may be committed after one with a higher number. */
  let newest: readonly (string | undefined)[] = []
  let seen: ReadonlySet<string> = new Set()

  async function look(): Promise<void> {
    // a gateway that is alone only remembers its newest delivery: one that joins stores newer ones
    const isAlone = (await store.nodes()).length < 2
    const isFirst = newest.length === 0
    const place = changes.count()
    const own = changes.since(Math.max(0, place - maxNew))
    const found = await store.deliveries({ limit: isFirst || isAlone ? 1 : maxNew, from: newest[0] })
    const ids = found.map(({ deliveryId }) => deliveryId)
    if (!isFirst && !isAlone)
      for (const id of ids) if (id !== newest[0] && !seen.has(id) && own?.has(id) !== true) changes.noteChange(id)
    seen = new Set(ids)
    // none: the retention deleted them
    newest = ids.length === 0 && newest[0] !== undefined ? [] : [newest.at(-1) ?? ids.at(-1), ids.at(-1)]
    if (isAlone) return
    for (const { id, state, change } of await store.progress([...watched.keys()])) {
      const before = watched.get(id)
      if (before === undefined) continue
      watched.set(id, { state, change })
      if (before.state !== state || (before.change ?? change) !== change) changes.noteChange(id)
    }
  }

  async function lookUntilNobodyWatches(): Promise<void> {
    while (watchers.size > 0) {
      await sleep(everyMs, undefined, { ref: false })
      // the store cannot be read now: the next look finds what this one missed
      if (watchers.size > 0) await look().catch(() => undefined)
    }
    watched.clear()
    newest = []
    looking = undefined
  }

  return {
    note(records) {
      for (const { deliveryId, state, jobs } of records) {
        const open = [
          ...(state === 'pending' || state === 'parked' ? [{ id: deliveryId, state }] : []),
          ...jobs.filter((job) => ['queued', 'running', 'dead'].includes(job.state)),
        ]
        for (const id of [deliveryId, ...jobs.map((job) => job.id)]) watched.delete(id)
        for (const { id, state: now } of open) watched.set(id, { state: now })
      }
      for (const id of watched.keys()) if (watched.size > maxWatched) watched.delete(id)
    },
    async watch(signal) {
      if (signal.aborted) return
      watchers.add(signal)
      signal.addEventListener('abort', () => watchers.delete(signal), { once: true })
      if (looking === undefined) {
        looking = look().catch(() => undefined)
        void looking.then(lookUntilNobodyWatches)
      }
      await looking
    },
  }
}
