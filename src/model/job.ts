import type { PlannedAction } from './action.ts'

/**
 * ```
 * queued ──claim──▶ running ──▶ done
 *   ▲                 │
 *   └── retry, lease ─┴──────▶ dead ──`hookloom retry`──▶ queued
 * ```
 */
export const jobStates = ['queued', 'running', 'done', 'dead'] as const
export type JobState = (typeof jobStates)[number]

/** The effects of a job, in the order of its plan. */
export const stepNames = ['event', 'run', 'summary', 'deliver', 'wake'] as const
export type StepName = (typeof stepNames)[number]

/** One recorded effect. What is recorded is never done again. */
export type Step = {
  name: StepName
  state: 'done' | 'skipped'
  at: number
  /** A sentence for the operator: where it went, or why it was skipped. */
  detail?: string
  /** What a later step or a retry needs: the reply of a run, the provider's id of a message. */
  result?: string
}

/** An accepted action on its way to its effects. `id` is the run id of an agent action. */
export type Job = {
  readonly id: string
  readonly deliveryId: string
  readonly planned: PlannedAction
  readonly state: JobState
  readonly attempts: number
  readonly runAt: number
  readonly lockedUntil: number | undefined
  readonly lastError: string | undefined
  readonly steps: readonly Step[]
}

/** A claimed job. Whoever reports about it shows the fence: a stale one is refused. */
export type ClaimedJob = Job & { readonly fence: number }

/** A system event: one line that waits in a session for its next turn. Stored plain; the boundary comes with the prompt. */
export type SystemEvent = {
  agentId: string
  sessionKey: string
  text: string
  /** The hook that it came by, or the sender. */
  source: string
  trusted: boolean
  at: number
  deliveryId: string
  consumedAt: number | undefined
}

export type Message = { role: 'system' | 'user' | 'assistant'; text: string; runId: string; at: number }

export type Session = { agentId: string; sessionKey: string; updatedAt: number }
