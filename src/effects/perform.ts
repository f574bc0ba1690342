// One claimed job, from its first missing step to its end. Each effect is recorded before the next begins; the last record is also the end.
import type { ClaimedJob, Step } from '../model/job.ts'
import type { Log } from '../model/log.ts'
import type { JobReport } from '../store/store.ts'
import type { StepOutcome, StepTools } from './outcome.ts'
import { type Effect, toMissing } from './plan.ts'
import type { Failure, Verdict } from './retry.ts'
import { performStep } from './steps.ts'
import { toSummary } from './summary.ts'
import { toReason, toThrownName } from './thrown.ts'

export type Performance = {
  readonly tools: StepTools
  /** Ends when the job must stop: at a shutdown, or when its lease was lost. */
  readonly signal: AbortSignal
  /** False: the job is no longer ours, or the store stayed away until the signal ended. */
  readonly report: (report: JobReport) => Promise<boolean>
  readonly toVerdict: (failure: Failure) => Verdict
  readonly log: Log
}

/** Performs what is missing and reports each step. After a signal that ends, the job is given back uncounted. */
export async function performJob(claimed: ClaimedJob, performance: Performance): Promise<void> {
  const { signal, report, tools } = performance
  const missing = toMissing(claimed.planned, claimed.steps)
  if (missing.length === 0) await report({ outcome: { kind: 'done' } })
  let job = claimed
  for (const name of missing) {
    const outcome = await attempt(name, job, performance)
    if (outcome.kind === 'aborted') {
      await report({ outcome: { kind: 'release' } })
      return
    }
    if (outcome.kind !== 'recorded') {
      await report(toFailureReport(name, job, outcome, performance))
      return
    }
    const step: Step = { name, ...outcome.step, at: tools.clock() }
    const isLast = name === missing.at(-1)
    const end = isLast ? ({ kind: 'done' } as const) : signal.aborted ? ({ kind: 'release' } as const) : undefined
    const { events = [], messages = [] } = outcome
    const held = await report({ step, events, messages, ...(end === undefined ? {} : { outcome: end }) })
    if (!held || end !== undefined) return
    job = { ...job, steps: [...job.steps, step] }
  }
}

/** Whatever a step throws is a failure that may pass, unless it was stopped. */
async function attempt(name: Effect, job: ClaimedJob, { tools, signal, log }: Performance): Promise<StepOutcome> {
  if (signal.aborted) return { kind: 'aborted' }
  try {
    return await performStep(name, job, tools, signal)
  } catch (thrown) {
    if (signal.aborted) return { kind: 'aborted' }
    // the message may quote the payload, so it goes into the job's record and not into the log
    log.warn({ jobId: job.id, step: name, thrown: toThrownName(thrown) }, 'a step threw')
    return { kind: 'transient', detail: `The step "${name}" threw ${toReason(thrown)}` }
  }
}

/**
 * The main session hears of a run that failed for good, in the same transaction that makes the job dead. No step is
 * recorded for it: a job that the operator puts back runs again from the run, and its next end is told anew.
 */
function toFailureReport(name: Effect, job: ClaimedJob, failure: Failure, { toVerdict, log }: Performance): JobReport {
  const verdict = toVerdict(failure)
  const fields = { jobId: job.id, deliveryId: job.deliveryId, step: name, attempt: job.attempts + 1 }
  if (verdict.kind === 'retry') {
    log.warn({ ...fields, runAt: verdict.runAt }, 'a step failed and will be tried again')
    return { outcome: verdict }
  }
  log.error(fields, 'a step failed for good; the job is dead and its lastError says why')
  const { planned } = job
  const events =
    name === 'run' && planned.kind === 'agent'
      ? [toSummary(planned, { status: verdict.status, text: verdict.error })]
      : []
  return { events, outcome: { kind: 'dead', error: verdict.error } }
}
