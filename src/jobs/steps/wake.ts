// The step `wake`: a heartbeat starts. Its turn is a job like any other.
import { defineStep } from '../step.ts'

export const wakeStep = defineStep({
  about:
    'A heartbeat starts, unless `wakeMode` is `next-heartbeat` or heartbeats are off. Outside the active hours, it waits until they begin. It runs beside the step `deliver`: neither waits for the other.',
  of: ['wake', 'agent'],
  perform: ({ planned }, { wakeStep }) => ({
    kind: 'recorded',
    step: wakeStep(planned.agentId),
    leavesWakes: true,
  }),
  retry: undefined,
  isLogged: false,
  describeDeath: undefined,
})
