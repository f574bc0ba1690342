// Gives the sections of the configuration that are not built in to the code that they name: channels, runners and sources of plugins, channels of
// hooks/channels, and outboxes. While code does not load, its section is a channel whose messages wait, a runner whose turns wait, or a source that
// is not watched.
import type { z } from 'zod'
import { builtInRunnerKinds, outboxNames } from '../config/keys.ts'
import type { OwnChannel } from '../../model/channel.ts'
import type { Recover } from '../../core/model/recover.ts'
import type { OutboxDefinition } from '../../model/outbox.ts'
import type { OwnRunner } from '../../model/runner.ts'
import type { OwnCode } from '../../model/own.ts'
import type { OwnSource } from '../../model/source.ts'
import { normalizeHookName } from '../../core/model/mapping-rules.ts'
import { sourceKinds, sources as builtInSources } from '../../plugins/sources/index.ts'
import { findChannelSection, listKnownChannels, readChannelKeys } from '../../model/config/channels.ts'
import type { Config } from '../../model/config/config.ts'
import { describeIssues, listKeys } from '../../model/definitions.ts'
import { limitOutbox } from '../../plugins/outboxes/shared/own.ts'
import { type Found, listDefinitions, type LoadedPlugin, type PluginKind } from '../../model/plugin.ts'
import { toErrorName } from '../../base/exceptions.ts'
import { findNearest } from '../../base/text.ts'
import { Problem } from '../../core/model/problem.ts'
import type { ModuleReport } from '../../core/reload/gate.ts'
import { buildBroken, type Loader, loadVersions } from './loader.ts'
import { listNames } from './module-files.ts'
import { type BrokenPlugin, findBrokenPlugin } from './plugins.ts'

type Code = { readonly label: string; readonly hash: string; describeThrown(thrown: unknown): string }

/** The code of the package, which has one version. */
const builtInCode: Code = { label: 'the built-in source', hash: '', describeThrown: toErrorName }

/** `given`: the options of the code. `section`: with the keys of the gateway, for messages. `at`: its path. */
type Section = { readonly given: object; readonly at: readonly string[]; readonly section: object | undefined }

/**
 * The channels of hooks/channels for the sections of `channels.own`. Throws `config-invalid` for invalid options. `serving` has the last good
 * version of each channel, in case the new one is broken.
 */
export async function loadOwnChannels(
  { config, serving }: { config: Config; serving: readonly OwnChannel[] },
  loader: Loader,
): Promise<{ readonly channels: readonly OwnChannel[]; readonly reports: readonly ModuleReport[] }> {
  const { own } = config.channels
  const known = await listNames(loader.dir, 'channel')
  const { versions: channels, reports } = await loadVersions(loader, 'channel', {
    names: Object.keys(own).toSorted(),
    describeMissing(name, file) {
      const near = findNearest(name, known)
      const hint = near === undefined ? 'Create it, or remove the section.' : `Did you mean "${near}"?`
      return `${file} does not exist, and channels.own.${name} needs it. ${hint}`
    },
    define(name, module): OwnChannel {
      const about = { id: `own:${name}`, label: `hooks/channels/${name}` }
      if (module.kind === 'broken') return { ...module, ...about }
      const section = own[name]
      const { to: _, onUnknown: __, ...given } = { ...section }
      return {
        ...openSection('channel', module, module.value, { given, at: ['channels', 'own', name], section }),
        ...about,
      }
    },
    findLast: (name) => serving.find(({ id }) => id === `own:${name}`),
  })
  return { channels, reports }
}

/**
 * The channels of plugins that have a section. Throws `config-invalid` for a section that no channel has, for invalid options, and for a channel
 * with the name of a built-in one.
 */
export function openPluginChannels(plugins: readonly LoadedPlugin[], { channels }: Config): OwnChannel[] {
  const builtIn = (listKnownChannels(channels) ?? []).map(({ name }) => name)
  const find = createFinder(plugins, 'channel', builtIn)
  const { default: _, retry: __, own: ___, ...sections } = channels
  return Object.keys(sections)
    .filter((name) => !builtIn.includes(name))
    .map((name) => {
      const { to, onUnknown, timeoutMs, ...given } = readChannelKeys(channels, name)
      const section = findChannelSection(channels, name)
      const opened = openFound(find(name, `channels.${name}`), { given, at: ['channels', name], section })
      if (opened.kind === 'broken') return { ...opened, id: name }
      return { ...opened, id: name, options: { ...Object(opened.options), to, onUnknown, timeoutMs } }
    })
}

/** The sections of `runners` whose kind comes from a plugin. Throws `config-invalid` for a kind that nothing has, and for invalid options. */
export function openPluginRunners(plugins: readonly LoadedPlugin[], { runners }: Config): OwnRunner[] {
  const find = createFinder(plugins, 'runner', builtInRunnerKinds)
  return Object.entries(runners)
    .filter(([, { kind }]) => !builtInRunnerKinds.includes(kind))
    .map(([name, section]) => {
      const { kind, ...given } = section
      const found = find(kind, `runners.${name}.kind is "${kind}", which`)
      return { ...openFound(found, { given, at: ['runners', name], section }), name }
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
  const find = createFinder(plugins, 'outbox', outboxNames)
  for (const { id, recover } of mappings) {
    if (recover === undefined || outboxNames.includes(recover.sender)) continue
    const { sender, turnOn: _, ...given } = recover
    const found = find(sender, `mapping "${id}": recover.sender: "${sender}"`)
    const opened = openFound(found, { given, at: [`mapping "${id}": recover`], section: given })
    if ('definition' in found && opened.kind === 'broken') throw new Problem('config-invalid', opened.problem.detail)
  }
  return listDefinitions(plugins, 'outbox').map(({ plugin, definition }) => limitOutbox(definition, plugin))
}

/**
 * The sections of `sources`. Throws `config-invalid` for a kind that nothing has, for invalid options, and for a section whose hook no mapping has:
 * its items would wait for one. A source that brings requests to other hooks needs none.
 */
export function openPluginSources(
  plugins: readonly LoadedPlugin[],
  { sources }: Config,
  mappings: readonly { readonly match: { readonly path?: string | undefined } }[],
): OwnSource[] {
  const builtIn = builtInSources.map(({ name }) => name)
  const find = createFinder(plugins, 'source', [...builtIn, ...sourceKinds.map(({ name }) => name)])
  const hooks = mappings.map(({ match }) => normalizeHookName(match.path ?? ''))
  return Object.entries(sources).map(([name, section]) => {
    const { kind, ...given } = section
    const fail = (what: string) => new Problem('config-invalid', `sources.${name} ${what}`)
    if ([...builtIn, 'wake', 'agent'].includes(name))
      throw fail('has the name of a built-in hook. Give it another name.')
    if (builtIn.includes(kind)) throw fail(`has the kind "${kind}", which is built in: its section is hooks.${kind}.`)
    const options = { given, at: ['sources', name], section }
    const own = sourceKinds.find((source) => source.name === kind)
    const opened =
      own === undefined
        ? openFound(find(kind, `sources.${name}.kind is "${kind}", which`), options)
        : openSection('plugin', builtInCode, own, options)
    const isOfOtherHooks = opened.kind === 'sound' && opened.definition.receives === true
    if (!isOfOtherHooks && !hooks.some((hook) => hook === '' || hook === name))
      throw fail(`fetches for the hook "${name}", which no mapping has. Add one with "match": { "path": "${name}" }.`)
    return { ...opened, name }
  })
}

/**
 * Finds a definition by the name in a section, or the plugin that does not load and so may bring it. Throws `config-invalid` if nothing has the
 * name, and for a definition with the name of a built-in one. `what`: the section, for messages.
 */
function createFinder<Kind extends PluginKind>(
  plugins: readonly LoadedPlugin[],
  kind: Kind,
  builtIn: readonly string[],
): (name: string, what: string) => Found<Kind> | BrokenPlugin {
  const all = listDefinitions(plugins, kind)
  const replaced = all.find(({ definition }) => builtIn.includes(definition.name))
  if (replaced !== undefined) {
    const what = `the ${kind} "${replaced.definition.name}", which is built in.`
    throw new Problem('config-invalid', `plugins: ${replaced.plugin.label} has ${what}`)
  }
  return (name, what) => {
    const found = all.find(({ definition }) => definition.name === name) ?? findBrokenPlugin(plugins)
    if (found !== undefined) return found
    const names = [...builtIn, ...all.map(({ definition }) => definition.name)]
    const near = findNearest(name, names)
    const next = near === undefined ? `Known: ${names.join(', ')}.` : `Did you mean ${near}?`
    throw new Problem('config-invalid', `${what} is neither built in nor comes from a plugin. ${next}`)
  }
}

function openFound<Kind extends 'channel' | 'runner' | 'outbox' | 'source'>(
  found: Found<Kind> | BrokenPlugin,
  section: Section,
): OwnCode<Found<Kind>['definition']> {
  if (!('definition' in found)) return { kind: 'broken', label: found.label, problem: found.problem }
  return openSection('plugin', found.plugin, found.definition, section)
}

/** Reads the options of a section. Code whose schema throws is broken. Throws `config-invalid` for invalid options. */
function openSection<
  Definition extends { readonly options?: { safeParse(value: unknown): z.ZodSafeParseResult<unknown> } },
>(
  kind: 'channel' | 'plugin',
  code: Code,
  definition: Definition,
  { given, at, section }: Section,
): OwnCode<Definition> {
  const { label, hash, describeThrown } = code
  let parsed: z.ZodSafeParseResult<unknown> | undefined
  try {
    parsed = definition.options?.safeParse(given)
  } catch (thrown) {
    return { label, ...buildBroken(kind, `${label}: the schema of its options threw ${describeThrown(thrown)}.`) }
  }
  if (parsed?.success === false) {
    throw new Problem('config-invalid', `The options of ${at.join('.')} are invalid for ${label}`, {
      frame: describeIssues(parsed.error, section, at, listKeys(definition.options ?? {})).join('\n'),
    })
  }
  return { kind: 'sound', label, definition, options: parsed === undefined ? given : parsed.data, hash, describeThrown }
}
