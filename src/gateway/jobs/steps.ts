// The table of steps. Long steps have files in steps/. plan.ts lists the steps of each kind of job, in order.
import { type Alert, mainSessionKey } from '../../core/model/action.ts'
import type { StepKind, StepName } from '../../model/job.ts'
import { cut } from '../../base/text.ts'
import type { NewEvent } from '../../store/records.ts'
import { maxSummaryChars, toRunEnd, toStepKind, toSummaryEvent, toWakeStep } from './plan.ts'
import { defineStep, type JobStep } from './step.ts'
import { callbackStep } from './steps/callback.ts'
import { deliverStep } from './steps/deliver.ts'
import { runStep } from './steps/run.ts'
import { statusSteps } from './steps/status.ts'

export const steps: Readonly<Record<StepKind, JobStep>> = {
  event: defineStep({
    about: 'The text becomes one event in the main session.',
    of: ['wake', 'alert'],
    perform: ({ planned }) => ({ kind: 'recorded', step: { state: 'done' }, events: [toAlertEvent(planned)] }),
    retry: undefined,
    reportsFirst: true,
    isLogged: false,
    describeDeath: undefined,
  }),
  run: runStep,
  summary: defineStep({
    about: 'The beginning of the reply becomes one event in the main session of the agent.',
    of: ['agent'],
    perform: ({ planned, job }) => ({
      kind: 'recorded',
      step: { state: 'done' },
      events: [toSummaryEvent(planned, toRunEnd(job))],
    }),
    retry: undefined,
    reportsFirst: true,
    isLogged: false,
    describeDeath: undefined,
  }),
  // the step only asks for a heartbeat, whose turn is another job
  wake: defineStep({
    about:
      'A heartbeat starts, unless `wakeMode` is `next-heartbeat` or heartbeats are off. Outside the active hours, it waits until they begin. It runs beside the step `deliver`: neither waits for the other.',
    of: ['wake', 'agent'],
    perform: ({ planned }, { config, clock }) => ({
      kind: 'recorded',
      step: toWakeStep(config, planned.agentId, clock()),
      leavesEvents: true,
    }),
    retry: undefined,
    reportsFirst: true,
    isLogged: false,
    describeDeath: undefined,
  }),
  deliver: deliverStep,
  ...statusSteps,
  callback: callbackStep,
}

export function findStep(name: StepName): JobStep {
  return steps[toStepKind(name)]
}

/** The event of an alert for the main session. It may contain outside text, so it is not trusted. */
function toAlertEvent({ agentId, text }: Alert): NewEvent {
  return {
    agentId,
    sessionKey: mainSessionKey,
    text: cut(text, maxSummaryChars),
    source: 'hookloom',
    trusted: false,
    wakes: false,
  }
}
