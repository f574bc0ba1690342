// Whether the runners, the channels and the sources of plugins can be reached and accept their credentials. Sends no message, and calls a model only on request.
import { type Agent, toAgent, listAgentIds } from '../../gateway/jobs/agents.ts'
import { toErrorName } from '../../base/exceptions.ts'
import { withDeadline } from '../../base/time.ts'
import { createRunnersAndChannels } from '../../gateway/jobs/runners-and-channels.ts'
import { listWithSection } from '../../plugins/sources/index.ts'
import { probeSource } from '../../plugins/sources/shared/own.ts'
import { readWorkspaceFile } from '../../plugins/runners/shared/workspace.ts'
import type { AssembledParts } from '../../gateway/reload/assemble.ts'
import type { Channel, Probe } from '../../model/channel.ts'
import type { Runner, RunnerState, RunResult } from '../../model/runner.ts'
import type { OwnSource } from '../../model/source.ts'
import type { Config } from '../../model/config/config.ts'
import { createSecretMask, listConfigSecrets } from '../../model/config/secrets.ts'
import { exitCodes } from '../../core/model/problem.ts'
import { createRunnerState } from '../../store/runner-state.ts'
import { readStore } from '../gateway/stored.ts'
import type { Context } from '../terminal/context.ts'
import { type CheckFinding, buildFailure } from './findings.ts'
import { cutLine } from '../terminal/print.ts'

const probeMs = 10_000

type Probeable = { readonly probe?: (signal: AbortSignal) => Promise<Probe> }

export async function checkOtherSides(
  context: Context,
  config: Config,
  { env, assembling, isAsking }: { env: Context['env']; assembling: Promise<AssembledParts>; isAsking: boolean },
): Promise<CheckFinding[]> {
  const own = await assembling.then(
    (parts) => parts.own,
    // `checkMappings` reports the failure
    () => undefined,
  )
  const { dir } = context
  const openState = (id: string) => openStoredState(context, id)
  const { runner, channels } = createRunnersAndChannels({ write: () => {}, env, openState })(config, own)
  const agents = listAgentIds(config).map((id) => toAgent(config, id, dir))
  const names = [...new Set(agents.map((agent) => agent.runner))]
  const hide = createSecretMask(listConfigSecrets(config, []), '***')
  return await Promise.all([
    ...(own?.sources ?? []).map((source) => probe(`source-${source.name}`, probeSource(source, { dir, hide }))),
    ...listBuiltInSources(config).flatMap((source) => {
      const parts = probeSource(source, { dir, hide })
      return parts.probe === undefined ? [] : [probe(`source-${source.name}`, parts)]
    }),
    ...names.map((name) => {
      if (name === 'echo') return buildEchoFinding()
      return probe(`runner-${name}`, runner(name) ?? {})
    }),
    ...(isAsking ? chooseAgentsToAsk(agents).map((agent) => askModel(agent, runner('ai'))) : []),
    ...[...channels].map(async ([name, channel]) => {
      const finding = await probe(`channel-${name}`, channel)
      const unknown = describeUnknownOutcome(channel)
      return unknown === undefined || !finding.ok
        ? finding
        : { ...finding, detail: `${finding.detail.replace(/\.$/, '')}. ${unknown}` }
    }),
  ])
}

/** The durable values of a runner as the gateway has stored them. Nothing is written. */
function openStoredState(context: Context, id: string): RunnerState {
  const read = <Found>(empty: Found, work: (state: RunnerState) => Promise<Found>) =>
    readStore(context, empty, ({ cursor, cursors }) => {
      const store = { cursor, cursors, appendAll: refuseWrite }
      return work(createRunnerState({ store, id, clock: Date.now }))
    })
  return {
    read: (key) => read(undefined, (state) => state.read(key)),
    list: (prefix) => read([], (state) => state.list(prefix)),
    write: refuseWrite,
  }
}

async function refuseWrite(): Promise<never> {
  throw new Error('It is only asked whether it works, so it stores nothing.')
}

/** The built-in sources that have a section and can be asked. */
function listBuiltInSources(config: Config): OwnSource[] {
  return listWithSection(config.hooks).map(({ definition, options }): OwnSource => {
    const { name, label = name } = definition
    return { kind: 'sound', name, label, definition, options, hash: '', describeThrown: toErrorName }
  })
}

/** Says whether a message that may have arrived is sent again. Undefined for the console, and for channels that drop a repeated message. */
export function describeUnknownOutcome({
  id,
  dedupes,
  repeatsUnknown,
}: Pick<Channel, 'id' | 'dedupes' | 'repeatsUnknown'>): string | undefined {
  if (dedupes !== false || id === 'console') return undefined
  const key = `channels.${id.replace(/^own:/, 'own.')}.onUnknown`
  return repeatsUnknown === true
    ? `${key} is "repeat": a message that may have arrived is sent again, and may appear twice`
    : `${key} is "stop": a message that may have arrived is not sent again; "repeat" sends it again, and it may appear twice`
}

/** One agent for each model that the runner `ai` calls. */
function chooseAgentsToAsk(agents: readonly Agent[]): readonly Agent[] {
  const asking = agents.filter((agent) => agent.runner === 'ai' && agent.model !== undefined)
  return asking.filter(({ model }, index) => asking.findIndex((other) => other.model === model) === index)
}

const askMs = 60_000

/** Calls the model. Its reply may contain anything, so the reply is not shown. */
async function askModel({ id, model = '', thinking }: Agent, runner: Runner | undefined): Promise<CheckFinding> {
  const name = `model-${cutLine(model, 100)}`
  const notes: string[] = []
  const prompt = 'Answer with the word OK and nothing else.'
  const startedAt = Date.now()
  const request = {
    runId: 'doctor',
    attempt: 1,
    agentId: id,
    sessionKey: 'doctor',
    model,
    thinking,
    system: undefined,
    workspace: undefined,
    history: [],
    state: undefined,
    prompt,
    message: prompt,
    action: undefined,
    hops: 1,
    deadline: startedAt + askMs,
  }
  const signal = AbortSignal.timeout(askMs)
  const fail = (detail: string) => buildFailure(name, cutLine(detail, 500), exitCodes.unavailable)
  let result: RunResult | undefined
  try {
    result = await runner?.run(request, { signal, log: (note) => void notes.push(cutLine(note, 300)) })
  } catch (thrown) {
    return fail(toErrorName(thrown))
  }
  if (result?.status !== 'ok') return fail(result?.detail ?? 'it cannot be asked')
  const { usage } = result
  const tokens = usage === undefined ? '' : `, ${usage.inputTokens} tokens in, ${usage.outputTokens} out`
  const detail = `replied in ${Date.now() - startedAt} ms${tokens}`
  if (notes.length === 0) return { name, ok: true, detail }
  return { name, ok: false, severity: 'warning', detail: [detail, ...notes].join('\n') }
}

function buildEchoFinding(): CheckFinding {
  const detail = 'no model is configured, so a run calls no model. Set agents.defaults.model and models.providers.'
  return { name: 'runner-echo', ok: false, severity: 'warning', detail }
}

async function probe(name: string, { probe: ask }: Probeable): Promise<CheckFinding> {
  if (ask === undefined) return { name, ok: true, detail: 'cannot be checked without sending something' }
  const outer = new AbortController().signal
  const ended = await withDeadline({ outer, ms: probeMs }, ask).catch(
    (thrown: unknown): { kind: 'finished'; value: Probe } => ({
      kind: 'finished',
      value: { ok: false, detail: toErrorName(thrown) },
    }),
  )
  if (ended.kind !== 'finished') return buildFailure(name, `no answer in ${probeMs / 1_000} s`, exitCodes.unavailable)
  const { ok, detail } = ended.value
  const shown = cutLine(detail, 500)
  return ok ? { name, ok, detail: shown } : buildFailure(name, shown, exitCodes.unavailable)
}

/** Whether AGENTS.md and HEARTBEAT.md of each workspace can be read. */
export async function checkWorkspaces({ dir }: Context, config: Config): Promise<CheckFinding[]> {
  const folders = [...new Set(listAgentIds(config).map((id) => toAgent(config, id, dir).workspace))]
  const files = await Promise.all(
    folders.flatMap((folder) => [readWorkspaceFile(folder, 'AGENTS.md'), readWorkspaceFile(folder, 'HEARTBEAT.md')]),
  )
  const warnings = files.flatMap(({ refused }): CheckFinding[] =>
    refused === undefined ? [] : [{ name: 'workspaces', ok: false, severity: 'warning', detail: refused }],
  )
  if (warnings.length > 0) return warnings
  const count = files.filter(({ text }) => text !== undefined).length
  return [
    { name: 'workspaces', ok: true, detail: `${count} of ${files.length} files AGENTS.md and HEARTBEAT.md exist` },
  ]
}
