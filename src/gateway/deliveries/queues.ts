// Refuses requests if too many turns already wait for their key: `flow.onFull`. A request without this setting costs nothing here.
import type { PlannedAction } from '../../core/model/action.ts'
import type { PlannedFlow } from '../../core/model/flow.ts'
import { Problem } from '../../core/model/problem.ts'
import type { Decision } from '../../core/mapping/decision.ts'
import type { Store } from '../../store/store.ts'

/** The assumed length of a turn, for Retry-After. */
const retryAfterSeconds = 30

export type Queues = {
  /**
   * Calls `write` if the queue of each action has room; otherwise throws `queue-full`. Requests that are being stored also count, so one gateway
   * never stores more than `maxQueued` turns, but may refuse a request too early. Several gateways that store requests at the same moment may
   * store more.
   */
  storeIfNotFull<Stored>(decision: Decision, write: () => Promise<Stored>): Promise<Stored>
}

export function createQueues(store: Pick<Store, 'countQueuedOfKey'>): Queues {
  /** The number of turns that are being stored, by ring and flow key. */
  const taken = new Map<string, number>()

  function addPlaces(name: string, places: 1 | -1): number {
    const count = (taken.get(name) ?? 0) + places
    if (count > 0) taken.set(name, count)
    else taken.delete(name)
    return count
  }

  return {
    async storeIfNotFull(decision, write) {
      const limited = decision.kind === 'accept' ? decision.actions.flatMap(listLimited) : []
      if (limited.length === 0) return write()
      const names = limited.map(({ ring, key }) => JSON.stringify([ring, key]))
      const places = names.map((name) => addPlaces(name, 1))
      const releasePlaces = () => {
        for (const name of names) addPlaces(name, -1)
      }
      try {
        for (const [index, { ring, key, refusesAt }] of limited.entries()) {
          const waiting = await store.countQueuedOfKey({ ring, key, max: refusesAt })
          if (waiting + (places[index] ?? 0) > refusesAt) throw buildFullProblem(refusesAt)
        }
        return await write()
      } finally {
        releasePlaces()
      }
    },
  }
}

type Limited = PlannedFlow & { readonly refusesAt: number }

function buildFullProblem(max: number): Problem {
  const detail = `${max} runs with the same flow key are already waiting, which is the maximum (flow.maxQueued). Send the request again later.`
  return new Problem('queue-full', detail, { retryAfterSeconds })
}

/** The flow of an action, if its requests are refused when too many runs wait. */
function listLimited(action: PlannedAction): Limited[] {
  const flow = action.kind === 'wake' ? undefined : action.flow
  return flow?.refusesAt === undefined ? [] : [{ ...flow, refusesAt: flow.refusesAt }]
}
