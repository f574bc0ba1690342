// The connection of a relay to one home: who waits for its answers, and what is handed over without being stored. All of it is gone with the process.
import type { ArrivedAnswer } from '../../../define.ts'

export type HomeLine = {
  /** Whether the home asks for requests now, or did a moment ago and handles what it got. */
  isConnected(): boolean
  /** The answer of the home to a request; undefined if none comes within `ms`. Begin before the home can see the request. */
  expect(id: string, ms: number): Promise<ArrivedAnswer | undefined>
  answer(id: string, answer: ArrivedAnswer): void
  /** Hands over an envelope that is not stored, to the next call of the home within `ms`. */
  offer(envelope: Buffer, ms: number): void
  /** Takes what was offered. */
  takeOffered(): Buffer[]
  /** The home has called. */
  noteCall(): void
  /** There is something to hand over. */
  wake(): void
  /** Waits for `wake`, at most `ms`, or until another call of the home waits. `signal`: aborted when the home is gone. */
  wait(ms: number, signal: AbortSignal): Promise<void>
}

/** A home, and the requests that it may get. */
export type Connected = { readonly line: HomeLine; readonly bucket: { take(): boolean } }

/** How long a home may handle what it got until it counts as away. */
const busyMs = 10_000
/** The maximum number of requests that wait for an answer of one home. */
const maxExpected = 200

export function createLine(clock: () => number): HomeLine {
  const expected = new Map<string, (answer: ArrivedAnswer) => void>()
  const offered = new Set<Buffer>()
  let seenAt = Number.NEGATIVE_INFINITY
  let waiting: (() => void) | undefined

  return {
    isConnected: () => waiting !== undefined || clock() - seenAt < busyMs,
    async expect(id, ms) {
      if (expected.size >= maxExpected) return undefined
      let timer: NodeJS.Timeout | undefined
      const answer = await new Promise<ArrivedAnswer | undefined>((resolve) => {
        expected.set(id, resolve)
        timer = setTimeout(() => resolve(undefined), ms)
      })
      clearTimeout(timer)
      expected.delete(id)
      return answer
    },
    answer: (id, answer) => expected.get(id)?.(answer),
    offer(envelope, ms) {
      if (offered.size >= maxExpected) return
      offered.add(envelope)
      setTimeout(() => offered.delete(envelope), ms).unref()
      waiting?.()
    },
    takeOffered() {
      const all = [...offered]
      offered.clear()
      return all
    },
    noteCall: () => void (seenAt = clock()),
    wake: () => waiting?.(),
    async wait(ms, signal) {
      waiting?.()
      let end = () => {}
      const ended = new Promise<void>((resolve) => (end = resolve))
      waiting = end
      const timer = setTimeout(end, ms)
      signal.addEventListener('abort', end, { once: true })
      if (!signal.aborted) await ended
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      if (waiting === end) waiting = undefined
      seenAt = signal.aborted ? Number.NEGATIVE_INFINITY : clock()
    },
  }
}
