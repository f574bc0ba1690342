import type { PlannedAction } from '../model/action.ts'
import type { Problem, TraceEntry } from '../model/problem.ts'

type Reasons = {
  readonly mappingId: string | undefined
  readonly transformHash: string | undefined
  readonly trace: readonly TraceEntry[]
  readonly log: readonly string[]
}

/** What the pipe makes of a delivery. A refusal is the sender's fault, a park the operator's. */
export type Decision =
  | (Reasons & { readonly kind: 'accept'; readonly actions: readonly PlannedAction[]; readonly retain: boolean })
  | (Reasons & { readonly kind: 'skip'; readonly why: string })
  | (Reasons & { readonly kind: 'park'; readonly problem: Problem; readonly waitsFor: string | undefined })
  | (Reasons & { readonly kind: 'refuse'; readonly problem: Problem })
