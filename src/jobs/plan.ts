// The effects of a job, their order, and the event that the main session gets about a run.
import { mainSessionKey, type Planned, type PlannedAction } from '../model/action.ts'
import type { Config } from '../model/config.ts'
import type { Job, Step, StepName } from '../model/job.ts'
import type { NewEvent, NewJob } from '../store/records.ts'
import { isActive, findHeartbeatConfig } from './agents.ts'
import { toLine } from '../boundary/boundary.ts'
import { cut } from '../base/text.ts'

export type AgentPlan = Extract<PlannedAction, { kind: 'agent' }>

/** `wake → [event, wake?]` · `agent → [run, summary, wake?, deliver?]` · `heartbeat → [run, deliver]` · `alert → [event?, deliver?]` */
export function listSteps(planned: Planned): readonly StepName[] {
  switch (planned.kind) {
    case 'wake':
      return planned.action.mode === 'now' ? ['event', 'wake'] : ['event']
    case 'agent': {
      const { deliver, wakeMode } = planned.action
      // a wake only asks for a turn, and a delivery may wait for its chat for a day: so the turn does not wait for the delivery
      return [
        'run',
        'summary',
        ...(wakeMode === 'now' ? (['wake'] as const) : []),
        ...(deliver ? (['deliver'] as const) : []),
      ]
    }
    case 'heartbeat':
      return ['run', 'deliver']
    case 'alert':
      return [
        ...(planned.event ? (['event'] as const) : []),
        ...(planned.channel === undefined ? [] : (['deliver'] as const)),
      ]
  }
}

/** The effects that are not recorded yet, in order. */
export function findMissingSteps(planned: Planned, steps: readonly Step[]): readonly StepName[] {
  return listSteps(planned).filter((name) => !steps.some((step) => step.name === name))
}

/**
 * Whether a job leaves its lane before this step. A reply of the main session that waits for its chat must not hold back the heartbeats.
 * Replies of other sessions keep their order, so their jobs stay.
 */
export function leavesLaneBefore(planned: Planned, step: StepName | undefined): boolean {
  return step === 'deliver' && planned.kind !== 'alert' && planned.sessionKey === mainSessionKey
}

/** Jobs of one lane run one at a time, in arrival order. */
export function toLane(agentId: string, sessionKey: string): string {
  return `${agentId}/${sessionKey}`
}

/** The origin of a text, for the operator: the sender, or the hook. Outside text. */
export function toOriginName({ origin }: Pick<PlannedAction, 'origin'>): string {
  return origin.source ?? origin.hook
}

/** The system event of a wake. */
function toWakeEvent(planned: Extract<PlannedAction, { kind: 'wake' }>): NewEvent {
  const { action, agentId, sessionKey } = planned
  return {
    agentId,
    sessionKey,
    text: action.text,
    source: toOriginName(planned),
    trusted: action.allowUnsafeExternalContent,
    wakes: action.mode === 'now',
  }
}

export type PlanContext = {
  readonly newId: () => string
  /** Milliseconds since the epoch. */
  readonly now: number
  /** The step `wake` of an agent at this moment: see `toWakeStep`. */
  readonly wakeStep: (agentId: string) => Omit<Step, 'at'>
}

/**
 * The jobs of a delivery, for the transaction that accepts it. A wake is only rows, so that transaction completes it:
 * the event says that it wakes, and the heartbeats find it there, even after a crash.
 * Runs of one session share a lane; runs that only use the default key have none.
 * The id of a job is the run id in the answer to the sender.
 */
export function planJobs(actions: readonly PlannedAction[], context: PlanContext): NewJob[] {
  const { newId, now, wakeStep } = context
  return actions.map((planned): NewJob => {
    if (planned.kind === 'agent') {
      const lane = planned.sharesSession ? undefined : toLane(planned.agentId, planned.sessionKey)
      return { id: newId(), planned, lane, state: 'queued', steps: [], events: [] }
    }
    const steps = listSteps(planned).map((name): Step =>
      name === 'wake' ? { ...wakeStep(planned.agentId), at: now } : { name, state: 'done', at: now },
    )
    return { id: newId(), planned, lane: undefined, state: 'done', steps, events: [toWakeEvent(planned)] }
  })
}

/**
 * The recorded step `wake`. The turn itself is another job. Skipped: heartbeats are off, and the event waits for a turn. Done with a
 * detail: the turn is deferred until the active hours begin.
 */
export function toWakeStep(config: Config, agentId: string, now: number): Omit<Step, 'at'> {
  const { every, activeHours } = findHeartbeatConfig(config, agentId)
  if (every === 0) return { name: 'wake', state: 'skipped', detail: describeHeartbeatsOff(agentId) }
  const waits = `Outside the active hours: the event waits until ${activeHours?.start}.`
  return { name: 'wake', state: 'done', ...(isActive(activeHours, now) ? {} : { detail: waits }) }
}

export function describeHeartbeatsOff(agentId: string): string {
  return `Heartbeats are off (heartbeat.every is 0 for the agent "${agentId}"): the event waits for the next turn of the main session.`
}

/** The most characters of a reply or a reason in an event. */
export const maxSummaryChars = 2_000

/** `status`: `ok`, or the words that mark the event, such as `forwarded`, `error` or `not delivered`. */
export type RunEnd = { readonly status: string; readonly text: string }

/** The name of a run for people, on one line: that of the action, or the path of the hook. Outside text. */
export function toRunName({ action, origin }: AgentPlan): string {
  return toLine(action.name ?? origin.hook)
}

/** The recorded run of a job. */
export function findRunStep({ steps }: Pick<Job, 'steps'>): Step | undefined {
  return steps.find((step) => step.name === 'run')
}

/** How the recorded run of a job ended. */
export function toRunEnd(job: Pick<Job, 'steps'>): RunEnd {
  const run = findRunStep(job)
  return run?.state === 'forwarded'
    ? { status: 'forwarded', text: run.detail ?? '' }
    : { status: 'ok', text: run?.result ?? '' }
}

/**
 * `Hook <name>: <reply>`, or `Hook <name> (<status>): <reason>`. Never trusted, even if the sender of the run is: a model that may have
 * read anything wrote the reply, and a reason may quote the other side.
 */
export function toSummaryEvent(planned: AgentPlan, { status, text }: RunEnd): NewEvent {
  const mark = status === 'ok' ? '' : ` (${status})`
  const summary = cut(text.trim(), maxSummaryChars) || '(empty reply)'
  return {
    agentId: planned.agentId,
    sessionKey: mainSessionKey,
    text: `Hook ${toRunName(planned)}${mark}: ${summary}`,
    source: toOriginName(planned),
    trusted: false,
    wakes: planned.action.wakeMode === 'now',
  }
}
