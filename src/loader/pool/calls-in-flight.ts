// The calls that one thread has: numbered, taken back where they are not begun, and sent together once for each turn of the event
// loop, but for the one that finds the thread idle.
import type { TransformCall, TransformOutcome } from '../../model/transform.ts'
import { stateIndex } from '../worker/messages.ts'
import type { BundlePost, ToWorker } from '../worker/messages.ts'
import { toBatchMessage } from './batch.ts'

/** One call on its way. */
export type Task = {
  readonly bundle: BundlePost
  readonly export: string | undefined
  readonly call: TransformCall
  /** `stopped`: its worker had to be ended because of it. */
  readonly finish: (outcome: TransformOutcome, stopped: boolean) => void
}

/** Moments are of `performance.now`; `begunAt` is when it was first seen to be begun, or a little earlier. */
export type InFlightCall = {
  readonly seq: number
  readonly task: Task
  readonly postedAt: number
  begunAt: number | undefined
}

export type CallsInFlight = {
  readonly inFlight: ReadonlyMap<number, InFlightCall>
  lastSeq(): number
  /** The newest call that was begun; all before it were, too. */
  begun(): number
  post(task: Task): void
  /** Sends what waits for the end of this turn. */
  flush(): void
  /** Takes back what is not begun: it will not run in this thread. */
  recall(): Task[]
  take(seq: number): Task | undefined
  takeAll(): InFlightCall[]
}

export function createCallsInFlight(options: {
  /** Shared with the thread, see `messages.ts`. */
  sharedState: Int32Array
  send: (message: ToWorker, transfer: ArrayBuffer[]) => void
}): CallsInFlight {
  const { sharedState, send } = options
  const inFlight = new Map<number, InFlightCall>()
  let unsent: InFlightCall[] = []
  let seq = 0

  function take(number: number): Task | undefined {
    const task = inFlight.get(number)?.task
    inFlight.delete(number)
    return task
  }

  function flush(): void {
    const batch = unsent.filter((inFlightCall) => inFlight.has(inFlightCall.seq))
    unsent = []
    if (batch.length === 0) return
    const { message, transfer } = toBatchMessage(batch)
    send(message, transfer)
  }

  return {
    inFlight,
    lastSeq: () => seq,
    begun: () => Atomics.load(sharedState, stateIndex.begun),
    post: (task) => {
      seq += 1
      const inFlightCall: InFlightCall = { seq, task, postedAt: performance.now(), begunAt: undefined }
      inFlight.set(seq, inFlightCall)
      if (unsent.push(inFlightCall) > 1) return
      // a thread that has nothing to do begins at once; what comes while it runs goes together
      if (inFlight.size === 1) flush()
      else setImmediate(flush)
    },
    flush,
    recall: () => {
      // this order, and the reverse on the other side: see `stateIndex`
      Atomics.store(sharedState, stateIndex.recalled, seq)
      const begun = Atomics.load(sharedState, stateIndex.begun)
      return [...inFlight.keys()].filter((each) => each > begun).flatMap((each) => take(each) ?? [])
    },
    take,
    takeAll: () => {
      const all = [...inFlight.values()]
      inFlight.clear()
      return all
    },
  }
}
