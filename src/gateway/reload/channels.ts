// Loads channels in code from hooks/channels for the sections of channels.own. The posts of a channel that never loaded wait.
import { listNames, toExpectedFile } from './definition-files.ts'
import { type Definition, type Definitions, loadNamedModules } from './definitions.ts'
import type { OwnChannel } from '../../model/channel.ts'
import type { Config } from '../../model/config/config.ts'
import { safeParseChannel } from '../../model/definitions.ts'
import { findNearest } from '../../base/text.ts'
import { Problem, toProblemRecord } from '../../core/model/problem.ts'
import { type ModuleReport, chooseVersion } from '../../core/reload/gate.ts'
import { readOptions } from './plugins.ts'

export type LoadedChannels = { readonly channels: readonly OwnChannel[]; readonly reports: readonly ModuleReport[] }

/** Throws `config-invalid` for invalid options. `serving` has the last good version of each channel, in case the new one is broken. */
export async function loadChannels(
  { dir, config, serving }: { dir: string; config: Config; serving: readonly OwnChannel[] },
  definitions: Definitions,
): Promise<LoadedChannels> {
  const names = Object.keys(config.channels.own).toSorted()
  const loaded = await loadNamedModules(definitions, { dir, kind: 'channel', names })
  const known = await listNames(dir, 'channel')
  const chosen = names.map((name, index) => {
    const module = loaded[index]?.label ?? toExpectedFile('channel', name)
    const definition = loaded[index]?.definition ?? buildMissingProblem(module, name, known)
    return chooseVersion(
      module,
      checkChannel({ name, module, section: config.channels.own[name] ?? {} }, definition),
      serving.find((channel) => channel.id === `own:${name}`),
    )
  })
  return { channels: chosen.map(({ taken }) => taken), reports: chosen.map(({ report }) => report) }
}

function buildMissingProblem(module: string, name: string, known: readonly string[]): Problem {
  const near = findNearest(name, known)
  const hint = near === undefined ? 'Create it, or remove the section.' : `Did you mean "${near}"?`
  return new Problem('channel-failed', `${module} does not exist, and channels.own.${name} needs it. ${hint}`)
}

type Wanted = { readonly name: string; readonly module: string; readonly section: object }

function checkChannel({ name, module, section }: Wanted, definition: Definition | Problem): OwnChannel {
  const about = { id: `own:${name}`, label: `hooks/channels/${name}` }
  if (definition instanceof Problem) return buildBrokenChannel(about, definition.message, definition.frame)
  const { value, hash, describeThrown } = definition
  const parsed = safeParseChannel(value)
  if (!parsed.ok) {
    const frame = parsed.faults.map((fault) => `${module}: ${fault}.`).join('\n')
    return buildBrokenChannel(about, `${module} must export a channel by default: defineChannel({ … }).`, frame)
  }
  const given = removeGatewayKeys(section)
  const at = ['channels', 'own', name]
  const read = readOptions({ label: module, describeThrown }, { definition: parsed.value, given, at, section })
  if (read instanceof Problem) return buildBrokenChannel(about, read.message)
  return { kind: 'sound', ...about, definition: parsed.value, options: read.options, hash, describeThrown }
}

function buildBrokenChannel(about: { id: string; label: string }, detail: string, frame?: string): OwnChannel {
  const problem = new Problem('channel-failed', detail, frame === undefined ? {} : { frame })
  return { kind: 'broken', ...about, problem: toProblemRecord(problem) }
}

function removeGatewayKeys(section: object): object {
  return Object.fromEntries(Object.entries(section).filter(([key]) => key !== 'to' && key !== 'onUnknown'))
}
