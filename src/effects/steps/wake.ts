// The step `wake`: a heartbeat starts. Its turn is a job like any other.
import { toWakeStep } from '../plan.ts'
import { defineStep } from '../step.ts'

export const wakeStep = defineStep({
  about:
    'A heartbeat starts, unless `wakeMode` is `next-heartbeat` or heartbeats are off. Outside the active hours, it waits until they begin.',
  of: ['wake', 'agent'],
  perform: ({ planned }, { whyDeferred }) => ({
    kind: 'recorded',
    step: toWakeStep(planned.agentId, { whyDeferred }),
    leavesWakes: true,
  }),
  retry: undefined,
  isLogged: false,
  toDeath: undefined,
})
