// The step `run`: one agent turn, its prompt and its time limit.
import type { ClaimedJob } from '../model/job.ts'
import type { RunResult } from '../model/runner.ts'
import { withDeadline } from './deadline.ts'
import type { StepOutcome, StepTools } from './outcome.ts'
import { type AgentPlan, buildPrompt } from './prompt.ts'

/** Messages of a persistent session that a run is given: the newest. */
const historyLimit = 200

/** Prompt and reply go into the transcript together with the step. */
export async function runTurn(
  planned: AgentPlan,
  job: ClaimedJob,
  tools: StepTools,
  signal: AbortSignal,
): Promise<StepOutcome> {
  const { action, agentId, sessionKey } = planned
  const { runner, store, clock, note } = tools
  const isolated = planned.sessionMode === 'isolated'
  const history = isolated ? [] : await store.messages({ agentId, sessionKey, limit: historyLimit })
  const prompt = buildPrompt({ planned, newBoundaryId: tools.newBoundaryId })
  const seconds = action.timeoutSeconds ?? tools.timeoutSeconds
  const ms = Math.ceil(seconds * 1_000)
  const request = {
    runId: job.id,
    attempt: job.attempts + 1,
    agentId,
    sessionKey,
    model: action.model,
    thinking: action.thinking,
    history,
    prompt,
    message: action.message,
    deadline: clock() + ms,
  }
  const ended = await withDeadline({ outer: signal, ms }, (limit) => runner.run(request, { signal: limit, log: note }))
  if (ended.kind === 'aborted') return ended
  if (ended.kind === 'timeout') {
    return { kind: 'permanent', status: 'timeout', detail: `The run did not end in ${seconds} s.` }
  }
  return toRunOutcome(ended.value, prompt, runner.id)
}

function toRunOutcome(result: RunResult, prompt: string, runnerId: string): StepOutcome {
  const { status } = result
  switch (status) {
    case 'ok':
      return {
        kind: 'recorded',
        step: {
          state: 'done',
          detail: result.simulated === true ? `simulated by ${runnerId}: no model was asked` : `by ${runnerId}`,
          result: result.text,
        },
        messages: [
          { role: 'user', text: prompt },
          { role: 'assistant', text: result.text },
        ],
      }
    case 'rate-limited':
      return { kind: 'rate-limited', detail: result.detail, retryAfterMs: result.retryAfterMs }
    case 'timeout':
      return { kind: 'permanent', status, detail: result.detail }
    case 'error':
      return result.retryable
        ? { kind: 'transient', detail: result.detail }
        : { kind: 'permanent', status, detail: result.detail }
  }
}
