// Creates a plugin with its test, and names it in `plugins`. Overwrites nothing.
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { codeFolderMode, codeMode, privateMode } from '../base/files.ts'
import { builtInSenders } from '../gateway/built-in.ts'
import { editConfig, writeFileAtomic } from '../gateway/config/config-file.ts'
import { loadConfig } from '../gateway/config/config.ts'
import { builtInChannels, builtInRunnerKinds, outboxNames } from '../gateway/config/keys.ts'
import { configFile } from '../gateway/config/text.ts'
import type { PluginKind } from '../model/plugin.ts'
import { sourceKinds, sources } from '../plugins/sources/index.ts'
import { exitCodes, Problem } from '../core/model/problem.ts'
import { createEditorConfig } from './scaffold/folder.ts'
import { renderFile } from './scaffold/files.ts'
import { renewSchema } from './scaffold/known-schema.ts'
import { quoteShellWord } from '../base/shell.ts'
import { type Context, formatInvocation } from './terminal/context.ts'
import { cutLine, renderFields } from './terminal/print.ts'
import { loadGeneration } from './types.ts'
import { pluginsDir, toPluginEntry } from './scaffold/plugin-files.ts'

/** Throws `usage-invalid` for an invalid name and for that of a built-in plugin, `config-invalid` if a file exists. */
export async function createPlugin(
  context: Context,
  { name, kind }: { name: string; kind: PluginKind },
): Promise<number> {
  const { dir, env } = context
  checkName(name, kind)
  const { config, text } = loadConfig({ dir, env })
  const entry = toPluginEntry(name)
  const folder = join(dir, pluginsDir)
  // write the plugin before its name in the configuration: a gateway that watches must never look for a missing file
  const files = [
    [join(folder, `${name}.test.ts`), renderFile(`plugin-${kind}.test.txt`, { name })],
    [join(folder, `${name}.ts`), renderFile(`plugin-${kind}.txt`, { name })],
  ] as const
  const there = files.find(([file]) => existsSync(file))
  if (there !== undefined) throw new Problem('config-invalid', `${there[0]} exists already. Nothing was overwritten.`)
  const edited = config.plugins.includes(entry) ? undefined : editConfig(text, ['plugins', -1], entry)
  const made: [string, string][] = []
  for (const [file, content] of files) {
    await mkdir(dirname(file), { recursive: true, mode: codeFolderMode })
    await writeFile(file, content, { flag: 'wx', mode: codeMode })
    made.unshift(['created', file])
  }
  const editor = await createEditorConfig(dir)
  if (editor.what === 'created') made.push(['created', join(dir, editor.file)])
  if (edited !== undefined) {
    await writeFileAtomic(join(dir, configFile), edited, privateMode)
    made.push(['changed', join(dir, configFile)])
    await renewSchema(context, loadGeneration)
  }
  context.print(renderFields(made))
  const { place, lines } = renderSection(name, kind)
  const section = lines.map((line) => `  ${line}`).join('\n')
  context.print(`\n"plugins" has "${entry}". To use it, add to ${place}:\n\n${section}`)
  const isInstalled = existsSync(join(dir, 'node_modules', 'hookloom'))
  const next = [
    formatInvocation(context, ['check']),
    `cd ${quoteShellWord(dir)}`,
    ...(isInstalled ? [] : ['npm install hookloom']),
    `npx jiti hooks/plugins/${name}.test.ts`,
  ]
  context.print(`\nNext\n${next.map((line) => `  ${line}`).join('\n')}`)
  return exitCodes.ok
}

function checkName(name: string, kind: PluginKind): void {
  if (name.includes('/') && !/^\.{0,2}\//.test(name))
    throw new Problem(
      'usage-invalid',
      `A new plugin is a file in ${pluginsDir}, and "${cutLine(name, 60)}" is the name of a package. To use a package, install it with npm in the config directory, and add its name to "plugins" in ${configFile}.`,
    )
  if (!/^[a-z][a-z\d-]{0,63}$/.test(name))
    throw new Problem(
      'usage-invalid',
      'The name of a plugin has only lower-case letters, digits and "-", as in "ntfy". It starts with a letter.',
    )
  if (listTaken(kind).includes(name))
    throw new Problem('usage-invalid', `The ${kind} "${name}" is built in. Give another name.`)
}

function listTaken(kind: PluginKind): readonly string[] {
  if (kind === 'channel') return [...builtInChannels.map(({ name }) => name), 'default', 'retry', 'own', 'last']
  if (kind === 'runner') return builtInRunnerKinds
  if (kind === 'outbox') return outboxNames
  if (kind === 'source') return [...[...sources, ...sourceKinds].map((source) => source.name), 'wake', 'agent']
  return [...builtInSenders.rows.map(({ name }) => name), ...builtInSenders.schemeNames]
}

/** The part of the configuration that uses the plugin. */
function renderSection(name: string, kind: PluginKind): { place: string; lines: readonly string[] } {
  const variable = name.toUpperCase().replaceAll('-', '_')
  const server = `"url": "https://${name}.example/", "token": "\${${variable}_TOKEN}"`
  if (kind === 'channel')
    return { place: configFile, lines: [`"channels": { "${name}": { ${server}, "to": "builds" } }`] }
  if (kind === 'runner') {
    const section = `"runners": { "${name}": { "kind": "${name}", ${server} } },`
    return { place: configFile, lines: [section, `"agents": { "defaults": { "runner": "${name}" } }`] }
  }
  if (kind === 'source') {
    const section = `"sources": { "${name}": { "kind": "${name}", ${server} } },`
    const mapping = `{ "match": { "path": "${name}" }, "messageTemplate": "{{text}}" }`
    return { place: configFile, lines: [section, `"hooks": { "mappings": [${mapping}] }`] }
  }
  const uses =
    kind === 'sender'
      ? `"verify": { "scheme": "${name}", "secret": "\${${variable}_WEBHOOK_SECRET}" }`
      : `"recover": { "sender": "${name}", "baseUrl": "https://${name}.example/api", "hookId": "7", "token": "\${${variable}_TOKEN}" }`
  return { place: `hooks.mappings in ${configFile}`, lines: [`{ "match": { "path": "${name}" }, ${uses} }`] }
}
