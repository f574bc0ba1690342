// The step `callback`: the end of a run is posted to an endpoint of the configuration, as a signed webhook.
// https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
import { toWellFormed } from '../../../base/text.ts'
import type { CallbackPlan } from '../../../core/model/action.ts'
import { hasEnded, type Job } from '../../../model/job.ts'
import { findVerdict } from '../../../model/verdict.ts'
import { withDeadline } from '../../../base/time.ts'
import { countHops, findRunStep } from '../plan.ts'
import type { StepOutcome } from '../retry.ts'
import { confirmLease } from '../leases.ts'
import { defineStep, type JobContext, type StepInput } from '../step.ts'

/** The time limit for the answer of the receiver, in milliseconds. */
const postTimeoutMs = 60_000

export const callbackStep = defineStep({
  about:
    'The end of the run is posted to the endpoint that `callback` of the mapping names. See [Callbacks](#callbacks).',
  of: ['callback'],
  perform: postEnd,
  retry: 'channels.retry',
  reportsFirst: false,
  isLogged: true,
  describeDeath: undefined,
})

async function postEnd(
  { planned }: StepInput<CallbackPlan>,
  { store, channels, lease, clock }: JobContext,
): Promise<StepOutcome> {
  const { runId, endpoint } = planned
  const run = await store.job(runId)
  // this happens if an operator has queued a dead run again
  if (run !== undefined && !hasEnded(run.state))
    return { kind: 'later', afterMs: 5_000, reason: 'The run has not ended.' }
  const channel = channels.get('webhook')
  if (channel?.postEvent === undefined) {
    const detail = `The callback is for the endpoint "${endpoint}", and channels.webhook is not configured. Set it.`
    return { kind: 'permanent', status: 'error', detail }
  }
  // after a pause that was longer than the lease, the store says whether this gateway still has the job
  if (!(await confirmLease(lease))) return { kind: 'aborted' }
  const event = run?.state === 'done' ? 'run.done' : 'run.dead'
  const timestamp = new Date(clock()).toISOString()
  const body = JSON.stringify(toWellFormed({ type: event, timestamp, data: toRunData(runId, run) }))
  const hops = run === undefined ? 1 : countHops(run) + 1
  const { postEvent } = channel
  const ended = await withDeadline({ outer: lease.signal, ms: postTimeoutMs }, (signal) =>
    postEvent({ endpoint, id: toMessageId(runId, event), body, hops, signal }),
  )
  if (ended.kind === 'aborted') return ended
  if (ended.kind === 'timeout')
    return { kind: 'unavailable', detail: `webhook ${endpoint}: there was no answer in ${postTimeoutMs / 1_000} s.` }
  const result = ended.value
  if (result.kind === 'sent')
    return { kind: 'recorded', step: { state: 'done', detail: `${event} to ${endpoint}`, result: result.id } }
  const detail = `webhook ${endpoint}: ${result.detail}`
  if (result.kind === 'permanent') return { kind: 'permanent', status: 'error', detail, quotes: true }
  // the receiver drops repeats by the id, so a repetition does no harm
  return { kind: 'unavailable', detail, retryAfterMs: 'retryAfterMs' in result ? result.retryAfterMs : undefined }
}

/**
 * The same id for every attempt, so that the receiver can drop repeats. It has no dot, because a dot separates the parts of the signed
 * text.
 */
function toMessageId(runId: string, event: 'run.done' | 'run.dead'): string {
  return `msg_${runId}_${event.replace('.', '_')}`
}

/** The state of a run for receivers, the same as in the run resource. */
function describeState({ state }: Job): string {
  return state === 'dropped' || state === 'skipped' ? 'cancelled' : state
}

/**
 * The data of a run, as in the run resource: without errors of providers, and with the reply only if the mapping shows it. A run that was
 * removed is `cancelled`.
 */
function toRunData(runId: string, run: Job | undefined): object {
  if (run === undefined) return { runId, deliveryId: null, state: 'cancelled' }
  const { planned, deliveryId = null } = run
  const verdict = findVerdict(run)
  const showsReply = planned.kind === 'agent' && planned.result === 'text'
  const step = findRunStep(run)
  return {
    runId,
    deliveryId,
    state: describeState(run),
    ...(verdict && { verdicts: verdict.words, verdict: verdict.word, verdictForm: verdict.form ?? null }),
    ...(showsReply ? { reply: (step?.state === 'done' ? step.result : undefined) ?? null } : {}),
  }
}
