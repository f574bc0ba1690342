// The table of steps. model/job.ts has their names, and plan.ts says which of them a job has, and in which order.
import type { StepName } from '../model/job.ts'
import type { JobStep } from './step.ts'
import { deliverStep } from './steps/deliver.ts'
import { eventStep } from './steps/event.ts'
import { runStep } from './steps/run.ts'
import { summaryStep } from './steps/summary.ts'
import { wakeStep } from './steps/wake.ts'

export const steps: Readonly<Record<StepName, JobStep>> = {
  event: eventStep,
  run: runStep,
  summary: summaryStep,
  wake: wakeStep,
  deliver: deliverStep,
}
