// Whether the runners and the channels can be reached and accept their credentials. Sends no message and calls no model.
import { toAgent, toAgentIds } from '../../effects/agents.ts'
import { withDeadline } from '../../base/time.ts'
import { createRunnersAndChannels } from '../../effects/runners-and-channels.ts'
import { readWorkspaceFile } from '../../effects/workspace.ts'
import type { Assembled } from '../../live/assemble.ts'
import type { Probe } from '../../model/channel.ts'
import type { Config } from '../../model/config.ts'
import { exitCodes } from '../../model/problem.ts'
import type { Context } from '../terminal/context.ts'
import { type Finding, toFailed } from './findings.ts'
import { toCut } from '../terminal/print.ts'

const probeMs = 10_000

type Probed = { readonly probe?: (signal: AbortSignal) => Promise<Probe> }

export async function checkOutlets(
  { dir }: Context,
  config: Config,
  { env, assembling }: { env: Context['env']; assembling: Promise<Assembled> },
): Promise<Finding[]> {
  const own = await assembling.then(
    ({ channels }) => channels,
    // checkMappings reports it
    () => [],
  )
  const { runner, channels } = createRunnersAndChannels({ write: () => {}, env })(config, own)
  const agents = toAgentIds(config).map((id) => toAgent(config, id, dir))
  const names = [...new Set(agents.map((agent) => agent.runner))]
  return await Promise.all([
    ...names.map((name) => {
      if (name === 'echo') return toEchoFinding()
      return probe(`runner-${name}`, runner(name) ?? {})
    }),
    ...[...channels].map(([name, channel]) => probe(`channel-${name}`, channel)),
  ])
}

function toEchoFinding(): Finding {
  const detail = 'no model is configured, so a run calls no model. Set agents.defaults.model and models.providers.'
  return { name: 'runner-echo', ok: false, severity: 'warning', detail }
}

async function probe(name: string, { probe: ask }: Probed): Promise<Finding> {
  if (ask === undefined) return { name, ok: true, detail: 'cannot be checked without sending something' }
  const outer = new AbortController().signal
  const ended = await withDeadline({ outer, ms: probeMs }, ask).catch(
    (thrown: unknown): { kind: 'finished'; value: Probe } => ({
      kind: 'finished',
      value: { ok: false, detail: thrown instanceof Error ? thrown.name : 'it failed' },
    }),
  )
  if (ended.kind !== 'finished') return toFailed(name, `no answer in ${probeMs / 1_000} s`, exitCodes.unavailable)
  const { ok, detail } = ended.value
  const shown = toCut(detail, 500)
  return ok ? { name, ok, detail: shown } : toFailed(name, shown, exitCodes.unavailable)
}

/** Whether AGENTS.md and HEARTBEAT.md of each workspace can be read. */
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
  return [{ name: 'workspaces', ok: true, detail: `files AGENTS.md and HEARTBEAT.md that runs read: ${count}` }]
}
