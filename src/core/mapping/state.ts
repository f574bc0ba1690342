// The values that the transform of one decision reads from the memory of its module, and the values that it sets. Nothing is stored here: the
// changes are part of the decision, and are stored with it.
import type { TransformCall } from '../model/transform.ts'
import type { StateWrite } from '../model/transform-state.ts'

/** `stored`: the stored text, with its time; it shows later whether the value has changed. `json`: undefined if there is no value. */
type StateRead = { readonly stored: string | undefined; readonly json: string | undefined }
export type StateReader = (name: StateName) => Promise<StateRead>
export type StateName = { readonly module: string; readonly key: string }

/** `json`: null deletes the value. `read`: the stored text that the decision is based on; undefined if the code set the key without reading it. */
export type StateChange = StateName & {
  readonly json: string | null
  readonly forMs: number
  readonly read: StateRead | undefined
}

/** The memory of a module during one decision, which may call the code once for each item of the delivery. */
export type DecisionState = {
  /** Returns the function with which the next call reads values; undefined while the memory is known to be empty. */
  readState(): TransformCall['readState']
  /** Adds the values that a call set. The next call sees them. */
  add(writes: readonly StateWrite[]): void
  changes(): StateChange[]
}

export function createDecisionState(module: string, read: StateReader | undefined): DecisionState {
  const reads = new Map<string, StateRead>()
  const writes = new Map<string, StateWrite>()

  async function readJson(key: string): Promise<string | undefined> {
    const own = writes.get(key)
    if (own !== undefined) return own[1] ?? undefined
    const found = reads.get(key) ?? (await read?.({ module, key }))
    if (found === undefined) return undefined
    // if two reads overlap, the first answer is noted: if the value changed between them, the decision is then made again
    if (!reads.has(key)) reads.set(key, found)
    return found.json
  }

  return {
    readState: () => (read === undefined && writes.size === 0 ? undefined : readJson),
    add: (added) => added.forEach((write) => writes.set(write[0], write)),
    changes: () =>
      [...writes.values()].map(([key, json, forMs]) => ({ module, key, json, forMs, read: reads.get(key) })),
  }
}
