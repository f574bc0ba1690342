// The jobs of a delivery, the steps of each kind of job, and the event that the main session gets about a run.
import { type DeliverAction, mainSessionKey, type Planned, type PlannedAction } from '../../core/model/action.ts'
import type { Config } from '../../model/config/config.ts'
import type { Job, Step, StepKind, StepName } from '../../model/job.ts'
import type { ItemFiles } from '../../model/source-files.ts'
import type { NewEvent, NewJob } from '../../store/records.ts'
import { toRunTaskName, toSessionLabel } from '../../store/rules.ts'
import { isActive, findHeartbeatConfig } from './agents.ts'
import { toLine } from '../../boundary/boundary.ts'
import { cut } from '../../base/text.ts'

/** `files`: those of the item that caused the run, in place of their contents. */
export type AgentPlan = Extract<PlannedAction, { kind: 'agent' }> & { readonly files?: ItemFiles | undefined }
export type MessagePlan = Extract<PlannedAction, { kind: 'deliver' }>

/**
 * `wake → [event, wake?]` · `deliver → [deliver]` · `agent → [run, summary, wake?, deliver?, deliver-2? …]` · `heartbeat → [run, deliver]` ·
 * `status → [pending, ended, status]` · `callback → [ended, callback]` · `alert → [event?, deliver?]`
 */
export function listSteps(planned: Planned): readonly StepName[] {
  switch (planned.kind) {
    case 'wake':
      return planned.action.mode === 'now' ? ['event', 'wake'] : ['event']
    case 'deliver':
      return ['deliver']
    case 'agent': {
      const { deliver, wakeMode, alsoTo = [] } = planned.action
      // `wake` comes before `deliver`: a reply may wait for its chat for a day, and the turn must not wait with it
      return [
        'run',
        'summary',
        ...(wakeMode === 'now' ? (['wake'] as const) : []),
        ...(deliver ? (['deliver'] as const) : []),
        ...(deliver ? alsoTo.map((_, index) => `deliver-${index + 2}` as const) : []),
      ]
    }
    case 'heartbeat':
      return ['run', 'deliver']
    case 'status':
      return ['pending', 'ended', 'status']
    case 'callback':
      return ['ended', 'callback']
    case 'alert':
      return [
        ...(planned.event ? (['event'] as const) : []),
        ...(planned.channel === undefined ? [] : (['deliver'] as const)),
      ]
  }
}

/** The kind of a step: steps with the same code have the same kind. */
export function toStepKind(name: StepName): StepKind {
  // as: all other names begin with `deliver-`
  return name.startsWith('deliver-') ? 'deliver' : (name as StepKind)
}

/** The recipient of a step. The first step `deliver` has the recipient of the action. */
export function findTarget({ action }: AgentPlan | MessagePlan, name: StepName): Pick<DeliverAction, 'channel' | 'to'> {
  const { alsoTo = [] } = 'alsoTo' in action ? action : {}
  const index = Number(/^deliver-(\d+)$/.exec(name)?.[1] ?? 1) - 2
  return alsoTo[index] ?? action
}

/** The steps that are not recorded yet, in order. */
export function findMissingSteps(planned: Planned, steps: readonly Step[]): readonly StepName[] {
  return listSteps(planned).filter((name) => !steps.some((step) => step.name === name))
}

/**
 * Whether a job leaves its lane before this step. A reply of the main session that waits for its chat must not hold back the heartbeats.
 * Replies of other sessions keep their order, so their jobs stay.
 */
export function leavesLaneBefore(planned: Planned, step: StepName | undefined): boolean {
  return (
    step !== undefined &&
    toStepKind(step) === 'deliver' &&
    planned.kind !== 'alert' &&
    planned.sessionKey === mainSessionKey
  )
}

/** Jobs of one lane run one at a time, in arrival order. */
export function toLane(agentId: string, sessionKey: string): string {
  return `${agentId}/${sessionKey}`
}

/** The origin of a text: the sender, or the hook. Untrusted text. */
export function toOriginName({ origin }: Pick<PlannedAction, 'origin'>): string {
  return origin.source ?? origin.hook
}

/** The system event of a wake. */
function toWakeEvent(planned: Extract<PlannedAction, { kind: 'wake' }>): NewEvent {
  const { action, agentId, sessionKey } = planned
  return {
    agentId,
    sessionKey,
    text: action.text,
    source: toOriginName(planned),
    trusted: action.allowUnsafeExternalContent,
    wakes: action.mode === 'now',
  }
}

export type PlanContext = {
  readonly newId: () => string
  /** The present time, in milliseconds since the epoch. */
  readonly now: number
  /** The recorded step `wake` of this agent: see `toWakeStep`. */
  readonly wakeStep: (agentId: string) => Omit<Step, 'at'>
  /** The ring of the mapping that took the delivery, from its identity; undefined for a built-in hook. */
  readonly ring?: string | undefined
  /** The files that the source of the delivery offered. */
  readonly files?: ItemFiles | undefined
}

/** The labels by which holds find a job of a delivery. */
function toLabels(planned: AgentPlan | MessagePlan, ring: string | undefined): readonly string[] {
  const { agentId, origin } = planned
  const { source } = origin
  const isTurn = planned.kind === 'agent'
  return [
    ...(isTurn ? [toSessionLabel(planned)] : []),
    ...(ring === undefined ? [] : [`mapping:${ring}`]),
    ...(source === undefined ? [] : [`source:${source}`]),
    ...(isTurn ? [`agent:${agentId}`] : []),
  ]
}

/**
 * The jobs of a delivery, for the transaction that accepts it, in the order of the actions; the tasks of the jobs follow. A wake only writes
 * rows, so the transaction completes it, and the heartbeats find its event even after a crash. Runs of one session share a lane; runs that only
 * use the default key have none. The id of a run is the run id in the answer to the sender.
 */
export function planJobs(actions: readonly PlannedAction[], context: PlanContext): NewJob[] {
  const { newId, now, wakeStep, ring, files } = context
  const jobs = actions.map((planned): NewJob => {
    if (planned.kind !== 'wake') {
      const { flow, ...action } = planned
      const plan: AgentPlan | Omit<MessagePlan, 'flow'> =
        action.kind === 'agent' && files ? { ...action, files } : action
      const sharesSession = planned.kind === 'agent' && planned.sharesSession
      const lane = sharesSession ? undefined : toLane(planned.agentId, planned.sessionKey)
      const labels = toLabels(planned, ring)
      return { id: newId(), planned: plan, lane, state: 'queued', steps: [], labels, flow, events: [] }
    }
    const steps = listSteps(planned).map((name): Step =>
      name === 'wake' ? { ...wakeStep(planned.agentId), at: now } : { name, state: 'done', at: now },
    )
    return { id: newId(), planned, lane: undefined, state: 'done', steps, events: [toWakeEvent(planned)] }
  })
  const followed = jobs.map((job) =>
    buildRunWithTasks(job, { status: planStatus(job, newId), callback: planCallback(job, newId) }),
  )
  return [...followed.map(({ job }) => job), ...followed.flatMap(({ tasks }) => tasks)]
}

type RunTasks = Readonly<Record<'status' | 'callback', NewJob | undefined>>

/** A run and its tasks. The run has the ids of the tasks. */
function buildRunWithTasks(
  job: NewJob,
  { status, callback }: RunTasks,
): { readonly job: NewJob; readonly tasks: readonly NewJob[] } {
  const tasks = [status, callback].filter((task) => task !== undefined)
  if (job.planned.kind !== 'agent' || tasks.length === 0) return { job, tasks }
  const ids = { ...(status && { statusJobId: status.id }), ...(callback && { callbackJobId: callback.id }) }
  return { job: { ...job, planned: { ...job.planned, ...ids } }, tasks }
}

/** The task that posts the end of a run; undefined if no callback is configured. */
function planCallback({ id: runId, planned }: NewJob, newId: () => string): NewJob | undefined {
  if (planned.kind !== 'agent' || planned.callback === undefined) return undefined
  const { callback: endpoint, agentId, sessionKey } = planned
  const standsFor = toRunTaskName('callback', runId)
  const plan = { kind: 'callback', agentId, sessionKey, runId, endpoint } as const
  return { id: newId(), planned: plan, standsFor, lane: standsFor, state: 'queued', steps: [], events: [] }
}

/** The names (`standsFor`) of the tasks that wait for the end of a run. */
export function listRunTasks({ id, planned }: Pick<Job, 'id' | 'planned'>): readonly string[] {
  if (planned.kind !== 'agent') return []
  return [
    ...(planned.statusJobId === undefined ? [] : [toRunTaskName('status', id)]),
    ...(planned.callbackJobId === undefined ? [] : [toRunTaskName('callback', id)]),
  ]
}

/**
 * The task that sets the commit status of a run; undefined if there is none to set. It shares no lane with the tasks of other runs, because it
 * ends only after its run: steps/status.ts keeps the order of their statuses.
 */
function planStatus({ id: runId, planned }: NewJob, newId: () => string): NewJob | undefined {
  if (planned.kind !== 'agent' || planned.status === undefined) return undefined
  const { status: name, agentId, sessionKey, origin } = planned
  const { place } = origin
  if (place?.commit === undefined) return undefined
  const plan = {
    kind: 'status',
    agentId,
    sessionKey,
    runId,
    channel: place.channel,
    commit: place.commit,
    name,
  } as const
  const standsFor = toRunTaskName('status', runId)
  return { id: newId(), planned: plan, standsFor, lane: standsFor, state: 'queued', steps: [], events: [] }
}

/**
 * The recorded step `wake`: `skipped` if heartbeats are off, because the event then waits for a turn, else `done`, with a detail if the turn is
 * deferred until the active hours begin. The turn itself is another job.
 */
export function toWakeStep(config: Config, agentId: string, now: number): Omit<Step, 'at'> {
  const { every, activeHours } = findHeartbeatConfig(config, agentId)
  if (every === 0) return { name: 'wake', state: 'skipped', detail: describeHeartbeatsOff(agentId) }
  const waits = `Outside the active hours: the event waits until ${activeHours?.start}.`
  return { name: 'wake', state: 'done', ...(isActive(activeHours, now) ? {} : { detail: waits }) }
}

export function describeHeartbeatsOff(agentId: string): string {
  return `Heartbeats are off (heartbeat.every is 0 for the agent "${agentId}", which is the default for a command without a profile): the event waits for the next turn of the main session.`
}

/** The maximum number of characters of a reply or a reason in an event. */
export const maxSummaryChars = 2_000

/** `status`: `ok`, or the words that mark the event, such as `forwarded`, `error` or `not delivered`. */
export type RunEnd = { readonly status: string; readonly text: string }

/** The name of a run for people, on one line: the name of the action, or the path of the hook. Untrusted text. */
export function toRunName({ action, origin }: AgentPlan | MessagePlan): string {
  return toLine(action.name ?? origin.hook)
}

/** The recorded run of a job. */
export function findRunStep({ steps }: Pick<Job, 'steps'>): Step | undefined {
  return steps.find((step) => step.name === 'run')
}

/** The number of gateways that led to this run: see `model/hops.ts`. */
export function countHops(job: Pick<Job, 'planned' | 'steps'>): number {
  return findRunStep(job)?.hops ?? readPlannedHops(job.planned)
}

/** The hops of the request, or of the failure that an alert is about. A status and a callback have none, and a heartbeat before it reads events. */
export function readPlannedHops(planned: Planned): number {
  if (planned.kind === 'heartbeat' || planned.kind === 'status' || planned.kind === 'callback') return 0
  return (planned.kind === 'alert' ? planned.hops : planned.origin.hops) ?? 0
}

/** The end of the recorded run of a job. */
export function toRunEnd(job: Pick<Job, 'steps'>): RunEnd {
  const run = findRunStep(job)
  return run?.state === 'forwarded'
    ? { status: 'forwarded', text: run.detail ?? '' }
    : { status: 'ok', text: run?.result ?? '' }
}

/**
 * `Hook <name>: <reply>`, or `Hook <name> (<status>): <reason>`. Never trusted, even if the sender of the run is: a model that may have
 * read anything wrote the reply, and a reason may quote the other side.
 */
export function toSummaryEvent(planned: AgentPlan, { status, text }: RunEnd): NewEvent {
  const mark = status === 'ok' ? '' : ` (${status})`
  const summary = cut(text.trim(), maxSummaryChars) || '(empty reply)'
  return {
    agentId: planned.agentId,
    sessionKey: mainSessionKey,
    text: `Hook ${toRunName(planned)}${mark}: ${summary}`,
    source: toOriginName(planned),
    trusted: false,
    wakes: planned.action.wakeMode === 'now',
  }
}
