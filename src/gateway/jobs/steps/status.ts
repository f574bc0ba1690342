// The steps of a commit status: it is pending while the run waits or works, and then has the result of the run. The call is repeated until it
// succeeds, or until the channel refuses it permanently. If several runs set one status of a commit, the result of the newest run stays: the
// task of a run writes its id into the cursor of the status before its first call, and a task that finds a newer id there sets nothing. A lease
// lets only one task at a time read the cursor and call, so that a slow call of an older task cannot end after the call of a newer one.
import { createHash } from 'node:crypto'
import type { CallbackPlan, CommitStatusPlan } from '../../../core/model/action.ts'
import type { Channel, CommitStatus } from '../../../model/channel.ts'
import { hasEnded, type Job } from '../../../model/job.ts'
import { findVerdict } from '../../../model/verdict.ts'
import { statusPrefix } from '../../../store/cursors.ts'
import { withDeadline } from '../../../base/time.ts'
import { formatCommand } from '../../../base/shell.ts'
import { clampAskedMs, type StepOutcome } from '../retry.ts'
import { findRunStep } from '../plan.ts'
import { confirmLease } from '../leases.ts'
import { defineStep, type JobContext, type StepInput } from '../step.ts'

type Input = StepInput<CommitStatusPlan>
type Result = { readonly state: CommitStatus['state']; readonly text: string }

/** The pause between two checks whether the run has ended, if no gateway signals the end. The pause grows with the age of the run. */
const minLookMs = 2_000
const maxLookMs = 60_000
const maxRetryMs = 300_000
/** The time limit of a call that reads a status and sets it, in milliseconds. */
const callTimeoutMs = 60_000
/** The time of the lease under which a task calls. If this task is killed, the others wait at most this long. */
const callLeaseMs = callTimeoutMs + 15_000

const shared = { of: ['status'], retry: undefined, reportsFirst: false, describeDeath: undefined } as const

export const statusSteps = {
  pending: defineStep({
    ...shared,
    about:
      'The commit status of the run becomes `pending`, unless the run has ended. See [Commit status](../../plugins/channels/README.md#commit-status).',
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
    const afterMs = Math.min(maxLookMs, Math.max(minLookMs, (clock() - job.createdAt) / 4))
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

async function setStatus(result: Result, input: Input, context: JobContext): Promise<StepOutcome> {
  const { planned, job } = input
  const { channels, lease, store } = context
  const channel = channels.get(planned.channel)
  if (channel?.setStatus === undefined) {
    const detail = `The status is for ${planned.channel}, and channels.${planned.channel} is not configured. Set channels.${planned.channel}.`
    return { kind: 'permanent', status: 'error', detail }
  }
  const name = toStatusKey(planned)
  const leases = await store.lease({ names: [name], leaseMs: callLeaseMs })
  if (leases.length === 0) return { kind: 'later', afterMs: minLookMs, reason: 'Another run sets this status now.' }
  try {
    const newer = await claimStatus(name, job, context)
    if (newer !== undefined) {
      return {
        kind: 'recorded',
        step: { state: 'skipped', detail: `A newer run sets this status: see the task ${newer}.` },
      }
    }
    // if the wait was longer than the lease of the job, the store says whether this gateway still has the job
    if (!(await confirmLease(lease))) return { kind: 'aborted' }
    return await callChannel(result, input, { ...context, setStatus: channel.setStatus })
  } finally {
    // if the lease cannot be ended, it expires
    await store.endLeases(leases).catch(() => undefined)
  }
}

/** The name of the cursor and the lease for one status of a commit. It is a hash, because a payload may name a long repository. */
function toStatusKey({ channel, commit, name }: CommitStatusPlan): string {
  return `${statusPrefix}${createHash('sha256')
    .update(JSON.stringify([channel, commit, name]))
    .digest('hex')}`
}

/**
 * Notes this task as the newest task of its status. Returns the id of a newer task, if there is one. A newer task that can no longer set the
 * status does not count, because the status would stay pending.
 */
async function claimStatus(name: string, job: Job, context: JobContext): Promise<string | undefined> {
  const { store, config, clock } = context
  const from = await store.cursor(name)
  const knownId = from?.split(' ')[1]
  if (knownId === job.id) return undefined
  const known = knownId === undefined ? undefined : await store.job(knownId)
  const isAlive = known !== undefined && (known.state === 'done' || !hasEnded(known.state))
  if (isAlive && isNewer(known, job)) return known.id
  // the cursor is kept for longer than any task waits
  const until = clock() + config.store.retainDays * 86_400_000
  const moved = await store.appendAll([], { name, from, to: `${until} ${job.id}` })
  return moved === 'moved' ? await claimStatus(name, job, context) : undefined
}

/** Whether a task is newer than another one, by its time and then by its id. A task that begins again with its run counts as a new task. */
function isNewer(one: Job, other: Job): boolean {
  return one.createdAt === other.createdAt ? one.id > other.id : one.createdAt > other.createdAt
}

async function callChannel(
  { state, text }: Result,
  { planned, job }: Input,
  { lease, setStatus: set }: JobContext & { readonly setStatus: NonNullable<Channel['setStatus']> },
): Promise<StepOutcome> {
  const { channel: name, commit, runId } = planned
  const ended = await withDeadline({ outer: lease.signal, ms: callTimeoutMs }, (signal) =>
    set({ commit, name: planned.name, state, description: `Run ${runId} ${text}.`, signal }),
  )
  if (ended.kind === 'aborted') return ended
  const failed = (reason: string, logged: string, afterMs?: number): StepOutcome => {
    const growingMs = Math.min(maxRetryMs, Math.max(minLookMs, job.failingForMs ?? 0))
    return { kind: 'later', afterMs: clampAskedMs(afterMs) ?? growingMs, reason, logged }
  }
  if (ended.kind === 'timeout') {
    const why = `${name}: there was no answer in ${callTimeoutMs / 1_000} s.`
    return failed(why, why)
  }
  const { value: result } = ended
  if (result.kind === 'sent') {
    return { kind: 'recorded', step: { state: 'done', detail: `${state} at ${commit}`, result: result.id } }
  }
  if (result.kind === 'permanent') return { kind: 'permanent', status: 'error', detail: result.detail, quotes: true }
  // the detail may quote the answer, so no log shows it
  const logged = `"${formatCommand`hookloom show ${job.id}`}" shows why.`
  return failed(result.detail, logged, 'retryAfterMs' in result ? result.retryAfterMs : undefined)
}
