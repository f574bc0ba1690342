// Loads the plugins that `plugins` names: packages of the config directory, and files below hooks/. A plugin that does not load leaves its
// last good version serving.
import { type Loader, loadVersions } from './loader.ts'
import type { SchemeRow, SenderDefinition } from '../../model/scheme.ts'
import { createSenders, listSchemes, type SenderTable } from '../proofs/senders.ts'
import { listDefinitions, type LoadedPlugin } from '../../model/plugin.ts'
import { Problem } from '../../core/model/problem.ts'
import type { ModuleReport } from '../../core/reload/gate.ts'

export type LoadedPlugins = { readonly plugins: readonly LoadedPlugin[]; readonly reports: readonly ModuleReport[] }

/** The last good version of a plugin in `serving` is kept if the new one is broken. */
export async function loadPlugins(
  { names, serving = [] }: { names: readonly string[]; serving?: readonly LoadedPlugin[] },
  loader: Loader,
): Promise<LoadedPlugins> {
  const { versions: plugins, reports } = await loadVersions(loader, 'plugin', {
    names,
    describeMissing,
    define: (name, module): LoadedPlugin => ({ ...module, name }),
    findLast: (name) => serving.find((other) => other.name === name),
  })
  checkClashes(plugins)
  return { plugins, reports }
}

function describeMissing(name: string): string {
  const next = name.startsWith('.')
    ? `Create hooks/${name.replace(/^\.\//, '')}`
    : `Run "npm install ${name}" in the config directory`
  return `The plugin "${name}" does not exist. ${next}, or remove it from plugins.`
}

/** Throws `config-invalid` if two plugins bring something of the same kind and name. */
function checkClashes(plugins: readonly LoadedPlugin[]): void {
  const owners = new Map<string, string>()
  for (const plugin of plugins) {
    if (plugin.kind === 'broken') continue
    for (const { kind, definition } of plugin.value) {
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

export type BrokenPlugin = Extract<LoadedPlugin, { kind: 'broken' }>

/** The first plugin that does not load: it may bring a name that is missing. */
export function findBrokenPlugin(plugins: readonly LoadedPlugin[]): BrokenPlugin | undefined {
  return plugins.find((plugin) => plugin.kind === 'broken')
}
