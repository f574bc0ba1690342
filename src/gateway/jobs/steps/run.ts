// The step `run`: one agent turn with its prompt, history and time limit.
import { type Heartbeat, mainSessionKey } from '../../../core/model/action.ts'
import { builtInRunners } from '../../../model/config/agents-rules.ts'
import { listPresentFailures } from '../../../model/job.ts'
import { Problem } from '../../../core/model/problem.ts'
import type { Runner, RunRequest, RunResult } from '../../../model/runner.ts'
import type { WaitingEvents } from '../../../store/records.ts'
import type { Store } from '../../../store/store.ts'
import { reserveTurn } from '../budgets.ts'
import { explainSilence } from '../acknowledgement.ts'
import type { Agent } from '../agents.ts'
import { cut } from '../../../base/text.ts'
import { withDeadline } from '../../../base/time.ts'
import type { Failure, StepRecord, StepOutcome } from '../retry.ts'
import { listTurnContexts, maxShownEvents, type TurnContext } from '../context.ts'
import {
  buildHeartbeatPrompt,
  buildPrompt,
  chooseGathered,
  type GatheredPlans,
  maxGathered,
  noGathered,
} from '../prompt.ts'
import { buildSessionRecord, readSession, type TurnSession } from '../session.ts'
import { type AgentPlan, readPlannedHops } from '../plan.ts'
import { createPacedRunner, createTracedRunner, holdIfCrowded, runWithFallbacks } from '../turns.ts'
import { createVerdictRunner } from '../verdicts.ts'
import { confirmLease } from '../leases.ts'
import { fetchFiles } from './files.ts'
import { defineStep, type JobContext, type StepInput } from '../step.ts'
import { removeOldRunFolders } from '../../../plugins/runners/shared/run-files.ts'
import { prepareWorkspace, type WorkspaceReader } from '../../../plugins/runners/shared/workspace.ts'

/** The time that a run has to end after its time limit, in milliseconds. A command may have a minute between SIGTERM and SIGKILL. */
const endingMs = 66_000

export const runStep = defineStep({
  about: 'The turn of the agent: prompt, session, runner.',
  of: ['agent', 'heartbeat'],
  perform: runTurn,
  retry: 'agents.defaults.retry',
  reportsFirst: false,
  isLogged: true,
  describeDeath: ({ status, error }) => ({ status, text: error }),
})

/** Runs the turn. The commit of the step writes the prompt and the reply into the transcript, and consumes the events of the prompt. */
async function runTurn(
  { planned, job, agent }: StepInput<AgentPlan | Heartbeat>,
  context: JobContext,
): Promise<StepOutcome> {
  const { store, readWorkspaceFile, clock, lease } = context
  const { agentId, sessionKey } = planned
  const note = (message: string) => context.log.info({ jobId: job.id }, cut(message, 500))
  const runner = context.runner(agent.runner)
  if (runner === undefined) return failUnknownRunner(agent)
  if (planned.kind === 'agent' && (await isHeldBack({ id: job.id, planned, agent }, context))) return { kind: 'held' }
  const waiting = await readWaiting(store, planned)
  const gathered = job.hasFlow ? await readGathered(store, job.id) : noGathered
  if (planned.kind === 'heartbeat') await removeOldRunFolders(agent.workspace, clock())
  const checks = planned.kind === 'heartbeat' ? await readWorkspaceFile(agent.workspace, 'HEARTBEAT.md') : undefined
  const hasNothing = waiting.count === 0 && checks === undefined && agent.heartbeat.prompt === undefined
  if (planned.kind === 'heartbeat' && hasNothing) return skipHeartbeat()

  const session = await readSession(store, planned, { agent, runner })
  const workspace = runner.usesWorkspace === false ? undefined : agent.workspace
  await prepareWorkspace(workspace)
  const plans = planned.kind === 'agent' ? [...gathered.plans, planned] : []
  const files = await fetchFiles(plans, { jobId: job.id, runner, workspace }, context)
  if (files.kind !== 'ready') return files
  const action = planned.kind === 'agent' ? planned.action : undefined
  const seconds = action?.timeoutSeconds ?? agent.timeoutSeconds
  const spentMs = findSpentMs(job)
  const ms = Math.ceil(seconds * 1_000) - spentMs
  if (ms <= 0) return failTimeout(planned, agent, seconds)
  const hops = Math.max(readPlannedHops(planned), await readEventHops(store, waiting))
  const request: Omit<RunRequest, 'history' | 'prompt'> = {
    runId: job.id,
    attempt: job.attempts + 1,
    agentId,
    sessionKey,
    model: action?.model ?? agent.model,
    thinking: action?.thinking ?? agent.thinking,
    system: await readSystemText({ ...agent, workspace }, readWorkspaceFile),
    workspace,
    state: session.state,
    message: [...gathered.plans, ...(action ? [{ action }] : [])].map((each) => each.action.message).join('\n\n'),
    action,
    verdicts: planned.kind === 'agent' ? planned.verdicts : undefined,
    hops: hops + 1,
    deadline: clock() + ms,
  }
  const draft = (shown: TurnContext) => ({
    ...request,
    history: shown.history,
    prompt: buildTurnPrompt(planned, { shown, session, gathered, files: files.texts, checks, agent }, context),
  })
  const [whole, ...smaller] = listTurnContexts({ ...session, waiting })
  const first = draft(whole)
  const budget = await reserveTurn({ planned, agent, draft: first }, context)
  if (budget.kind !== 'reserved') return budget
  const traced = createTracedRunner(runner, { agent, job })
  // with a fallback, the next turn can use another provider, so it need not wait
  const paced = agent.modelFallbacks.length > 0 ? traced : createPacedRunner(traced, { agent, context })
  const verdictRunner = createVerdictRunner(budget.meter(paced), context)
  const ask = async (shown: TurnContext, given: ReturnType<typeof draft>, limit: AbortSignal) => {
    const result = await runWithFallbacks(verdictRunner, given, {
      models: agent.modelFallbacks,
      log: note,
      signal: limit,
      onText: (text) => context.noteReply(job.id, text),
    })
    return { shown, prompt: given.prompt, result }
  }
  // the next turn of the session must not start while a child process of this turn still works in the same folder
  const times = { outer: lease.signal, ms, endingMs, waitsAfterAbort: lease.mustEnd }
  // a turn costs money: after a pause that was longer than the lease, the store decides whether this gateway still has the job
  if (!(await confirmLease(lease))) return { kind: 'aborted' }
  const untrack = context.trackTurn({ jobId: job.id, since: request.deadline - ms, until: request.deadline })
  const ended = await withDeadline(times, async (limit) => {
    let last = await ask(whole, first, limit)
    for (const shown of smaller) {
      if (last.result.status !== 'too-long' || limit.aborted) break
      note(describeShorterPrompt(shown))
      last = await ask(shown, draft(shown), limit)
    }
    return last
  }).finally(untrack)
  if (ended.kind === 'aborted') return ended
  if (ended.kind === 'timeout') return failTimeout(planned, agent, seconds)
  const { shown, prompt, result } = ended.value
  const settled = budget.settle()
  const outcome = { ...toStepOutcome(result, { prompt, runner, session }), ...(settled && { settled }) }
  if (outcome.kind !== 'recorded') {
    const tookMs = outcome.kind === 'transient' ? clock() - (request.deadline - ms) : 0
    return { ...outcome, spentMs: spentMs + tookMs }
  }
  const isIdle = planned.kind === 'heartbeat' && waiting.count === 0 && isAcknowledged(result, agent)
  return {
    ...outcome,
    step: { ...outcome.step, ...(hops > readPlannedHops(planned) ? { hops } : {}) },
    // a heartbeat that found nothing leaves no trace in the conversation
    ...(isIdle ? { messages: [] } : {}),
    ...findConsumedEvents(planned, shown, waiting),
  }
}

/** Whether the session of the turn is held back. A turn that the store cannot count now is not tried: the job is queued again. */
async function isHeldBack(turn: Parameters<typeof holdIfCrowded>[0], context: JobContext): Promise<boolean> {
  try {
    const session = await holdIfCrowded(turn, context.store)
    if (session !== undefined) context.onCrowded(session)
    return session !== undefined
  } catch (thrown) {
    if (thrown instanceof Problem && thrown.code === 'store-unavailable') return true
    throw thrown
  }
}

const noEvents: WaitingEvents = { events: [], count: 0, wakes: false }

/** Events for which a heartbeat had no room wait for the next one, which comes soon: no later turn may have more room. */
function findConsumedEvents(
  { kind }: AgentPlan | Heartbeat,
  { waiting: shown }: TurnContext,
  { events, count, wakes }: WaitingEvents,
): Partial<StepRecord> {
  const consumed = events.slice(0, shown.events.length)
  const asks = kind === 'heartbeat' || wakes
  return consumed.length === 0 ? {} : { consumed, leavesEvents: asks && consumed.length < count }
}

/** Events wait in main sessions only. */
async function readWaiting(store: Pick<Store, 'waitingEvents'>, { agentId, sessionKey }: AgentPlan | Heartbeat) {
  if (sessionKey !== mainSessionKey) return noEvents
  return await store.waitingEvents({ agentId, sessionKey, limit: maxShownEvents })
}

/** The highest hop count among the requests that caused the events. */
async function readEventHops(store: Pick<Store, 'delivery'>, { events }: WaitingEvents): Promise<number> {
  const ids = new Set(events.flatMap(({ deliveryId }) => deliveryId ?? []))
  const deliveries = await Promise.all(Array.from(ids, (id) => store.delivery(id)))
  return Math.max(0, ...deliveries.flatMap((found) => found?.jobs ?? []).map(({ planned }) => readPlannedHops(planned)))
}

async function readGathered(store: Pick<Store, 'gatheredJobs'>, jobId: string): Promise<GatheredPlans> {
  const { jobs, count } = await store.gatheredJobs(jobId, 2 * maxGathered)
  return chooseGathered(jobs, count)
}

type Texts = {
  readonly shown: TurnContext
  readonly session: TurnSession
  readonly gathered: GatheredPlans
  readonly files: ReadonlyMap<AgentPlan, string>
  readonly checks: string | undefined
  readonly agent: Agent
}

function buildTurnPrompt(
  planned: AgentPlan | Heartbeat,
  { shown: { waiting, leavesOut }, session, gathered, files, checks, agent }: Texts,
  { clock, newBoundaryId }: JobContext,
): string {
  // a runner with a session of its own remembers what it was told
  const texts = { waiting, newBoundaryId, leavesOut: session.isEnded || (leavesOut && session.told === undefined) }
  if (planned.kind === 'agent') return buildPrompt({ ...texts, planned, gathered, files })
  return buildHeartbeatPrompt({ ...texts, checks, prompt: agent.heartbeat.prompt, now: clock() })
}

async function readSystemText(
  { system, workspace }: Agent,
  readWorkspaceFile: WorkspaceReader,
): Promise<string | undefined> {
  const texts = [system, await readWorkspaceFile(workspace, 'AGENTS.md')].filter((text) => text !== undefined)
  return texts.length === 0 ? undefined : texts.join('\n\n')
}

/** How long the earlier attempts of the turn took, without those that had no effect: the time limit is that of all of them. */
function findSpentMs(job: StepInput<AgentPlan | Heartbeat>['job']): number {
  return listPresentFailures(job).findLast(({ spentMs }) => spentMs !== undefined)?.spentMs ?? 0
}

function failTimeout(planned: AgentPlan | Heartbeat, { id, runner }: Agent, seconds: number): StepOutcome {
  const isNamed = planned.kind === 'agent' && planned.action.timeoutSeconds !== undefined
  const where = isNamed ? 'of the mapping or the request' : `of agent "${id}", or of agents.defaults`
  const detail = `The runner "${runner}" did not end in ${seconds} s. Raise timeoutSeconds ${where}.`
  return { kind: 'permanent', status: 'timeout', detail }
}

function describeShorterPrompt({ history, waiting: { events, count } }: TurnContext): string {
  return (
    'The prompt is too long for the model. The next try has the newest ' +
    `${history.length} earlier messages and the oldest ${events.length} of ${count} waiting events.`
  )
}

function skipHeartbeat(): StepRecord {
  const detail = 'No event waits, and the workspace has no HEARTBEAT.md with a task.'
  return { kind: 'recorded', step: { state: 'skipped', detail } }
}

function failUnknownRunner({ id, runner }: Agent): StepOutcome {
  const detail = `Agent ${id} uses the runner "${runner}", which does not exist. Add runners.${runner}, or name one of ${builtInRunners.join(', ')}.`
  return { kind: 'permanent', status: 'error', detail }
}

function isAcknowledged(result: RunResult, { heartbeat }: Agent): boolean {
  return result.status === 'ok' && explainSilence(result.text, heartbeat) !== undefined
}

function toStepOutcome(
  result: RunResult,
  { prompt, runner, session }: { prompt: string; runner: Runner; session: TurnSession },
): StepRecord | Failure {
  const { status } = result
  switch (status) {
    case 'ok': {
      const { text, model, usage, state, verdict } = result
      return {
        kind: 'recorded',
        step: {
          state: 'done',
          detail: result.simulated === true ? `simulated by ${runner.id}: no model was asked` : `by ${runner.id}`,
          result: text,
          ...(model === undefined ? {} : { model }),
          ...(usage === undefined ? {} : { usage }),
          ...(verdict === undefined ? {} : { verdict }),
        },
        ...buildSessionRecord({ prompt, text, state }, { session, runner }),
      }
    }
    case 'forwarded':
      return { kind: 'recorded', step: { state: 'forwarded', detail: result.detail, result: result.id } }
    case 'unavailable':
      return { kind: 'unavailable', ...pickDetail(result), retryAfterMs: result.retryAfterMs }
    case 'timeout':
      return { kind: 'permanent', status, ...pickDetail(result) }
    case 'too-long':
      return { kind: 'permanent', status: 'error', ...pickDetail(result) }
    case 'error':
      return result.retryable
        ? { kind: 'transient', ...pickDetail(result), retryAfterMs: result.retryAfterMs }
        : { kind: 'permanent', status, ...pickDetail(result) }
  }
}

function pickDetail({ detail, quotes }: Pick<Failure, 'detail' | 'quotes'>): Pick<Failure, 'detail' | 'quotes'> {
  return { detail, quotes }
}
