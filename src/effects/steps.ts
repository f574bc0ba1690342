// The effects by name. An effect is performed once and told as what to record, or as how it failed.
import type { ClaimedJob } from '../model/job.ts'
import { deliver } from './deliver.ts'
import type { StepOutcome, StepTools } from './outcome.ts'
import { type Effect, toWakeEvent } from './plan.ts'
import { toReply, toSummary } from './summary.ts'
import { runTurn } from './turn.ts'

export async function performStep(
  name: Effect,
  job: ClaimedJob,
  tools: StepTools,
  signal: AbortSignal,
): Promise<StepOutcome> {
  const { planned } = job
  if (planned.kind === 'wake') {
    return { kind: 'recorded', step: { state: 'done' }, events: [toWakeEvent(planned)] }
  }
  switch (name) {
    case 'run':
      return await runTurn(planned, job, tools, signal)
    case 'deliver':
      return await deliver(planned, job, tools, signal)
    default:
      return {
        kind: 'recorded',
        step: { state: 'done' },
        events: [toSummary(planned, { status: 'ok', text: toReply(job) })],
      }
  }
}
