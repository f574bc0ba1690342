// The outcome of a delivery, before it is stored.
import type { PlannedAction } from '../model/action.ts'
import type { Retain } from '../model/mapping.ts'
import type { Problem, TraceEntry } from '../model/problem.ts'
import type { SenderResponse } from '../model/response.ts'
import type { OnceKey } from '../model/transform.ts'
import type { FlowKey } from './flow.ts'
import type { ItemsList } from './items.ts'
import type { StateChange } from './state.ts'

/** What every decision shows of its origin. */
export type Reasons = {
  readonly mappingId: string | undefined
  readonly transformHash: string | undefined
  /** The setting of the mapping; undefined: `hooks.retain` decides. */
  readonly retain: Retain | undefined
  readonly trace: readonly TraceEntry[]
  readonly log: readonly string[]
}

/** The outcome of a delivery. A refusal is the sender's fault, a park the operator's. */
export type Decision =
  /** `response`: the answer to the sender; undefined for the receipt. */
  | (Reasons & {
      readonly kind: 'accept'
      readonly actions: readonly PlannedAction[]
      readonly response: SenderResponse | undefined
      /** The dedupe key that the transform set for the only action; undefined if it set none. */
      readonly once: OnceKey | undefined
      /** The line of `log` that the gateway logs too. It has no text of the payload. */
      readonly warning?: string
      readonly state?: readonly StateChange[]
    })
  /**
   * `isByCode`: a transform returned nothing, `flow.cancelOn` is true, or the request is about a comment of Hookloom. False: no mapping matches, or
   * `forEach` finds nothing.
   */
  | (Reasons & {
      readonly kind: 'skip'
      readonly isByCode: boolean
      readonly why: string
      /** Set if the items of this list are too many for one commit: parts of it become deliveries of their own. */
      readonly splits?: ItemsList | undefined
      /** Set if the request ends the turns of a key. */
      readonly cancel?: FlowKey | undefined
      /** The changes that the code makes in the memory of its module. */
      readonly state?: readonly StateChange[]
    })
  | (Reasons & { readonly kind: 'park'; readonly problem: Problem; readonly waitsFor: string | undefined })
  | (Reasons & { readonly kind: 'refuse'; readonly problem: Problem })

/** A decision that is stored. Refusals are not stored. */
export type StoredDecision = Exclude<Decision, { kind: 'refuse' }>

/** The sender already has its 200, so a refusal parks the delivery for the operator. */
export function parkRefusal(decision: Decision): StoredDecision {
  return decision.kind === 'refuse' ? { ...decision, kind: 'park', waitsFor: undefined } : decision
}
