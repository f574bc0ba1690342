// The step `summary`: one event in the main session about the end of a run.
import { toRunEnd, toSummaryEvent } from '../plan.ts'
import { defineStep } from '../step.ts'

export const summaryStep = defineStep({
  about: 'The beginning of the reply becomes one event in the main session of the agent.',
  of: ['agent'],
  perform: ({ planned, job }) => ({
    kind: 'recorded',
    step: { state: 'done' },
    events: [toSummaryEvent(planned, toRunEnd(job))],
  }),
  retry: undefined,
  isLogged: false,
  describeDeath: undefined,
})
