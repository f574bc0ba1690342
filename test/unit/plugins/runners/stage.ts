// A runner of a section, as the gateway makes it.
import { silentLog } from '../../../../src/base/log.ts'
import type { RunnerDefinition } from '../../../../src/define.ts'
import { ModelsConfig } from '../../../../src/model/config/agents.ts'
import type { Runner, RunnerHost } from '../../../../src/model/runner.ts'
import { fetchPublic, fetchWithoutTimeout } from '../../../../src/plugins/runners/shared/ai/fetch.ts'

/** `options`: as the schema of the definition returns them. */
export function createRunner<Options>(
  definition: RunnerDefinition<Options>,
  options: Options,
  host: Partial<RunnerHost> = {},
): Runner {
  const given = createHost({ id: definition.name, ...host })
  return { ...definition.create(options, given), id: given.id }
}

/** What a gateway gives to a runner, without a store. */
export function createHost(host: Partial<RunnerHost> & Pick<RunnerHost, 'id'>): RunnerHost {
  const refuse = async () => {
    throw new Error('There is no store here.')
  }
  return {
    models: ModelsConfig.parse({}),
    agents: ['main'],
    env: {},
    fetch: fetchWithoutTimeout,
    fetchPublic,
    state: { read: refuse, list: refuse, write: refuse },
    log: silentLog,
    audit() {},
    clock: Date.now,
    ...host,
  }
}
