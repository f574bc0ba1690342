// What performs an agent turn. A runner is handed a finished prompt and gives back what came of it; retries, timeouts and records are the worker's.
import type { AgentAction } from './action.ts'
import type { Message } from './job.ts'

export type RunRequest = {
  readonly runId: string
  /** 1 on the first try of a run. */
  readonly attempt: number
  readonly agentId: string
  readonly sessionKey: string
  /** `<provider>/<model>`; undefined: the agent's own. */
  readonly model: string | undefined
  readonly thinking: AgentAction['thinking']
  /** Earlier messages of a persistent session, oldest first; empty for an isolated run. */
  readonly history: readonly Message[]
  /** What the agent reads: the operator's instructions, and the outside text inside its boundary. */
  readonly prompt: string
  /** The outside text alone, to be shown to people. Without the boundary around it, it must never reach a model. */
  readonly message: string
  /** When `io.signal` will end the run, in milliseconds since the epoch. */
  readonly deadline: number
}

export type RunIO = {
  /** Ends at the deadline, at a shutdown, or when the job is no longer ours. A run that ignores it is left behind. */
  readonly signal: AbortSignal
  /** One line for the operator: no payload, no secret. */
  readonly log: (message: string) => void
}

/** `detail` is one sentence for the operator. An `error` that is not `retryable` ends the job. */
export type RunResult =
  | { readonly status: 'ok'; readonly text: string; readonly simulated?: boolean }
  | { readonly status: 'error'; readonly retryable: boolean; readonly detail: string }
  | { readonly status: 'rate-limited'; readonly retryAfterMs?: number; readonly detail: string }
  | { readonly status: 'timeout'; readonly detail: string }

export interface Runner {
  readonly id: string
  /** A model's failure is a result; what is thrown counts as a failure that may pass. */
  run(request: RunRequest, io: RunIO): Promise<RunResult>
}
