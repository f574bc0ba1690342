import type { ChannelName, Planned } from './action.ts'
import type { JobState } from './api-types.ts'

/**
 * ```
 * queued ──claim──▶ running ──▶ done
 *   ▲                 │
 *   └── retry, lease ─┴──────▶ dead ──`hookloom retry`──▶ queued
 *
 * queued, dead ──`hookloom drop`, or retention──▶ dropped
 * ```
 */
export const jobStates = ['queued', 'running', 'done', 'dead', 'dropped'] as const satisfies readonly JobState[]

/** The effects of a job, in the order of its plan. */
export type StepName = 'event' | 'run' | 'summary' | 'wake' | 'deliver'

/** Tokens of a turn, summed over its model calls. */
export type Usage = {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cachedInputTokens?: number
  readonly reasoningTokens?: number
  readonly costUsd?: number
}

/**
 * One recorded effect. A recorded effect is never repeated. `forwarded`: another gateway performs the run and delivers its reply.
 */
export type Step = {
  name: StepName
  state: 'done' | 'skipped' | 'forwarded'
  at: number
  /** A sentence for the operator: the destination of the effect, or why it was skipped. */
  detail?: string
  /** The value that a later step or a retry needs: the reply of a run, the provider's id of a message. */
  result?: string
  /** The model that answered a run, and its cost. */
  model?: string
  usage?: Usage
}

const postStates = ['waiting', 'sending', 'sent', 'unknown'] as const

/**
 * One message of a reply, which may be split into several. All are stored, with route and nonce, before the first is sent. Each is marked
 * before it goes to the channel, and again when the provider has accepted it. `sending` in an attempt that has ended: the result was not
 * recorded. `unknown`: it may have arrived, so it is not sent again.
 */
export type Post = {
  readonly part: number
  readonly channel: ChannelName
  readonly to: string | undefined
  readonly nonce: string
  readonly text: string
  readonly state: (typeof postStates)[number]
  readonly at: number
  /** The provider's id. */
  readonly id?: string
  /** An attempt ended before its result was recorded, and the message was sent again through a channel that does not drop repeats. */
  readonly mayBeTwice?: true
}

/** `unsent`: the message waited in a run that is now dead or dropped. */
export type ShownPostState = Post['state'] | 'unsent'

/** The state to show to people: in a dead or dropped run, no message waits or is being sent. */
export function toShownPostState({ state, mayBeTwice }: Post, job: Pick<Job, 'state'>): ShownPostState {
  if ((job.state !== 'dead' && job.state !== 'dropped') || state === 'sent') return state
  return state === 'waiting' && mayBeTwice !== true ? 'unsent' : 'unknown'
}

/** An accepted action on its way to its effects. `id` is the run id of an agent action. */
export type Job = {
  readonly id: string
  /** Undefined for a heartbeat or an alert, because no single delivery caused it. */
  readonly deliveryId: string | undefined
  readonly planned: Planned
  readonly state: JobState
  readonly attempts: number
  readonly createdAt: number
  readonly runAt: number
  readonly lockedUntil: number | undefined
  readonly lastError: string | undefined
  /** When the failures of the present step began; undefined if its last attempt did not fail. */
  readonly failingSince: number | undefined
  readonly steps: readonly Step[]
  /** Empty until the step `deliver` begins. */
  readonly posts: readonly Post[]
}

/** A claimed job, by the clock of the store. */
export type ClaimedJob = Job & {
  /** A random number, new with each claim. A report must contain it, and a report with an old fence is refused. */
  readonly fence: number
  /** The fence of the previous claim, if its lease expired and nobody claimed the job in between. */
  readonly lapsed: number | undefined
  /** For how long the present step has been failing; undefined if its last attempt did not fail. */
  readonly failingForMs: number | undefined
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
  /** The target of the channel `last` for the agent: the last recipient of its main session. Stored with that session only. */
  recipient: Recipient | undefined
}
