// The effects by name. An effect is performed once and told as what to record, or as how it failed.
import type { ClaimedJob, StepName } from '../model/job.ts'
import { deliver } from './deliver.ts'
import type { StepOutcome, StepTools } from './step-outcome.ts'
import { toWakeStep } from './plan.ts'
import { toRunEnd, toSummary } from './summary.ts'
import { runTurn } from './turn.ts'

export async function performStep(
  name: StepName,
  job: ClaimedJob,
  tools: StepTools,
  signal: AbortSignal,
): Promise<StepOutcome> {
  const { planned } = job
  // all steps of a wake are recorded as it is accepted
  if (planned.kind === 'wake') throw new Error('a wake has nothing to perform')
  if (name === 'run') return await runTurn(planned, job, tools, signal)
  if (name === 'deliver') return await deliver(planned, job, tools, signal)
  if (planned.kind === 'heartbeat') throw new Error(`a heartbeat has no step ${name}`)
  if (name === 'wake') return { kind: 'recorded', step: toWakeStep(planned.agentId, tools) }
  return { kind: 'recorded', step: { state: 'done' }, events: [toSummary(planned, toRunEnd(job))] }
}
