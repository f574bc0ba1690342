// Who runs a turn: what the configuration says of one agent, over what it says of all.
import { resolve } from 'node:path'
import type { Thinking } from '../model/action.ts'
import type { HeartbeatConfig } from '../model/agents-config.ts'
import { type Config, toDefaultAgentId } from '../model/config.ts'
import { toModelName } from '../model/permission.ts'

export type Agent = {
  readonly id: string
  /** Name of the runner of its turns. */
  readonly runner: string
  /** `<provider>/<model>`; undefined: none is configured. */
  readonly model: string | undefined
  readonly system: string | undefined
  readonly thinking: Thinking | undefined
  /** Limit of a turn that names none. */
  readonly timeoutSeconds: number
  /** Absolute; undefined where the id is no name of a folder and none is configured. */
  readonly workspace: string | undefined
  readonly heartbeat: HeartbeatConfig
}

/** An agent that the configuration does not know (any more) is the default agent under its own id, so that its sessions stay apart. */
export function toAgent(config: Config, id: string, dir: string): Agent {
  const { defaults, list } = config.agents
  const own = list.find((agent) => agent.id === id)
  const model = own?.model ?? defaults.model
  const workspace = own?.workspace ?? defaults.workspace ?? toFolder(id)
  return {
    id,
    model: model === undefined ? undefined : toModelName(model, config.models.aliases),
    runner: own?.runner ?? defaults.runner ?? (model === undefined ? 'echo' : 'ai'),
    system: own?.system ?? defaults.system,
    thinking: own?.thinking ?? defaults.thinking,
    timeoutSeconds: own?.timeoutSeconds ?? defaults.timeoutSeconds,
    workspace: workspace === undefined ? undefined : resolve(dir, workspace),
    heartbeat: toHeartbeat(config, id),
  }
}

export function toHeartbeat({ agents }: Pick<Config, 'agents'>, id: string): HeartbeatConfig {
  return agents.list.find((agent) => agent.id === id)?.heartbeat ?? agents.defaults.heartbeat
}

/** Every agent that can be run: those of the list, else the one that is always there. */
export function toAgentIds(config: Config): readonly string[] {
  const { list } = config.agents
  return list.length === 0 ? [toDefaultAgentId(config)] : list.map(({ id }) => id)
}

function toFolder(id: string): string | undefined {
  return /^[\w-][\w.-]*$/.test(id) ? `agents/${id}` : undefined
}
