// The step `wake`: a heartbeat starts. Its turn is a job like any other.
import { toWakeStep } from '../plan.ts'
import { defineStep } from '../step.ts'

export const wakeStep = defineStep({
  about: 'A heartbeat starts, unless heartbeats are off or the active hours are over.',
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
