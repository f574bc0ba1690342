// The steps of a commit status: it is pending while the run waits or works, and then has the result of the run. It is tried until it is set,
// or until the channel refuses it for good.
import type { CallbackPlan, CommitStatusPlan } from '../../model/action.ts'
import type { CommitStatus } from '../../model/channel.ts'
import { hasEnded, type Job } from '../../model/job.ts'
import { findVerdict } from '../../model/verdict.ts'
import { withDeadline } from '../../base/time.ts'
import { clampAskedMs, type StepOutcome } from '../retry.ts'
import { findRunStep } from '../plan.ts'
import { defineStep, type JobContext, type StepInput } from '../step.ts'

type Input = StepInput<CommitStatusPlan>
type Result = { readonly state: CommitStatus['state']; readonly text: string }

/** How often the task looks whether the run has ended, if no gateway tells it: the pause grows with the age of the run. */
const shortestLookMs = 2_000
const longestLookMs = 60_000
const longestRetryMs = 300_000
/** Milliseconds that a channel has to look up a status and to set it. */
const setTimeoutMs = 60_000

const shared = { of: ['status'], retry: undefined, reportsFirst: false, describeDeath: undefined } as const

export const statusSteps = {
  pending: defineStep({
    ...shared,
    about:
      'The commit status of the run becomes `pending`, unless the run has ended. See [Commit status](../channels/README.md#commit-status).',
    perform: setPending,
    isLogged: true,
  }),
  ended: defineStep({
    ...shared,
    of: ['status', 'callback'],
    about: 'The run has ended. Its result is kept for the next step.',
    perform: awaitEnd,
    isLogged: false,
  }),
  status: defineStep({
    ...shared,
    about: 'The commit status becomes the result of the run.',
    perform: setResult,
    isLogged: true,
  }),
}

async function setPending(input: Input, context: JobContext): Promise<StepOutcome> {
  const run = await context.store.job(input.planned.runId)
  if (run === undefined || hasEnded(run.state)) {
    return { kind: 'recorded', step: { state: 'skipped', detail: 'The run has ended.' } }
  }
  return await setStatus({ state: 'pending', text: 'has not ended' }, input, context)
}

async function awaitEnd(
  { planned, job }: StepInput<CommitStatusPlan | CallbackPlan>,
  { store, clock }: JobContext,
): Promise<StepOutcome> {
  const run = await store.job(planned.runId)
  if (run !== undefined && !hasEnded(run.state)) {
    const afterMs = Math.min(longestLookMs, Math.max(shortestLookMs, (clock() - job.createdAt) / 4))
    return { kind: 'later', afterMs: Math.ceil(afterMs), reason: `The run ${run.id} has not ended.` }
  }
  return { kind: 'recorded', step: { state: 'done', result: JSON.stringify(toResult(run)) } }
}

function setResult(input: Input, context: JobContext): Promise<StepOutcome> {
  const kept = input.job.steps.find(({ name }) => name === 'ended')?.result
  // as: the step `ended` wrote it
  const result = kept === undefined ? toResult(undefined) : (JSON.parse(kept) as Result)
  return setStatus(result, input, context)
}

/** A run that a retention or an operator removed has no result. */
function toResult(run: Job | undefined): Result {
  if (run === undefined) return { state: 'error', text: 'was removed' }
  if (run.state !== 'done') return { state: 'error', text: run.state === 'dead' ? 'failed' : `was ${run.state}` }
  const verdict = findVerdict(run)
  if (verdict?.word === null) return { state: 'error', text: 'gave no verdict' }
  if (verdict !== undefined) {
    return { state: verdict.word === verdict.words[0] ? 'success' : 'failure', text: `ended: ${verdict.word}` }
  }
  return findRunStep(run)?.state === 'skipped'
    ? { state: 'error', text: 'was skipped' }
    : { state: 'success', text: 'is done' }
}

async function setStatus(
  { state, text }: Result,
  { planned, job }: Input,
  { channels, lease }: JobContext,
): Promise<StepOutcome> {
  const { channel: name, commit, runId } = planned
  const channel = channels.get(name)
  if (channel?.setStatus === undefined) {
    const detail = `The status is for ${name}, and channels.${name} is not configured. Set channels.${name}.`
    return { kind: 'permanent', status: 'error', detail }
  }
  // asks the store after a pause that was longer than the lease
  while (!lease.isConfirmed()) if (!(await lease.report({}))) return { kind: 'aborted' }
  const { setStatus: set } = channel
  const ended = await withDeadline({ outer: lease.signal, ms: setTimeoutMs }, (signal) =>
    set({ commit, name: planned.name, state, description: `Run ${runId} ${text}.`, signal }),
  )
  if (ended.kind === 'aborted') return ended
  const failed = (reason: string, logged: string, afterMs?: number): StepOutcome => {
    const growingMs = Math.min(longestRetryMs, Math.max(shortestLookMs, job.failingForMs ?? 0))
    return { kind: 'later', afterMs: clampAskedMs(afterMs) ?? growingMs, reason, logged }
  }
  if (ended.kind === 'timeout') {
    const why = `${name}: there was no answer in ${setTimeoutMs / 1_000} s.`
    return failed(why, why)
  }
  const { value: result } = ended
  if (result.kind === 'sent') {
    return { kind: 'recorded', step: { state: 'done', detail: `${state} at ${commit}`, result: result.id } }
  }
  if (result.kind === 'permanent') return { kind: 'permanent', status: 'error', detail: result.detail, quotes: true }
  // the detail may quote the answer, so no log shows it
  const logged = `"hookloom show ${job.id}" shows why.`
  return failed(result.detail, logged, 'retryAfterMs' in result ? result.retryAfterMs : undefined)
}
