// Performs one claimed job from its first missing step. Each effect is recorded before the next one starts; the last record also ends the
// job.
import type { Planned } from '../model/action.ts'
import type { ClaimedJob, Step, StepName } from '../model/job.ts'
import type { Log } from '../model/log.ts'
import type { JobReport, NewEvent } from '../store/records.ts'
import { defaultRetry, type Failure, type StepOutcome, toVerdict } from './retry.ts'
import { leavesLaneBefore, findMissingSteps, toSummaryEvent } from './plan.ts'
import { type JobContext, readRetryForMs, type StepDeath } from './step.ts'
import { steps } from './steps.ts'
import { toErrorName, toErrorText } from '../base/exceptions.ts'
import { runInSpan } from '../base/trace.ts'

/** Performs the missing steps and reports each one. If the lease is aborted, the job is released and the attempt is not counted. */
export async function performJob(claimed: ClaimedJob, context: JobContext): Promise<void> {
  const { lease, clock, retry = defaultRetry } = context
  const missing = findMissingSteps(claimed.planned, claimed.steps)
  const [next] = missing
  if (next === undefined) await lease.report({ outcome: { kind: 'done' } })
  // each end of the process during the job was counted as an attempt
  else if (claimed.attempts >= retry.attempts) {
    const detail = `The gateway ended during attempt ${claimed.attempts}, in the step "${next}". See the last lines of its log. "hookloom retry ${claimed.id}" runs it again.`
    return await failJob(next, claimed, { kind: 'permanent', status: 'error', detail }, context)
  }
  let job = claimed
  for (const [index, name] of missing.entries()) {
    const startedAt = clock()
    const outcome = await performStep(name, job, context)
    if (outcome.kind === 'aborted') return void (await lease.report({ outcome: { kind: 'release' } }))
    if (outcome.kind !== 'recorded') return await failJob(name, job, outcome, context)
    const step: Step = { name, ...outcome.step, at: clock() }
    const isLast = name === missing.at(-1)
    const end = isLast ? ({ kind: 'done' } as const) : lease.signal.aborted ? ({ kind: 'release' } as const) : undefined
    const { kind: _, step: __, leavesWakes = false, ...rows } = outcome
    const leavesLane = leavesLaneBefore(job.planned, missing[index + 1])
    if (!(await lease.report({ ...rows, step, leavesLane, ...(end === undefined ? {} : { outcome: end }) }))) return
    context.meter('steps', { step: name, outcome: step.state }, (step.at - startedAt) / 1_000)
    logStep(context.log, job, step, step.at - startedAt)
    if (leavesWakes) context.woken(job.planned.agentId)
    if (end !== undefined) return
    // the failures of this step are over
    job = { ...job, steps: [...job.steps, step], failingForMs: undefined }
  }
}

/**
 * Writes the log line of a step, if the step has one. The line has nothing that a payload may have chosen: no session key, no detail, which
 * may name the recipient, and no model that the action names.
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
async function performStep(name: StepName, job: ClaimedJob, context: JobContext): Promise<StepOutcome> {
  const { lease, log } = context
  if (lease.signal.aborted) return { kind: 'aborted' }
  const { planned } = job
  const describeStart = () => ({
    'hookloom.job': job.id,
    'hookloom.kind': planned.kind,
    'hookloom.agent': planned.agentId,
    'hookloom.attempt': job.attempts + 1,
  })
  const describeResult = (outcome: StepOutcome) => ({
    attributes: { 'hookloom.outcome': outcome.kind === 'recorded' ? outcome.step.state : outcome.kind },
    isFailed: outcome.kind !== 'recorded',
  })
  try {
    return await runInSpan(`step ${name}`, { traceId: job.deliveryId ?? job.id, describeStart, describeResult }, () =>
      steps[name].perform({ planned, job, agent: context.agent(planned.agentId) }, context),
    )
  } catch (thrown) {
    if (lease.signal.aborted) return { kind: 'aborted' }
    // the message may quote the payload, so it goes into the record of the job and not into the log
    log.warn({ jobId: job.id, step: name, thrown: toErrorName(thrown) }, 'a step threw')
    return { kind: 'transient', detail: `The step "${name}" threw ${toErrorText(thrown)}`, quotes: true }
  }
}

async function failJob(step: StepName, job: ClaimedJob, failure: Failure, context: JobContext): Promise<void> {
  const why = describeForLog(failure, job)
  const what = buildFailureReport(step, job, { failure, why, context })
  if (!(await context.lease.report(what))) return
  const isDead = what.outcome?.kind === 'dead'
  context.meter('steps', { step, outcome: isDead ? 'dead' : 'retried' })
  if (!isDead) return
  const { planned, id: jobId } = job
  context.died({ jobId, planned, step, why, quotes: failure.quotes === true })
  // the event about the failure is in the session, and asks for a turn as a summary does
  if (planned.kind === 'agent' && planned.action.wakeMode === 'now') context.woken(planned.agentId)
}

/**
 * The main session gets an event about a step that failed permanently, if the step has one, in the transaction that makes the job dead. No
 * step is recorded for it: a job that the operator queues again starts with the run, and its next end makes another event.
 */
function buildFailureReport(
  name: StepName,
  job: ClaimedJob,
  { failure, why, context }: { failure: Failure; why: string; context: JobContext },
): JobReport {
  const { clock, log, config, random, retry: policy = defaultRetry, claimedAt } = context
  const { attempts, failingForMs } = job
  const verdict = toVerdict(failure, {
    attempts,
    failingForMs: failingForMs === undefined ? undefined : failingForMs + Math.max(0, clock() - claimedAt),
    forMs: readRetryForMs(steps[name], config),
    random: random(),
    policy,
  })
  const fields = { jobId: job.id, deliveryId: job.deliveryId, step: name, attempt: attempts + 1 }
  if (verdict.kind === 'retry') {
    const runAt = new Date(clock() + verdict.afterMs).toISOString()
    log.warn({ ...fields, runAt }, `${name} failed, and is tried again: ${why}`)
    // a job that began before this rule existed is still in its lane
    return { outcome: verdict, leavesLane: leavesLaneBefore(job.planned, name) }
  }
  log.error(fields, `${name} failed permanently: ${why} "hookloom retry ${job.id}" runs it again.`)
  const events = listDeathEvents(name, job, { ...verdict, why })
  // an attempt that ended because the gateway ended was counted when its lease expired
  return { events, outcome: { kind: 'dead', error: verdict.error, counted: attempts < policy.attempts } }
}

/** The reason without outside text and recipients. */
function describeForLog({ quotes, logged = '', detail }: Failure, { id, planned }: ClaimedJob): string {
  const reason = logged === '' ? detail : logged
  return quotes === true || quotesModel(reason, planned) ? `"hookloom show ${id}" shows why.` : reason
}

/** Whether a reason has the model that the action names: a request may have written it. The reason may contain a long name only in part. */
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
