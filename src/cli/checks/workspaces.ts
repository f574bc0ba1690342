// Whether what an operator wrote for an agent reaches it: AGENTS.md and HEARTBEAT.md of its workspace.
import { toAgent, toAgentIds } from '../../effects/agents.ts'
import { readWorkspaceFile } from '../../effects/workspace.ts'
import type { Config } from '../../model/config.ts'
import type { Context } from '../terminal/context.ts'
import type { Finding } from './findings.ts'

export async function checkWorkspaces({ dir }: Context, config: Config): Promise<Finding[]> {
  const folders = [...new Set(toAgentIds(config).map((id) => toAgent(config, id, dir).workspace))]
  const looked = await Promise.all(
    folders.flatMap((folder) => [readWorkspaceFile(folder, 'AGENTS.md'), readWorkspaceFile(folder, 'HEARTBEAT.md')]),
  )
  const warnings = looked.flatMap(({ refused }): Finding[] =>
    refused === undefined ? [] : [{ name: 'workspaces', ok: false, severity: 'warning', detail: refused }],
  )
  if (warnings.length > 0) return warnings
  const count = looked.filter(({ text }) => text !== undefined).length
  return [{ name: 'workspaces', ok: true, detail: `${count} files AGENTS.md and HEARTBEAT.md are read` }]
}
