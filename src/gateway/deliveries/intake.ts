// Deliveries that the gateway fetched itself. They are stored together with the position in their source, and then run like requests.
import type { Log } from '../../base/log.ts'
import type { Appended, NewDelivery } from '../../store/records.ts'
import type { CursorMove } from '../../store/cursors.ts'
import type { Store } from '../../store/store.ts'
import { runPending } from './parts.ts'
import type { Rerunner } from './rerun.ts'

export type IntakeParts = {
  readonly store: Pick<Store, 'appendAll' | 'openDeliveries'>
  readonly rerunner: Pick<Rerunner, 'rerun' | 'claim' | 'release'>
  readonly log: Log
}

export type Intake = {
  /**
   * Stores pending deliveries and moves the cursor in one commit, then runs the new deliveries. Resolves to `moved` if another process moved
   * the cursor; then nothing is stored.
   */
  storeAndRun(rows: readonly NewDelivery[], move: CursorMove): Promise<Appended[] | 'moved'>
}

/** If the process ends before a stored delivery ran, it stays pending, and runs at the next start or in another gateway. */
export function createIntake({ store, rerunner, log }: IntakeParts): Intake {
  let running: Promise<unknown> = Promise.resolve()

  return {
    async storeAndRun(rows, move) {
      // the deliveries are claimed before other gateways can see the rows
      await rerunner.claim(rows.map(({ id }) => id))
      const stored = new Set<string>()
      try {
        const appended = await store.appendAll(rows, move)
        if (appended === 'moved') return appended
        for (const [index, { id }] of rows.entries()) if (appended[index]?.kind === 'stored') stored.add(id)
        // not awaited, so that the next call need not wait; the deliveries run in their order
        running = running.then(() => runPending([...stored], { store, rerunner, log }))
        return appended
      } finally {
        await rerunner.release(rows.flatMap(({ id }) => (stored.has(id) ? [] : [id])))
      }
    },
  }
}
