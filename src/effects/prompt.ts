// What an agent reads. Outside the boundary stands only what the operator wrote; trust is read off the action and the event, never off a key.
import type { PlannedAction } from '../model/action.ts'
import type { SystemEvent } from '../model/job.ts'
import { wrapExternal } from '../pipeline/boundary.ts'
import { toSource } from './plan.ts'

export type AgentPlan = Extract<PlannedAction, { kind: 'agent' }>

/** `newBoundaryId` gives 16 unpredictable lower-case hex digits, others at every call: each wrap has its own. */
export function buildPrompt({
  planned,
  events = [],
  newBoundaryId,
}: {
  planned: AgentPlan
  /** System events that waited for this turn, oldest first. */
  events?: readonly Pick<SystemEvent, 'text' | 'source' | 'trusted'>[]
  newBoundaryId: () => string
}): string {
  const waited = events.map(({ text, source, trusted }) =>
    trusted ? `System: ${text}` : wrapExternal({ text, source, id: newBoundaryId() }),
  )
  const instructions = planned.instructions === undefined ? [] : [planned.instructions]
  return [...waited, ...instructions, toMessage(planned, newBoundaryId)].join('\n\n')
}

function toMessage(planned: AgentPlan, newBoundaryId: () => string): string {
  const { action, origin } = planned
  if (action.allowUnsafeExternalContent) return action.message
  return wrapExternal({
    text: action.message,
    source: toSource(planned),
    from: origin.from,
    subject: origin.subject,
    id: newBoundaryId(),
  })
}
