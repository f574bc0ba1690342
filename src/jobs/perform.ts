// Performs one claimed job from its first missing step. Each effect is recorded before the next one starts; the last record also ends the job.
import type { Planned } from '../model/action.ts'
import type { ClaimedJob, Step, StepName } from '../model/job.ts'
import type { Log, Meter } from '../model/log.ts'
import type { JobReport, NewEvent } from '../store/records.ts'
import type { Clock } from '../store/store.ts'
import type { Death } from './alerts.ts'
import type { Agent } from './agents.ts'
import type { Failure, StepOutcome, Verdict } from './retry.ts'
import { leavesLaneBefore, findMissingSteps, toSummaryEvent } from './plan.ts'
import type { StepDeath, StepTools } from './step.ts'
import { steps } from './steps.ts'
import { toErrorName, toErrorText } from '../base/exceptions.ts'
import { runInSpan } from '../base/trace.ts'

export type JobContext = {
  readonly agent: (agentId: string) => Agent
  readonly tools: StepTools
  readonly clock: Clock
  /** Aborted when the job must stop: at a shutdown, or when its lease was lost. */
  readonly signal: AbortSignal
  /** False: the lease was lost, or the store failed until the signal was aborted. */
  readonly report: (report: JobReport) => Promise<boolean>
  /** Called when a job is dead. */
  readonly died: (death: Death) => void
  readonly judge: (failure: Failure, step: StepName) => Verdict
  /** Counted attempts that a job may have. */
  readonly maxAttempts: number
  /** Called when an event in the main session of an agent asks for a turn. */
  readonly woken: (agentId: string) => void
  readonly meter: Meter
  readonly log: Log
}

/** Performs the missing steps and reports each one. If the signal is aborted, the job is released and the attempt is not counted. */
export async function performJob(claimed: ClaimedJob, context: JobContext): Promise<void> {
  const { signal, report, clock } = context
  const missing = findMissingSteps(claimed.planned, claimed.steps)
  if (missing.length === 0) await report({ outcome: { kind: 'done' } })
  const [next] = missing
  // each end of the process during the job was counted as an attempt
  if (next !== undefined && claimed.attempts >= context.maxAttempts) {
    const detail = `The gateway ended during attempt ${claimed.attempts}, in the step "${next}". See the last lines of its log. "hookloom retry ${claimed.id}" runs it again.`
    await failJob(next, claimed, { kind: 'permanent', status: 'error', detail }, context)
    return
  }
  let job = claimed
  for (const [index, name] of missing.entries()) {
    const startedAt = clock()
    const outcome = await attemptStep(name, job, context)
    if (outcome.kind === 'aborted') {
      await report({ outcome: { kind: 'release' } })
      return
    }
    if (outcome.kind !== 'recorded') {
      await failJob(name, job, outcome, context)
      return
    }
    const step: Step = { name, ...outcome.step, at: clock() }
    const isLast = name === missing.at(-1)
    const end = isLast ? ({ kind: 'done' } as const) : signal.aborted ? ({ kind: 'release' } as const) : undefined
    const { kind: _, step: __, leavesWakes = false, ...rows } = outcome
    const leavesLane = leavesLaneBefore(job.planned, missing[index + 1])
    const held = await report({ ...rows, step, leavesLane, ...(end === undefined ? {} : { outcome: end }) })
    if (held) {
      context.meter('steps', { step: name, outcome: step.state }, (step.at - startedAt) / 1_000)
      logStep(context.log, job, step, step.at - startedAt)
    }
    if (held && leavesWakes) context.woken(job.planned.agentId)
    if (!held || end !== undefined) return
    job = { ...job, steps: [...job.steps, step] }
  }
}

/**
 * The log line of a step that has one. It has nothing that a payload may have chosen: no session key, no detail, which may name the
 * recipient, and no model that the action names.
 */
function logStep(log: Log, { id: jobId, deliveryId, planned }: ClaimedJob, step: Step, tookMs: number): void {
  const { name, state, model } = step
  if (!steps[name].isLogged) return
  const { kind, agentId } = planned
  const ofAgent = planned.kind === 'agent' && planned.action.model !== undefined ? {} : { model }
  log.info(
    { jobId, deliveryId, job: { kind, step: name, state, agentId, ...ofAgent, tookMs } },
    `${name} ${agentId} → ${state}  ${tookMs} ms  ${jobId}`,
  )
}

/** An exception in a step is a failure that is tried again, unless the job was stopped. */
async function attemptStep(name: StepName, job: ClaimedJob, context: JobContext): Promise<StepOutcome> {
  const { signal, log } = context
  if (signal.aborted) return { kind: 'aborted' }
  const { kind, agentId } = job.planned
  const attributes = {
    'hookloom.job': job.id,
    'hookloom.kind': kind,
    'hookloom.agent': agentId,
    'hookloom.attempt': job.attempts + 1,
  }
  try {
    const toEnd = (outcome: StepOutcome) => ({
      attributes: { 'hookloom.outcome': outcome.kind === 'recorded' ? outcome.step.state : outcome.kind },
      isFailed: outcome.kind !== 'recorded',
    })
    return await runInSpan(
      `step ${name}`,
      { traceId: job.deliveryId ?? job.id, attributes, describeResult: toEnd },
      () => performStep(name, job, context),
    )
  } catch (thrown) {
    if (signal.aborted) return { kind: 'aborted' }
    // the message may quote the payload, so it goes into the record of the job and not into the log
    log.warn({ jobId: job.id, step: name, thrown: toErrorName(thrown) }, 'a step threw')
    return { kind: 'transient', detail: `The step "${name}" threw ${toErrorText(thrown)}`, quotes: true }
  }
}

async function performStep(name: StepName, job: ClaimedJob, context: JobContext): Promise<StepOutcome> {
  const { agent, tools, signal } = context
  const { planned } = job
  // all steps of a wake are recorded when it is accepted
  if (planned.kind === 'wake') throw new Error('a wake has nothing to perform')
  return await steps[name].perform({ planned, job, agent: agent(planned.agentId) }, tools, signal)
}

async function failJob(name: StepName, job: ClaimedJob, failure: Failure, context: JobContext): Promise<void> {
  const what = judgeFailure(name, job, failure, context)
  const held = await context.report(what)
  if (held) context.meter('steps', { step: name, outcome: what.outcome?.kind === 'dead' ? 'dead' : 'retried' })
  const { planned, id: jobId } = job
  if (held && what.outcome?.kind === 'dead') {
    context.died({
      jobId,
      planned,
      step: name,
      why: describeForLog(failure, job),
      quotes: failure.quotes === true,
    })
  }
  // the event about the failure is in the session, and asks for a turn as a summary does
  const wakes = planned.kind === 'agent' && planned.action.wakeMode === 'now'
  if (held && what.outcome?.kind === 'dead' && wakes) context.woken(planned.agentId)
}

/**
 * The main session gets an event about a step that failed permanently, if the step has one, in the transaction that makes the job dead. No
 * step is recorded for it: a job that the operator queues again starts with the run, and its next end makes another event.
 */
function judgeFailure(
  name: StepName,
  job: ClaimedJob,
  failure: Failure,
  { judge, maxAttempts, clock, log }: JobContext,
): JobReport {
  const verdict = judge(failure, name)
  const fields = { jobId: job.id, deliveryId: job.deliveryId, step: name, attempt: job.attempts + 1 }
  const why = describeForLog(failure, job)
  if (verdict.kind === 'retry') {
    const runAt = new Date(clock() + verdict.afterMs).toISOString()
    log.warn({ ...fields, runAt }, `${name} failed, and is tried again: ${why}`)
    // one that began before this rule is still in its lane
    return { outcome: verdict, leavesLane: leavesLaneBefore(job.planned, name) }
  }
  log.error(fields, `${name} failed permanently: ${why} "hookloom retry ${job.id}" runs it again.`)
  const events = listDeathEvents(name, job, { ...verdict, why })
  // an attempt that ended because the gateway ended was counted when its lease expired
  const counted = job.attempts < maxAttempts
  return { events, outcome: { kind: 'dead', error: verdict.error, counted } }
}

/** The reason without outside text and recipients. */
function describeForLog({ quotes, logged = '', detail }: Failure, { id, planned }: ClaimedJob): string {
  const reason = logged === '' ? detail : logged
  return quotes === true || quotesModel(reason, planned) ? `"hookloom show ${id}" shows why.` : reason
}

/** Whether a reason has the model that the action names: a request may have written it. A reason may have cut a long name. */
function quotesModel(reason: string, planned: Planned): boolean {
  const { model } = planned.kind === 'agent' ? planned.action : {}
  if (model === undefined) return false
  const [provider = '', ...rest] = model.split('/')
  // a configured provider is named without quotation marks
  return reason.includes(`"${provider.slice(0, 8)}`) || (rest.length > 0 && reason.includes(rest.join('/').slice(0, 8)))
}

function listDeathEvents(name: StepName, { planned }: ClaimedJob, death: StepDeath): NewEvent[] {
  // a failed heartbeat would leave an event that asks for the next one, and so on
  if (planned.kind !== 'agent') return []
  const end = steps[name].describeDeath?.(death)
  return end === undefined ? [] : [toSummaryEvent(planned, end)]
}
