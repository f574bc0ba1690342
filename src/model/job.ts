import type { ChannelName, Planned } from '../core/model/action.ts'
import type { JobState } from './api/answers.ts'

/**
 * The end states of a job that has no further effect. `superseded`: a newer request of its key replaced it, or another job reads its message.
 * `cancelled`: a request or an operator ended it. `expired`: it did not start in time. `skipped`: its flow allows no turn for it.
 */
export const earlyEnds = ['superseded', 'cancelled', 'expired', 'skipped'] as const satisfies readonly JobState[]
export type EarlyEnd = (typeof earlyEnds)[number]

/** Why an unfinished job ends. `reason`: a sentence for the operator. `endedBy`: the id of the job that supersedes it. */
export type Ending = {
  readonly state: EarlyEnd | 'dropped'
  readonly reason: string
  readonly endedBy?: string | undefined
}

export function isEndedEarly(state: JobState): state is EarlyEnd {
  return earlyEnds.some((early) => early === state)
}

export function hasEnded(state: JobState): boolean {
  return state !== 'queued' && state !== 'running'
}

/** The kinds of effects. */
export type StepKind = 'event' | 'run' | 'summary' | 'wake' | 'deliver' | 'pending' | 'ended' | 'status' | 'callback'

/** The effects of a job, in the order of its plan. `deliver-2` and so on: the reply goes to a further recipient. */
export type StepName = StepKind | `deliver-${number}`

/** Tokens of a turn, summed over its model calls. */
export type Usage = {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cachedInputTokens?: number
  readonly cacheWriteTokens?: number
  readonly reasoningTokens?: number
  readonly costUsd?: number
}

const usageKinds = [
  'inputTokens',
  'outputTokens',
  'cachedInputTokens',
  'cacheWriteTokens',
  'reasoningTokens',
  'costUsd',
] as const satisfies readonly (keyof Usage)[]

/** More than any turn can have. Sums of such counts still fit into the columns of the store. */
const mostOfCall = 1_000_000_000

/**
 * The counts of a call that can be true. A server or a program may report anything: a negative, broken or huge count is unknown, and without the two
 * required counts so is the usage.
 */
export function toKnownUsage(reported: Usage): Usage | undefined {
  const isKnown = (count: number | undefined) =>
    typeof count === 'number' && Number.isFinite(count) && count >= 0 && count <= mostOfCall
  const known = usageKinds.filter((kind) => isKnown(reported[kind]))
  if (!known.includes('inputTokens') || !known.includes('outputTokens')) return undefined
  const { inputTokens, outputTokens } = reported
  return { inputTokens, outputTokens, ...Object.fromEntries(known.map((kind) => [kind, reported[kind]])) }
}

/** The sum of all usages. A kind of tokens that no call counted is left out. Undefined if there was no call. */
export function addUsages(all: readonly Usage[]): Usage | undefined {
  if (all.length === 0) return undefined
  const counted = usageKinds.filter((kind) => all.some((usage) => usage[kind] !== undefined))
  const sum = (kind: keyof Usage) => all.reduce((total, usage) => total + (usage[kind] ?? 0), 0)
  return { inputTokens: 0, outputTokens: 0, ...Object.fromEntries(counted.map((kind) => [kind, sum(kind)])) }
}

/** How a verdict was read, from the strictest form to the loosest. */
export type VerdictForm = 'structured-output' | 'tool-call' | 'last-line'

/**
 * The verdict of a run. `word`: one of `verdicts` of the mapping; null if the reply gives none. `isRepaired`: a second question was asked; `word` is
 * its answer, or null if that was not valid either.
 */
export type RunVerdict = { readonly word: string | null; readonly form?: VerdictForm; readonly isRepaired?: true }

/**
 * One recorded effect. A recorded effect is never repeated. `forwarded`: another gateway performs the run and delivers its reply.
 */
export type Step = {
  name: StepName
  state: 'done' | 'skipped' | 'forwarded'
  at: number
  /** When the step began; undefined if it ended in the same millisecond. */
  startedAt?: number
  /** A sentence for the operator: the destination of the effect, or why it was skipped. */
  detail?: string
  /** The value that a later step or a retry needs: the reply of a run, the provider's id of a message. */
  result?: string
  /** The model that answered a run, and its cost. */
  model?: string
  usage?: Usage
  /** Only for a run whose mapping has `verdicts`. */
  verdict?: RunVerdict
  /** The highest hop count of the events that a run read, if it is higher than that of the job: see `hops.ts`. */
  hops?: number
}

const postStates = ['waiting', 'sending', 'sent', 'unknown'] as const

/**
 * One message of a reply, which may be split into several messages. All messages are stored, with route and nonce, before the first is sent.
 * Each message is marked before it goes to the channel, and again when the provider has accepted it. `sending` after the end of an attempt: the
 * result was not recorded. `unknown`: the message may have arrived, so it is not sent again.
 */
export type Post = {
  /** The step that sends the message; undefined for `deliver`. */
  readonly step?: StepName
  readonly part: number
  readonly channel: ChannelName
  readonly to: string | undefined
  readonly nonce: string
  readonly text: string
  readonly state: (typeof postStates)[number]
  readonly at: number
  /** The provider's id. */
  readonly id?: string
  /** True: an attempt ended before its result was recorded, and the message was sent again through a channel that does not drop repeats. */
  readonly mayBeTwice?: true
  /**
   * Only for one of several recipients: why the message is sent again only after a retry by the operator, while the job still serves the other
   * recipients.
   */
  readonly failed?: string
  /** Only for one of several recipients: the attempts of this message that failed and counted. The attempts of the job are those of its turn. */
  readonly tries?: number
}

/** Whether the step sends the message. */
export function isPostOf({ step = 'deliver' }: Pick<Post, 'step'>, name: StepName): boolean {
  return step === name
}

/** A message as it is stored. Without a text, it is the whole reply of the run, which is in the step. */
export type StoredPost = Omit<Post, 'text'> & { readonly text?: string | undefined }

/** Messages with their texts. `steps`: the steps of the job. */
export function toPosts(posts: readonly StoredPost[], steps: readonly Step[]): readonly Post[] {
  const reply = steps.find(({ name }) => name === 'run')?.result ?? ''
  return posts.map((post) => ({ ...post, text: post.text ?? reply }))
}

/** `unsent`: the message was never sent, and its run or its recipient has failed, or its run was dropped or ended early. */
export type ShownPostState = Post['state'] | 'unsent'

/**
 * The state to show to people. No message waits or is being sent in a run that failed, was dropped or ended early, or for one of several recipients
 * that has failed.
 */
export function toShownPostState({ state, mayBeTwice, failed }: Post, job: Pick<Job, 'state'>): ShownPostState {
  const isOver = job.state === 'dead' || job.state === 'dropped' || isEndedEarly(job.state) || failed !== undefined
  if (!isOver || state === 'sent') return state
  return state === 'waiting' && mayBeTwice !== true ? 'unsent' : 'unknown'
}

/**
 * An attempt that failed. `at`: when it failed. `error`: cut to 200 characters. `spentMs`: only of a turn: how long its attempts took until then,
 * without those that had no effect.
 */
type FailedAttempt = { readonly at: number; readonly error: string; readonly spentMs?: number }

/** The kept failures of the present step, in order. A step that does not fail has none. */
export function listPresentFailures<Failure extends Pick<FailedAttempt, 'at'>>(job: {
  readonly failingSince: number | undefined
  readonly failures: readonly Failure[]
}): readonly Failure[] {
  const { failingSince, failures } = job
  return failingSince === undefined ? [] : failures.filter(({ at }) => at >= failingSince)
}

/** An accepted action, or a task, on its way to its effects. `id` is the run id of an agent action. */
export type Job = {
  readonly id: string
  /** The id of the delivery; undefined for a task, such as a heartbeat, an alert or a callback. */
  readonly deliveryId: string | undefined
  readonly planned: Planned
  readonly state: JobState
  readonly attempts: number
  readonly createdAt: number
  readonly runAt: number
  readonly lockedUntil: number | undefined
  /** The error of the last failed attempt, or why the job ended early. */
  readonly lastError: string | undefined
  /** Only for a superseded job: the id of the job that replaced it, or that reads its message. */
  readonly endedBy: string | undefined
  /** When the failures of the present step began; undefined if its last attempt did not fail. */
  readonly failingSince: number | undefined
  /** The newest failed attempts, in order. */
  readonly failures: readonly FailedAttempt[]
  readonly steps: readonly Step[]
  /** The messages of the reply. Empty until the step `deliver` begins. */
  readonly posts: readonly Post[]
}

/** A claimed job. Its times are by the clock of the store. */
export type ClaimedJob = Job & {
  /** A random number, new with each claim. A report must contain it, and a report with an old fence is refused. */
  readonly fence: number
  /** Whether a flow decided when the job starts. */
  readonly hasFlow: boolean
  /** The fence of the previous claim, if its lease expired and nobody claimed the job in between. */
  readonly lapsedFence: number | undefined
  /** For how long the present step has been failing; undefined if its last attempt did not fail. */
  readonly failingForMs: number | undefined
  /** How long after its due time the job was claimed, for example because no gateway ran or the job was paused. */
  readonly overdueForMs: number
}

/** A system event: one line that waits in a session for its next turn. It is stored plain; the prompt adds the boundary. */
export type SystemEvent = {
  agentId: string
  sessionKey: string
  text: string
  /** The sender of the delivery; the hook if the sender is not known. */
  source: string
  trusted: boolean
  /** True if the sender asked for a turn at once, and not for the next regular one. */
  wakes: boolean
  at: number
  deliveryId: string | undefined
  consumedAt: number | undefined
}

export type Message = { role: 'system' | 'user' | 'assistant'; text: string; runId: string; at: number }

/** Where a reply went. */
export type Recipient = { readonly channel: ChannelName; readonly to: string | undefined }

export type Session = {
  agentId: string
  sessionKey: string
  updatedAt: number
  /** The target of the channel `last` for the agent: the last recipient of its main session. It is stored with that session only. */
  recipient: Recipient | undefined
}
