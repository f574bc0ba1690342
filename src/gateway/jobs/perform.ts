// Performs one claimed job from its first missing step. Each effect is recorded before the next one starts; steps that only write rows
// share a commit with the step before them, and the last record also ends the job.
import type { Planned } from '../../core/model/action.ts'
import { type ClaimedJob, type Step, type StepName, toPosts } from '../../model/job.ts'
import type { Log } from '../../base/log.ts'
import type { JobReport, NewEvent } from '../../store/records.ts'
import { listAgentIds } from './agents.ts'
import {
  defaultRetry,
  type Failure,
  joinFailures,
  type StepDelay,
  type StepOutcome,
  type StepWait,
  chooseRetry,
} from './retry.ts'
import { listOutageEvents } from './outage.ts'
import { countHops, leavesLaneBefore, findMissingSteps, toStepKind, toSummaryEvent } from './plan.ts'
import type { JobLease } from './leases.ts'
import { type JobContext, readRetryForMs, type StepDeath } from './step.ts'
import { findStep } from './steps.ts'
import { toErrorName, toErrorText } from '../../base/exceptions.ts'
import { runInSpan } from '../../base/trace.ts'
import { formatCommand } from '../../base/shell.ts'

/** Performs the missing steps and records each one. If the lease is aborted, the job is released and the attempt is not counted. */
export async function performJob(claimed: ClaimedJob, given: JobContext): Promise<void> {
  const { lease, deferRecord } = deferRecords(given.lease)
  const context = { ...given, lease }
  const { clock, retry = defaultRetry } = context
  const missing = findMissingSteps(claimed.planned, claimed.steps)
  const [first] = missing
  // an end of the process during the job counts as an attempt; a task that sets a status goes on, because its status would stay pending
  if (first !== undefined && claimed.attempts >= retry.attempts && claimed.planned.kind !== 'status') {
    const detail = `The gateway ended during attempt ${claimed.attempts}, in the step "${first}". See the last lines of its log. "${formatCommand`hookloom retry ${claimed.id}`}" runs it again.`
    return await failJob(first, claimed, { kind: 'permanent', status: 'error', detail }, context)
  }
  let job = claimed
  const failures: { readonly name: StepName; readonly failure: Failure }[] = []
  for (const [index, name] of missing.entries()) {
    const startedAt = clock()
    const outcome = await performStep(name, job, context)
    if (outcome.kind === 'aborted' || outcome.kind === 'held') {
      await lease.report({ outcome: { kind: 'release' } })
      return
    }
    if (outcome.kind === 'waits') return reportWait(job, outcome, context)
    if (outcome.kind === 'later') return await reportDelay(name, job, outcome, context)
    const next = missing[index + 1]
    if (outcome.kind !== 'recorded') {
      failures.push({ name, failure: outcome })
      // the recipients of a reply do not depend on each other, so the next one is tried after a failure
      if (next === undefined || toStepKind(name) !== 'deliver') break
      if (outcome.posts !== undefined) job = { ...job, posts: toPosts(outcome.posts, job.steps) }
      continue
    }
    const at = clock()
    const step: Step = { name, ...outcome.step, ...(at > startedAt && { startedAt }), at }
    const { kind: _, step: __, leavesEvents = false, ...rows } = outcome
    deferRecord({ ...rows, steps: [step], leavesLane: leavesLaneBefore(job.planned, next) }, () => {
      context.meter('steps', { step: toStepKind(name), outcome: step.state }, (step.at - startedAt) / 1_000)
      if (name === 'run') countTurn(job, step.state, context)
      if (isAlertPost(job, name))
        context.onAlertAttempt(step.state === 'done' ? { isDelivered: true } : { isDelivered: false, why: noChannel })
      logStep(context.log, claimed, step, step.at - startedAt)
      if (rows.settled !== undefined) context.onSettled(rows.settled)
      if (leavesEvents) context.onWake(claimed.planned.agentId)
    })
    if (next === undefined) break
    if (lease.signal.aborted) return void (await lease.report({ outcome: { kind: 'release' } }))
    if (!findStep(next).reportsFirst && !(await lease.report({}))) return
    // the step has ended, so its failures no longer count
    const recorded = [...job.steps, step]
    const posts = outcome.posts === undefined ? job.posts : toPosts(outcome.posts, recorded)
    job = { ...job, steps: recorded, posts, failingForMs: undefined }
  }
  const [failed, ...others] = failures
  if (failed === undefined) return void (await lease.report({ outcome: { kind: 'done' } }))
  const failure = joinFailures([failed.failure, ...others.map((other) => other.failure)])
  await failJob(failed.name, job, failure, context)
}

const noChannel = 'no channel is configured.'

/** Whether the step posts an alert of the operator. */
function isAlertPost({ planned }: ClaimedJob, step: StepName): boolean {
  return planned.kind === 'alert' && step === 'deliver'
}

/**
 * Returns a lease that writes the records given to `deferRecord` with its next report, so that a turn, its summary and the state `sending` of
 * the first message are one commit. `onWritten` is called after that commit.
 */
function deferRecords(lease: JobLease): {
  lease: JobLease
  deferRecord(record: JobReport, onWritten: () => void): void
} {
  let held: JobReport = {}
  let callbacks: readonly (() => void)[] = []
  return {
    deferRecord(record, onWritten) {
      held = mergeReports(held, record)
      callbacks = [...callbacks, onWritten]
    },
    lease: {
      ...lease,
      async report(what) {
        if (!(await lease.report(mergeReports(held, what)))) return false
        const written = callbacks
        held = {}
        callbacks = []
        for (const callback of written) callback()
        return true
      },
    },
  }
}

/** Combines two reports into one. `second` came after `first`. */
function mergeReports(first: JobReport, second: JobReport): JobReport {
  const { steps: firstSteps = [], events = [], messages = [], consumed = [] } = first
  return {
    ...first,
    ...second,
    steps: [...firstSteps, ...(second.steps ?? [])],
    events: [...events, ...(second.events ?? [])],
    messages: [...messages, ...(second.messages ?? [])],
    consumed: [...consumed, ...(second.consumed ?? [])],
    leavesLane: first.leavesLane === true || second.leavesLane === true,
  }
}

/**
 * Writes the log line of a step, if the step has one. The line has no text that a payload may have chosen: no session key, no model that the
 * action names, and no detail, which may name the recipient.
 */
function logStep(log: Log, { id: jobId, deliveryId, planned }: ClaimedJob, step: Step, tookMs: number): void {
  const { name, state, model } = step
  if (!findStep(name).isLogged) return
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
      findStep(name).perform({ name, planned, job, agent: context.agent(planned.agentId) }, context),
    )
  } catch (thrown) {
    if (lease.signal.aborted) return { kind: 'aborted' }
    // the message may quote the payload, so the record of the job gets it, and the log does not
    log.warn({ jobId: job.id, step: name, thrown: toErrorName(thrown) }, 'a step threw')
    return { kind: 'transient', detail: `The step "${name}" threw ${toErrorText(thrown)}`, quotes: true }
  }
}

async function reportDelay(
  step: StepName,
  { id: jobId }: ClaimedJob,
  { afterMs, reason, logged }: StepDelay,
  { lease, log }: JobContext,
): Promise<void> {
  await lease.report({
    outcome: { kind: 'retry', afterMs, error: reason, counted: false, isDelay: logged === undefined },
  })
  if (logged !== undefined) log.warn({ jobId, step }, `${step} failed, and is tried again: ${logged}`)
}

/** Reports a wait for a budget: the store has already queued the job again. */
function reportWait(job: ClaimedJob, { reason, budget }: StepWait, { log, onBudgetWait }: JobContext): void {
  log.info({ jobId: job.id, deliveryId: job.deliveryId, budget }, reason)
  onBudgetWait(budget)
}

async function failJob(step: StepName, job: ClaimedJob, failure: Failure, context: JobContext): Promise<void> {
  const why = describeForLog(failure, job)
  const what = buildFailureReport(step, job, { failure, why, context })
  if (!(await context.lease.report(what))) return
  if (failure.settled !== undefined) context.onSettled(failure.settled)
  if (isAlertPost(job, step)) context.onAlertAttempt({ isDelivered: false, why })
  const isDead = what.outcome?.kind === 'dead'
  const outcome = isDead ? 'dead' : 'retried'
  context.meter('steps', { step: toStepKind(step), outcome })
  if (step === 'run') countTurn(job, outcome, context)
  if (!isDead) return
  const { planned, id: jobId } = job
  context.onDeath({ jobId, planned, step, why, quotes: failure.quotes === true, hops: countHops(job) })
  // the event about the failure asks for a turn, as a summary does
  if (planned.kind === 'agent' && planned.action.wakeMode === 'now') context.onWake(planned.agentId)
}

/**
 * Builds the report of a failed step. If the step failed permanently, the main session may get an event, in the transaction that makes the job
 * dead. No step is recorded for the event: if the operator queues the job again, it continues with the failed step, and may make another event.
 */
function buildFailureReport(
  name: StepName,
  job: ClaimedJob,
  { failure, why, context }: { failure: Failure; why: string; context: JobContext },
): JobReport {
  const { clock, log, config, random, retry: policy = defaultRetry, claimedAt } = context
  const { attempts, failingForMs, overdueForMs } = job
  const settled = failure.settled && { settled: failure.settled }
  const now = clock()
  const failsForMs = failingForMs === undefined ? undefined : failingForMs + Math.max(0, now - claimedAt)
  const forMs = readRetryForMs(findStep(name), config)
  const choice = chooseRetry(failure, {
    attempts,
    failingForMs: failsForMs,
    overdueForMs,
    forMs,
    random: random(),
    policy,
  })
  const fields = { jobId: job.id, deliveryId: job.deliveryId, step: name, attempt: attempts + 1 }
  if (choice.kind === 'retry') {
    const runAt = now + choice.afterMs
    log.warn({ ...fields, runAt: new Date(runAt).toISOString() }, `${name} failed, and is tried again: ${why}`)
    // a job that an earlier version began has not left its lane yet
    return {
      ...settled,
      events:
        name === 'run' && failure.kind === 'unavailable'
          ? listOutageEvents(job, { detail: failure.detail, at: now, runAt, forMs, failsForMs: failsForMs ?? 0 })
          : [],
      outcome: { ...choice, spentMs: failure.spentMs },
      leavesLane: leavesLaneBefore(job.planned, name),
    }
  }
  log.error(fields, `${name} failed permanently: ${why} "${formatCommand`hookloom retry ${job.id}`}" runs it again.`)
  const events = listDeathEvents(name, job, { ...choice, why })
  // an attempt was also counted for each end of the gateway, when the lease expired
  return { ...settled, events, outcome: { kind: 'dead', error: choice.error, counted: attempts < policy.attempts } }
}

/** Counts a turn for the metrics. A request may name any agent, so only the ids of the configuration are labels. */
function countTurn(
  { planned: { agentId } }: ClaimedJob,
  outcome: Step['state'] | 'retried' | 'dead',
  { meter, config }: Pick<JobContext, 'meter' | 'config'>,
): void {
  meter('turns', { agent: listAgentIds(config).includes(agentId) ? agentId : '*', outcome })
}

/** The reason without outside text and recipients. */
function describeForLog({ quotes, logged = '', detail }: Failure, { id, planned }: ClaimedJob): string {
  const reason = logged === '' ? detail : logged
  return quotes === true || quotesModel(reason, planned) ? `"${formatCommand`hookloom show ${id}`}" shows why.` : reason
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
  // no event: the event of a failed heartbeat would ask for the next heartbeat, and so on
  if (planned.kind !== 'agent') return []
  const end = findStep(name).describeDeath?.(death)
  return end === undefined ? [] : [toSummaryEvent(planned, end)]
}
