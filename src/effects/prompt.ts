// What an agent reads. Outside the boundary stands only what the operator wrote; trust is read off the action and the event, never off a key.
import type { PlannedAction } from '../model/action.ts'
import type { SystemEvent } from '../model/job.ts'
import { wrapExternal } from '../pipeline/boundary.ts'
import { cut } from '../base/text.ts'
import { toSource } from './plan.ts'

export type AgentPlan = Extract<PlannedAction, { kind: 'agent' }>

/** System events that wait for this turn: the oldest, each up to `maxChars` UTF-16 units, and the number of all. */
export type WaitingTexts = {
  readonly events: readonly Pick<SystemEvent, 'text' | 'source' | 'trusted'>[]
  readonly count: number
  readonly maxChars: number
}

export const nothingWaits: WaitingTexts = { events: [], count: 0, maxChars: 0 }

/** `newBoundaryId` gives 16 unpredictable lower-case hex digits, others at every call: each wrap has its own. */
export function buildPrompt({
  planned,
  waiting = nothingWaits,
  newBoundaryId,
}: {
  planned: AgentPlan
  waiting?: WaitingTexts
  newBoundaryId: () => string
}): string {
  const instructions = planned.instructions === undefined ? [] : [planned.instructions]
  return [...toEventTexts(waiting, newBoundaryId), ...instructions, toMessage(planned, newBoundaryId)].join('\n\n')
}

/** What an agent is asked at a heartbeat when its operator asks nothing else. */
const defaultHeartbeatPrompt =
  'Look at the events above, if there are any, and at the standing checks, if there are any. Do what they ask for. ' +
  'Do not repeat what was done before. If nothing needs attention, answer HEARTBEAT_OK.'

/** `checks` is the operator's HEARTBEAT.md; `now` in milliseconds since the epoch. */
export function buildHeartbeatPrompt({
  waiting,
  checks,
  prompt = defaultHeartbeatPrompt,
  now,
  newBoundaryId,
}: {
  waiting: WaitingTexts
  checks: string | undefined
  prompt?: string | undefined
  now: number
  newBoundaryId: () => string
}): string {
  const standing = checks === undefined ? [] : [`Standing checks (HEARTBEAT.md):\n${checks}`]
  const time = `The time is ${new Date(now).toISOString()}.`
  return [...toEventTexts(waiting, newBoundaryId), ...standing, prompt, time].join('\n\n')
}

function toEventTexts({ events, count, maxChars }: WaitingTexts, newBoundaryId: () => string): string[] {
  const texts = events.map(({ text, source, trusted }) =>
    trusted ? `System: ${cut(text, maxChars)}` : wrapExternal({ text, source, id: newBoundaryId(), maxChars }),
  )
  const others = count - events.length
  return others > 0
    ? [...texts, `And ${others} more ${others === 1 ? 'event that waits' : 'events that wait'} for the next turn.`]
    : texts
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
