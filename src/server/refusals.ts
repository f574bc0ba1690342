// The last refusals, in memory and without payloads, so that the operator can find the reasons.
import type { ProblemCode, TraceEntry } from '../model/problem.ts'

export type Refusal = {
  readonly requestId: string
  readonly receivedAt: number
  readonly hook: string | undefined
  readonly status: number
  readonly code: ProblemCode
  readonly error: string
  readonly trace: readonly TraceEntry[]
}

const most = 500
/** In characters. A request may name a hook with up to 16 kB. */
const longestHook = 200

export class Refusals {
  readonly #entries: Refusal[] = []

  add(refusal: Refusal): void {
    this.#entries.push({ ...refusal, hook: refusal.hook?.slice(0, longestHook) })
    if (this.#entries.length > most) this.#entries.shift()
  }

  /** Newest last. */
  list(limit: number = most): readonly Refusal[] {
    return this.#entries.slice(-limit)
  }
}
