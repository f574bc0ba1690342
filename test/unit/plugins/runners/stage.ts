// A runner of a section, as the gateway makes it.
import type { RunnerDefinition } from '../../../../src/define.ts'
import { ModelsConfig } from '../../../../src/model/config/agents.ts'
import type { Runner, RunnerHost } from '../../../../src/model/runner.ts'
import { fetchWithoutTimeout } from '../../../../src/plugins/runners/shared/ai/fetch.ts'

/** `options`: as the schema of the definition returns them. */
export function createRunner<Options>(
  definition: RunnerDefinition<Options>,
  options: Options,
  host: Partial<RunnerHost> = {},
): Runner {
  const given: RunnerHost = {
    id: definition.name,
    models: ModelsConfig.parse({}),
    env: {},
    fetch: fetchWithoutTimeout,
    clock: Date.now,
    ...host,
  }
  return { ...definition.create(options, given), id: given.id }
}
