// The calls of one thread. Each has a number. Calls that have not begun can be recalled. The calls of one turn of the event loop are sent
// together, but a call for an idle thread is sent at once.
import type { TransformCall, TransformOutcome } from '../../model/transform.ts'
import { stateIndex } from '../worker/messages.ts'
import type { BundlePost, ToWorker } from '../worker/messages.ts'
import { toBatchMessage } from './batch.ts'

/** How a call ended. `stopped`: its worker was terminated because of it. `unrun`: it did not run to its end, for a reason outside of its code. */
export type CallEnd = 'ended' | 'stopped' | 'unrun'

/** A call of a transform. */
export type Task = {
  readonly bundle: BundlePost
  readonly export: string | undefined
  readonly call: TransformCall
  readonly finish: (outcome: TransformOutcome, end: CallEnd) => void
}

/** Times are from `performance.now`. `begunAt` is when the main thread first saw that the call had begun. */
export type InFlightCall = {
  readonly seq: number
  readonly task: Task
  readonly postedAt: number
  begunAt: number | undefined
}

export type CallsInFlight = {
  readonly inFlight: ReadonlyMap<number, InFlightCall>
  lastSeq(): number
  /** The number of the newest call that has begun. All calls in flight with a lower number have begun too. */
  begun(): number
  post(task: Task): void
  /** Sends the calls of this turn that are not sent yet. */
  flush(): void
  /** Recalls the calls that have not begun. They will not run in this thread. */
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
      // an idle thread gets the call at once; calls that arrive while it runs are sent together
      if (inFlight.size === 1) flush()
      else setImmediate(flush)
    },
    flush,
    recall: () => {
      // first writes `recalled`, then reads `begun`; the worker does the opposite: see `stateIndex`
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
