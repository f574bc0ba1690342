// What a host decides about the actions of its mappings. The engine makes an action; the policy says whose turn it is, under which session key, and
// whether it is allowed.
import type { Action, PlannedAction } from '../model/action.ts'
import type { Flow } from '../model/flow.ts'
import type { JobKeys } from '../model/job-keys.ts'
import type { Delivery } from '../model/delivery.ts'
import type { Decision } from './decision.ts'
import type { CompiledFlow } from './flow.ts'

/**
 * The origin of a session key: a request, a template with a fixed beginning, a transform, or the operator. A request may choose one only
 * with `hooks.allowRequestSessionKey`.
 */
export type KeyOrigin = 'request' | 'template' | 'code' | 'operator'

/** The flow of an action: that of its mapping, and the one that code returned. `ring`: see `Identity`. */
export type FlowInput = {
  readonly flow: CompiledFlow | undefined
  readonly returned?: Flow | undefined
  readonly ring: string
}

export type PlanInput = {
  readonly keyOrigin: KeyOrigin
  readonly delivery: Delivery
  readonly jobKeys: JobKeys
  /** Makes the unique part of a default key. */
  readonly newId: () => string
  readonly flow: FlowInput
}

export type Policy = {
  /** The action with its final agent, key and flow. Throws a `Problem` if the action is not allowed. */
  plan(action: Action, input: PlanInput): PlannedAction
  /** What the hooks make of a request that are no mappings: `wake` and `agent`. */
  decideBuiltIn(delivery: Delivery, newId: () => string): Decision
  /** Whether the request is about something that the host posted itself: an agent must not wake itself. */
  isOwn(delivery: Pick<Delivery, 'sender' | 'body'>): boolean
}
