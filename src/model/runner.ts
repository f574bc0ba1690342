// What performs an agent turn. A runner is handed a finished prompt and gives back what came of it; retries, timeouts and records are the worker's.
import type { AgentAction, Thinking } from './action.ts'
import type { Probe } from './channel.ts'
import type { Message, Usage } from './job.ts'
import type { JsonValue } from '../base/json.ts'

export type RunRequest = {
  readonly runId: string
  /** 1 on the first try of a run. */
  readonly attempt: number
  readonly agentId: string
  readonly sessionKey: string
  /** `<provider>/<model>`; undefined: neither the action nor the agent names one. */
  readonly model: string | undefined
  readonly thinking: Thinking | undefined
  /** What the agent is told about itself: its configuration and the AGENTS.md of its workspace. */
  readonly system: string | undefined
  /** Working directory of the agent, absolute and existing; undefined: it has none. */
  readonly workspace: string | undefined
  /** Earlier messages of a persistent session, oldest first; empty for an isolated run. */
  readonly history: readonly Message[]
  /** What this runner kept of the session at its last turn (`RunResult.state`); undefined at the first, and for an isolated run. */
  readonly state: JsonValue | undefined
  /** What the agent reads: the operator's instructions, and the outside text inside its boundary. */
  readonly prompt: string
  /** The outside text alone, to be shown to people. Without the boundary around it, it must never reach a model. */
  readonly message: string
  /** The action of a hook run, for a runner that hands the delivery on as well; undefined for a heartbeat. */
  readonly action: AgentAction | undefined
  /** When `io.signal` will end the run, in milliseconds since the epoch. */
  readonly deadline: number
}

export type RunIO = {
  /** Ends at the deadline, at a shutdown, or when the job is no longer ours. A run that ignores it is left behind. */
  readonly signal: AbortSignal
  /** One line for the operator: no payload, no secret. */
  readonly log: (message: string) => void
}

/**
 * `detail` is one sentence for the operator; `quotes`: it quotes outside text, so no log shows it. An `error` that is not
 * `retryable` ends the job. `unavailable`: nothing was done, because the other side was not reached, limits the rate or is
 * overloaded; the run waits for it. `forwarded`: another gateway performs the turn and delivers its reply; `id` is its id.
 * `too-long`: the model takes no prompt and history of this length; the run is asked for again with less of what can be left
 * out, where there is any.
 */
export type RunResult =
  | {
      readonly status: 'ok'
      readonly text: string
      readonly simulated?: boolean
      /** Which model answered, where that is known. */
      readonly model?: string
      readonly usage?: Usage
      /** Kept with a persistent session and handed in at its next turn: a session id of a command, say. */
      readonly state?: JsonValue
    }
  | { readonly status: 'forwarded'; readonly id: string; readonly detail: string }
  | ({ readonly detail: string; readonly quotes?: boolean } & (
      | { readonly status: 'error'; readonly retryable: boolean; readonly retryAfterMs?: number }
      | { readonly status: 'unavailable'; readonly retryAfterMs?: number }
      | { readonly status: 'timeout' | 'too-long' }
    ))

export interface Runner {
  readonly id: string
  /** A model's failure is a result; what is thrown counts as a failure that may pass. */
  run(request: RunRequest, io: RunIO): Promise<RunResult>
  /** Asks whether a turn could be run, without asking a model for anything that costs. */
  probe?(signal: AbortSignal): Promise<Probe>
}

export type RunFailure = Exclude<RunResult, { status: 'ok' | 'forwarded' }>

/** Another try would not help. */
export function permanentFailure(detail: string): RunFailure {
  return { status: 'error', retryable: false, detail }
}

/** It may pass; `retryAfterMs` where the other side says when. */
export function retryableFailure(detail: string, wait: { readonly retryAfterMs?: number } = {}): RunFailure {
  return { status: 'error', retryable: true, detail, ...wait }
}

/** Nothing was done, and the other side may come back; `retryAfterMs` if it says when. */
export function unavailableFailure(detail: string, wait: { readonly retryAfterMs?: number } = {}): RunFailure {
  return { status: 'unavailable', detail, ...wait }
}
