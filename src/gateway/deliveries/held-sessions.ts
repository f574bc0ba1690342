// Says in the answer to a request that its run waits, because its session has had its turns of this hour.
import type { Hold, NewJob } from '../../store/records.ts'
import { toSessionLabel } from '../../store/rules.ts'
import type { Clock, Store } from '../../store/store.ts'
import { describeTurnsHold } from './waits.ts'

/** The holds are read at most this often: an answer may be that much out of date. */
const readEveryMs = 1_000

/** Returns the jobs, and the sentence about the only run among them; undefined if nothing is known to keep it waiting. Never rejects. */
export function createHeldSessions({ store, clock }: { store: Pick<Store, 'holds'>; clock: Clock }) {
  let read: { readonly at: number; readonly holds: Promise<readonly Hold[]> } | undefined

  function readHolds(): Promise<readonly Hold[]> {
    const at = clock()
    if (read === undefined || Math.abs(at - read.at) >= readEveryMs) read = { at, holds: store.holds().catch(() => []) }
    return read.holds
  }

  return async ({ jobs }: { readonly jobs: readonly NewJob[] }) => {
    const [only, ...others] = jobs.filter(({ planned }) => 'action' in planned)
    if (only?.planned.kind !== 'agent' || only.planned.isKeyChosen !== true || others.length > 0) return { jobs }
    const label = toSessionLabel(only.planned)
    const hold = (await readHolds()).find((each) => each.kind === 'turns' && each.label === label)
    return { jobs, waits: hold && describeTurnsHold(hold, clock()) }
  }
}
