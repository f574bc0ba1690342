// What a turn reads of its session, and what its commit writes there: the messages, the state of the runner, and how much the session keeps.
import type { Heartbeat } from '../../core/model/action.ts'
import { type HistoryConfig, mostKept } from '../../model/config/agents.ts'
import type { Message } from '../../model/job.ts'
import type { JsonValue } from '../../base/json.ts'
import type { Runner } from '../../model/runner.ts'
import type { Store } from '../../store/store.ts'
import type { Agent } from './agents.ts'
import type { AgentPlan } from './plan.ts'
import type { StepRecord } from './retry.ts'

/** What a command was told and answered in its own session so far. */
type Told = { readonly messages: number; readonly bytes: number }

/** The state that a runner keeps for a session, with the id of the runner, because no other runner can read the state. */
type StoredRunnerState = { readonly runner: string; readonly state: JsonValue; readonly told?: Told }

/**
 * `history` has one message more than the limits allow, if there is one. `told`: undefined if the runner begins a session of its own. `isEnded`:
 * the runner's own session became longer than the limits, so a new one begins.
 */
export type TurnSession = {
  readonly isPersistent: boolean
  readonly history: readonly Message[]
  readonly limits: HistoryConfig
  readonly state: JsonValue | undefined
  readonly told: Told | undefined
  readonly isEnded: boolean
}

/**
 * A command keeps a session of its own. It can only end it as a whole, so the limit is that of persistent sessions, even if heartbeats continue it.
 */
export async function readSession(
  store: Pick<Store, 'messages' | 'session'>,
  planned: AgentPlan | Heartbeat,
  { agent, runner }: { readonly agent: Agent; readonly runner: Runner },
): Promise<TurnSession> {
  const { kind, agentId, sessionKey } = planned
  const isPersistent = kind === 'heartbeat' || planned.sessionMode === 'persistent'
  const limits = kind === 'heartbeat' ? agent.heartbeat.history : agent.history
  const none = { isPersistent, history: [], limits, state: undefined, told: undefined, isEnded: false }
  if (!isPersistent) return none
  const [history, session] = await Promise.all([
    store.messages({ agentId, sessionKey, limit: limits.messages + 1 }),
    store.session({ agentId, sessionKey }),
  ])
  // as: only `buildSessionRecord` writes this state
  const kept = session?.runnerState as StoredRunnerState | undefined
  if (kept?.runner !== runner.id) return { ...none, history }
  const { state, told = { messages: 0, bytes: 0 } } = kept
  const isEnded = told.messages >= agent.history.messages || told.bytes >= agent.history.bytes
  return isEnded ? { ...none, history, isEnded } : { ...none, history, state, told }
}

/** The part of the record that belongs to the session. `state`: what the runner gives to the next turn. */
export function buildSessionRecord(
  { prompt, text, state }: { readonly prompt: string; readonly text: string; readonly state: JsonValue | undefined },
  { session: { isPersistent, told }, runner }: { readonly session: TurnSession; readonly runner: Runner },
): Pick<StepRecord, 'messages' | 'runnerState' | 'keeps'> {
  const messages = [
    { role: 'user', text: prompt },
    { role: 'assistant', text },
  ] as const
  if (!isPersistent) return { messages }
  const keeps = mostKept
  if (state === undefined) return { messages, keeps }
  const bytes = Buffer.byteLength(prompt) + Buffer.byteLength(text)
  const now: Told = { messages: (told?.messages ?? 0) + 2, bytes: (told?.bytes ?? 0) + bytes }
  const runnerState: StoredRunnerState = { runner: runner.id, state, told: now }
  return { messages, keeps, runnerState }
}
