// The default request to a runner in tests.
import type { RunRequest } from '../../src/model/runner.ts'

export function toRunRequest(request: Partial<RunRequest> = {}): RunRequest {
  return {
    runId: 'run-1',
    attempt: 1,
    agentId: 'main',
    sessionKey: 'hook:a',
    model: undefined,
    thinking: undefined,
    system: undefined,
    workspace: undefined,
    history: [],
    state: undefined,
    prompt: 'Look at this',
    message: 'Look at this',
    action: undefined,
    hops: 1,
    deadline: 0,
    ...request,
  }
}
