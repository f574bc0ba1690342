// The calls that one thread has: numbered, taken back where they are not begun, and sent together once for each turn of the event
// loop, but for the one that finds the thread idle.
import type { TransformCall, TransformOutcome } from '../../model/transform.ts'
import { board as words } from '../worker/messages.ts'
import type { BundlePost, ToWorker } from '../worker/messages.ts'
import { toCallsMessage } from './parcel.ts'

/** One call on its way. */
export type Job = {
  readonly bundle: BundlePost
  readonly export: string | undefined
  readonly call: TransformCall
  /** `stopped`: its worker had to be ended because of it. */
  readonly settle: (outcome: TransformOutcome, stopped: boolean) => void
}

/** Moments are of `performance.now`; `begunAt` is when it was first seen to be begun, or a little earlier. */
export type InFlight = {
  readonly seq: number
  readonly job: Job
  readonly postedAt: number
  begunAt: number | undefined
}

export type Flights = {
  readonly inFlight: ReadonlyMap<number, InFlight>
  lastSeq(): number
  /** The newest call that was begun; all before it were, too. */
  begun(): number
  post(job: Job): void
  /** Sends what waits for the end of this turn. */
  flush(): void
  /** Takes back what is not begun: it will not run in this thread. */
  recall(): Job[]
  take(seq: number): Job | undefined
  takeAll(): InFlight[]
}

export function createFlights(options: {
  /** Shared with the thread, see `messages.ts`. */
  board: Int32Array
  send: (message: ToWorker, transfer: ArrayBuffer[]) => void
}): Flights {
  const { board, send } = options
  const inFlight = new Map<number, InFlight>()
  let outbox: InFlight[] = []
  let seq = 0

  function take(number: number): Job | undefined {
    const job = inFlight.get(number)?.job
    inFlight.delete(number)
    return job
  }

  function flush(): void {
    const batch = outbox.filter((flight) => inFlight.has(flight.seq))
    outbox = []
    if (batch.length === 0) return
    const { message, transfer } = toCallsMessage(batch)
    send(message, transfer)
  }

  return {
    inFlight,
    lastSeq: () => seq,
    begun: () => Atomics.load(board, words.begun),
    post: (job) => {
      seq += 1
      const flight: InFlight = { seq, job, postedAt: performance.now(), begunAt: undefined }
      inFlight.set(seq, flight)
      if (outbox.push(flight) > 1) return
      // a thread that has nothing to do begins at once; what comes while it runs goes together
      if (inFlight.size === 1) flush()
      else setImmediate(flush)
    },
    flush,
    recall: () => {
      // this order, and the reverse on the other side: see `board`
      Atomics.store(board, words.recalled, seq)
      const begun = Atomics.load(board, words.begun)
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
