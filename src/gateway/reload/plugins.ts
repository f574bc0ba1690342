// Loads the plugins that `plugins` names: packages of the config directory, and files below hooks/. A plugin that does not load leaves its
// last good version serving.
import { findPluginFile } from './definition-files.ts'
import type { Definition, Definitions } from './definitions.ts'
import { describeIssues, safeParsePlugin } from '../../model/definitions.ts'
import type { z } from 'zod'
import { builtInRunnerKinds, outboxNames } from '../config/keys.ts'
import type { OwnChannel } from '../../model/channel.ts'
import type { Recover } from '../../core/model/recover.ts'
import type { OutboxDefinition } from '../../model/outbox.ts'
import type { OwnRunner } from '../../model/runner.ts'
import { findChannelSection, listKnownChannels, readChannelKeys } from '../../model/config/channels.ts'
import type { Config } from '../../model/config/config.ts'
import type { SchemeRow, SenderDefinition } from '../../model/scheme.ts'
import { limitOutbox } from '../../plugins/outboxes/shared/own.ts'
import { createSenders, listSchemes, type SenderTable } from '../proofs/senders.ts'
import {
  type DefinitionByKind,
  type Found,
  listDefinitions,
  type LoadedPlugin,
  type PluginKind,
  type SoundPlugin,
} from '../../model/plugin.ts'
import { findNearest } from '../../base/text.ts'
import { Problem, toProblemRecord } from '../../core/model/problem.ts'
import { chooseVersion, type ModuleReport } from '../../core/reload/gate.ts'

export type LoadedPlugins = { readonly plugins: readonly LoadedPlugin[]; readonly reports: readonly ModuleReport[] }

/** The last good version of a plugin in `serving` is kept if the new one is broken. */
export async function loadPlugins(
  { dir, names, serving = [] }: { dir: string; names: readonly string[]; serving?: readonly LoadedPlugin[] },
  definitions: Definitions,
): Promise<LoadedPlugins> {
  const files = await Promise.all(names.map((name) => findPluginFile(dir, name)))
  const there = files.flatMap((file) => file ?? [])
  const loaded = await definitions.load(there)
  const chosen = names.map((name, index) => {
    const file = files[index]
    const found = file && loaded[there.indexOf(file)]
    const plugin = found === undefined ? buildMissingPlugin(name) : checkPlugin(name, file?.label ?? name, found)
    return chooseVersion(
      plugin.label,
      plugin,
      serving.find((other) => other.name === name),
    )
  })
  const plugins = chosen.map(({ taken }) => taken)
  checkClashes(plugins)
  return { plugins, reports: chosen.map(({ report }) => report) }
}

function buildMissingPlugin(name: string): LoadedPlugin {
  const next = name.startsWith('.')
    ? `Create hooks/${name.replace(/^\.\//, '')}`
    : `Run "npm install ${name}" in the config directory`
  return buildBrokenPlugin(name, name, `The plugin "${name}" does not exist. ${next}, or remove it from plugins.`)
}

function checkPlugin(name: string, label: string, found: Definition | Problem): LoadedPlugin {
  if (found instanceof Problem) return buildBrokenPlugin(name, label, found.message, found.frame)
  const { value, hash, describeThrown } = found
  const parsed = safeParsePlugin(value)
  if (parsed.ok) return { kind: 'sound', name, label, definitions: parsed.value, hash, describeThrown }
  const expected = 'must export by default what defineChannel or its like returns, or a list of that.'
  return buildBrokenPlugin(
    name,
    label,
    `${label} ${expected}`,
    parsed.faults.map((fault) => `${label}: ${fault}.`).join('\n'),
  )
}

function buildBrokenPlugin(name: string, label: string, detail: string, frame?: string): LoadedPlugin {
  const problem = new Problem('plugin-failed', detail, frame === undefined ? {} : { frame })
  return { kind: 'broken', name, label, problem: toProblemRecord(problem) }
}

/** Throws `config-invalid` if two plugins bring something of the same kind and name. */
function checkClashes(plugins: readonly LoadedPlugin[]): void {
  const owners = new Map<string, string>()
  for (const plugin of plugins) {
    if (plugin.kind === 'broken') continue
    for (const { kind, definition } of plugin.definitions) {
      const what = `${kind} "${definition.name}"`
      const other = owners.get(what)
      if (other !== undefined)
        throw new Problem(
          'config-invalid',
          `plugins: ${other} and ${plugin.label} both have the ${what}. Remove one of them.`,
        )
      owners.set(what, plugin.label)
    }
  }
}

/** The definitions of a kind. Throws `config-invalid` for one with the name of a built-in one. */
function takeDefinitions<Kind extends PluginKind>(
  plugins: readonly LoadedPlugin[],
  kind: Kind,
  builtIn: readonly string[],
): Found<Kind>[] {
  const found = listDefinitions(plugins, kind)
  const replaced = found.find(({ definition }) => builtIn.includes(definition.name))
  if (replaced === undefined) return found
  const { plugin, definition } = replaced
  throw new Problem(
    'config-invalid',
    `plugins: ${plugin.label} has the ${kind} "${definition.name}", which is built in.`,
  )
}

/**
 * The channels of plugins that have a section. Throws `config-invalid` for a section that no channel has, for invalid options, and for a channel
 * with the name of a built-in one. While a plugin does not load, its sections are channels whose messages wait.
 */
export function openPluginChannels(plugins: readonly LoadedPlugin[], { channels }: Config): OwnChannel[] {
  const builtIn = (listKnownChannels(channels) ?? []).map(({ name }) => name)
  const found = takeDefinitions(plugins, 'channel', builtIn)
  const { default: _, retry: __, own: ___, ...sections } = channels
  return Object.keys(sections)
    .filter((name) => !builtIn.includes(name))
    .map((name) => {
      const known = found.find(({ definition }) => definition.name === name)
      if (known !== undefined) return openChannel(known.plugin, known.definition, channels)
      const names = [...builtIn, ...found.map(({ definition }) => definition.name)]
      const broken = requireBrokenPlugin(plugins, { what: `channels.${name}`, word: name, names })
      return { kind: 'broken', id: name, label: broken.label, problem: broken.problem }
    })
}

/**
 * The senders of the package and of plugins. Throws `config-invalid` for a sender or a scheme with the name of another one. A plugin that does not
 * load brings none: requests with its schemes are refused so that their senders repeat them.
 */
export function openPluginSenders(plugins: readonly LoadedPlugin[], builtIn: SenderTable): SenderTable {
  const found = listDefinitions(plugins, 'sender')
  if (found.length === 0) return builtIn
  for (const { plugin, definition } of found) {
    const own = listSchemes(definition).find(({ id }) => builtIn.schemeNames.includes(id))
    const what =
      builtIn.find(definition.name) === undefined ? own && `scheme "${own.id}"` : `sender "${definition.name}"`
    if (what !== undefined)
      throw new Problem('config-invalid', `plugins: ${plugin.label} has the ${what}, which is built in.`)
  }
  const rows = found.map(({ plugin, definition }) => nameThrown(definition, plugin.describeThrown))
  return createSenders([...builtIn.rows, ...rows], found.map(({ plugin }) => plugin.hash).join())
}

/** The sender, whose code names an exception and its place. */
function nameThrown(sender: SenderDefinition, describeThrown: (thrown: unknown) => string): SenderDefinition {
  const name = <Row extends SchemeRow>(row: Row): Row => (row.kind === 'code' ? { ...row, describeThrown } : row)
  if (sender.scheme !== undefined) return { ...sender, scheme: name(sender.scheme) }
  return sender.schemes === undefined ? sender : { ...sender, schemes: sender.schemes.map(name) }
}

function openChannel(
  plugin: SoundPlugin,
  definition: DefinitionByKind['channel'],
  channels: Config['channels'],
): OwnChannel {
  const { name } = definition
  const { label, hash, describeThrown } = plugin
  const { to, onUnknown, timeoutMs, ...given } = readChannelKeys(channels, name)
  const read = readOptions(plugin, {
    definition,
    given,
    at: ['channels', name],
    section: findChannelSection(channels, name),
  })
  const about = { id: name, label }
  if (read instanceof Problem) return { kind: 'broken', ...about, problem: toProblemRecord(read) }
  return {
    kind: 'sound',
    ...about,
    definition,
    options: { ...Object(read.options), to, onUnknown, timeoutMs },
    hash,
    describeThrown,
  }
}

/**
 * The sections of `runners` whose kind comes from a plugin. Throws `config-invalid` for a kind that nothing has, and for invalid options. While a
 * plugin does not load, its sections are runners whose turns wait.
 */
export function openPluginRunners(plugins: readonly LoadedPlugin[], { runners }: Config): OwnRunner[] {
  const builtIn = builtInRunnerKinds
  const found = takeDefinitions(plugins, 'runner', builtIn)
  return Object.entries(runners).flatMap(([name, { kind, ...given }]): OwnRunner[] => {
    if (builtIn.includes(kind)) return []
    const known = found.find(({ definition }) => definition.name === kind)
    if (known === undefined) {
      const names = [...builtIn, ...found.map(({ definition }) => definition.name)]
      const broken = requireBrokenPlugin(plugins, {
        what: `runners.${name}.kind is "${kind}", which`,
        word: kind,
        names,
      })
      return [{ kind: 'broken', name, label: broken.label, problem: broken.problem }]
    }
    const { plugin, definition } = known
    const { label, describeThrown } = plugin
    const read = readOptions(plugin, { definition, given, at: ['runners', name], section: runners[name] })
    if (read instanceof Problem) return [{ kind: 'broken', name, label, problem: toProblemRecord(read) }]
    return [{ kind: 'sound', name, label, definition, options: read.options, describeThrown }]
  })
}

/**
 * The outboxes of plugins. Throws `config-invalid` for a sender of `recover` that nothing has, for invalid options, and for an outbox with the name
 * of a built-in one. While a plugin does not load, its senders are not asked.
 */
export function openPluginOutboxes(
  plugins: readonly LoadedPlugin[],
  mappings: readonly { readonly id: string; readonly recover?: Recover | undefined }[],
): OutboxDefinition[] {
  const found = takeDefinitions(plugins, 'outbox', outboxNames)
  for (const { id, recover } of mappings) {
    if (recover === undefined || outboxNames.includes(recover.sender)) continue
    const { sender, turnOn: _, ...given } = recover
    const known = found.find(({ definition }) => definition.name === sender)
    const what = `mapping "${id}": recover.sender: "${sender}"`
    const names = [...outboxNames, ...found.map(({ definition }) => definition.name)]
    if (known === undefined) requireBrokenPlugin(plugins, { what, word: sender, names })
    else {
      const { plugin, definition } = known
      const at = [`mapping "${id}": recover`]
      const read = readOptions(plugin, { definition, given, at, section: given })
      if (read instanceof Problem) throw new Problem('config-invalid', read.message)
    }
  }
  return found.map(({ plugin, definition }) => limitOutbox(definition, plugin))
}

type BrokenPlugin = Extract<LoadedPlugin, { kind: 'broken' }>

/**
 * The options that the schema of a definition returns; a Problem if the schema throws. Throws `config-invalid` for invalid options. `section`: the
 * section with the keys of the gateway, for messages.
 */
export function readOptions(
  { label, describeThrown }: Pick<SoundPlugin, 'label' | 'describeThrown'>,
  input: {
    readonly definition: { readonly options?: { safeParse(value: unknown): z.ZodSafeParseResult<unknown> } }
    readonly given: object
    readonly at: readonly string[]
    readonly section: object | undefined
  },
): { readonly options: unknown } | Problem {
  const { definition, given, at, section } = input
  let parsed: z.ZodSafeParseResult<unknown> | undefined
  try {
    parsed = definition.options?.safeParse(given)
  } catch (thrown) {
    return new Problem('plugin-failed', `${label}: the schema of its options threw ${describeThrown(thrown)}.`)
  }
  if (parsed?.success === false) {
    throw new Problem('config-invalid', `The options of ${at.join('.')} are invalid for ${label}`, {
      frame: describeIssues(parsed.error, section, at).join('\n'),
    })
  }
  return { options: parsed === undefined ? given : parsed.data }
}

/** The first plugin that does not load: it may bring a name that is missing. */
export function findBrokenPlugin(plugins: readonly LoadedPlugin[]): BrokenPlugin | undefined {
  return plugins.find((plugin) => plugin.kind === 'broken')
}

/** The plugin that does not load, and so may bring a name that is missing. Throws `config-invalid` if all plugins load. */
function requireBrokenPlugin(
  plugins: readonly LoadedPlugin[],
  { what, word, names }: { readonly what: string; readonly word: string; readonly names: readonly string[] },
): BrokenPlugin {
  const broken = findBrokenPlugin(plugins)
  if (broken !== undefined) return broken
  const near = findNearest(word, names)
  const next = near === undefined ? `Known: ${names.join(', ')}.` : `Did you mean ${near}?`
  throw new Problem('config-invalid', `${what} is neither built in nor comes from a plugin. ${next}`)
}
