// Which effects an action has, in which order, and which of them are done by being stored.
import type { PlannedAction } from '../model/action.ts'
import type { Step, StepName } from '../model/job.ts'
import type { NewEvent, NewJob } from '../store/store.ts'

/** An effect that the worker can perform. */
export type Effect = Exclude<StepName, 'wake'>

/** `wake → [event]` · `agent → [run, summary, deliver?]` */
export function toPlan(planned: PlannedAction): readonly Effect[] {
  if (planned.kind === 'wake') return ['event']
  return planned.action.deliver ? ['run', 'summary', 'deliver'] : ['run', 'summary']
}

/** The effects that are not recorded yet, in order. */
export function toMissing(planned: PlannedAction, steps: readonly Step[]): readonly Effect[] {
  return toPlan(planned).filter((name) => !steps.some((step) => step.name === name))
}

/** Who the operator is told that a text came from: the sender, else the hook. Outside text. */
export function toSource({ origin }: Pick<PlannedAction, 'origin'>): string {
  return origin.source ?? origin.hook
}

/** The system event that a wake is. */
export function toWakeEvent(planned: Extract<PlannedAction, { kind: 'wake' }>): NewEvent {
  const { action, agentId, sessionKey } = planned
  return {
    agentId,
    sessionKey,
    text: action.text,
    source: toSource(planned),
    trusted: action.allowUnsafeExternalContent,
  }
}

/**
 * The jobs of a delivery, for the transaction that accepts it. A wake is only rows, so it is done with that transaction.
 * Runs of one session share a lane; those that merely fell back to the default key wait for nobody.
 * `now` in milliseconds since the epoch; a job's id is the run id that the sender is told.
 */
export function planJobs(
  actions: readonly PlannedAction[],
  { newId, now }: { newId: () => string; now: number },
): NewJob[] {
  return actions.map((planned): NewJob => {
    if (planned.kind === 'agent') {
      const lane = planned.sharesSession ? undefined : `${planned.agentId}/${planned.sessionKey}`
      return { id: newId(), planned, lane, state: 'queued', steps: [], events: [] }
    }
    const steps: Step[] = [{ name: 'event', state: 'done', at: now }]
    return {
      id: newId(),
      planned,
      lane: undefined,
      state: toMissing(planned, steps).length === 0 ? 'done' : 'queued',
      steps,
      events: [toWakeEvent(planned)],
    }
  })
}
