// Calls of the operator about all parked deliveries, or those of one hook: to run them again, or to drop them.
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { OpenDelivery } from '../../store/records.ts'
import type { Store } from '../../store/store.ts'
import type { Rerunner } from './rerun.ts'

/** `after`: the `next` of the previous call; undefined for the first call. */
export type ParkedQuery = { readonly hook: string | undefined; readonly after: string | undefined }

export type DrainResult = { readonly settled: number; readonly stillParked: number }

/** Each call ends after some seconds, so that no request takes long. If deliveries may be left, it returns `next` for the call after it. */
export type ParkedCalls = {
  /** Runs all parked deliveries, or those of one hook, through the current generation, no matter why they wait. */
  retryParked(query: ParkedQuery): Promise<DrainResult & { readonly next: string | undefined }>
  /** Drops all parked deliveries, or those of one hook. */
  dropParked(query: ParkedQuery): Promise<{ readonly dropped: number; readonly next: string | undefined }>
}

const maxPassMs = 5_000

export function createParkedCalls(parts: {
  readonly store: Pick<Store, 'openDeliveries' | 'drop'>
  readonly rerunner: Pick<Rerunner, 'rerun' | 'waitForRun'>
  readonly isStopped: () => boolean
}): ParkedCalls {
  const { store, rerunner, isStopped } = parts

  /**
   * Calls `act` for the parked deliveries after the delivery `after`, in arrival order. Returns the last one that it visited, or undefined at
   * the end.
   */
  async function walk(
    { hook, after }: ParkedQuery,
    act: (open: OpenDelivery) => Promise<void>,
  ): Promise<string | undefined> {
    const startedAt = performance.now()
    for (let at = after; ;) {
      const [open] = await store.openDeliveries({ state: 'parked', limit: 1, after: at })
      if (open === undefined) return undefined
      at = open.deliveryId
      if (hook === undefined || open.hook === hook) await act(open)
      if (isStopped() || performance.now() - startedAt > maxPassMs) return at
      // store reads of SQLite are synchronous: without this pause, many of them in a row would block every request
      await nextTurn()
    }
  }

  return {
    async retryParked(query) {
      let settled = 0
      let stillParked = 0
      const next = await walk(query, async (open) => {
        await rerunner.waitForRun(open.deliveryId)
        const state = await rerunner.rerun(open)
        if (state === 'parked' || state === 'waiting') stillParked += 1
        else settled += 1
      })
      return { settled, stillParked, next }
    },
    async dropParked(query) {
      let dropped = 0
      const next = await walk(query, async ({ deliveryId }) => {
        if (await store.drop(deliveryId)) dropped += 1
      })
      return { dropped, next }
    },
  }
}
