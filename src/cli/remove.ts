// Removes what `hookloom new`, `new plugin`, `add transform` and `add preset` made. Deletes no edited file without --force.
import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'jsonc-parser'
import { isJsonObject, isSameJson, tryParseJson } from '../base/json.ts'
import { resolvePackagePath } from '../base/package.ts'
import { findNearest, trimSlashes } from '../base/text.ts'
import { type LoadedConfig, loadConfig, parseConfig } from '../gateway/config/config.ts'
import { editConfig, removeEmptyList, writeFileAtomic } from '../gateway/config/config-file.ts'
import { configFile } from '../gateway/config/text.ts'
import { privateMode } from '../base/files.ts'
import { exitCodes, Problem } from '../core/model/problem.ts'
import { parseFixture } from '../gateway/replay/fixture-files.ts'
import { resolveTransformsRoot } from '../core/transforms/root.ts'
import { readMatch } from './add.ts'
import { isFirstFixture, isFirstModule } from './scaffold/first-transform.ts'
import { renewSchema } from './scaffold/known-schema.ts'
import { listPluginFiles, readPluginName, toPluginEntry } from './scaffold/plugin-files.ts'
import type { Context } from './terminal/context.ts'
import { cutLine, renderFields } from './terminal/print.ts'
import { isTypesFile, loadGeneration, toTypesFile } from './types.ts'

type RemoveOptions = { readonly name: string; readonly isForced: boolean }

/** Throws `not-found` if nothing has the name, and `conflict` if files were edited. Then nothing was changed. */
export async function remove(context: Context, { name, isForced }: RemoveOptions): Promise<number> {
  const loaded = loadConfig(context)
  const module = `${name.replace(/\.ts$/, '')}.ts`
  const root = await resolveTransformsRoot(context.dir, loaded.config.hooks)
  const found = {
    change: removeFromConfig(loaded, name, module),
    files: listNamedFiles(name, () => listFiles(root, module)),
  }
  const isNone = found.files.length === 0 && found.change.done.length === 0
  const { change, files } = isNone ? findPlugin(context.dir, loaded, name) : found
  if (files.length === 0 && change.done.length === 0) throw new Problem('not-found', describeUnknown(loaded, name))
  const edited = isForced ? [] : files.filter(({ isMade }) => !isMade).map(({ file }) => file)
  if (edited.length > 0) {
    throw new Problem(
      'conflict',
      `Nothing was removed: these files are not as "hookloom new" or "hookloom add" wrote them. --force removes them too.`,
      { frame: edited.join('\n') },
    )
  }
  const { problems } = parseConfig(change.text, loaded.env)
  if (problems.length > 0) {
    throw new Problem('config-invalid', 'The configuration would be invalid without it. Nothing was changed.', {
      frame: problems.join('\n'),
    })
  }
  // the configuration first: a gateway that watches must not read a mapping whose module is gone
  if (change.text !== loaded.text) await writeFileAtomic(join(context.dir, configFile), change.text, privateMode)
  if (isNone) await renewSchema(context, loadGeneration)
  const types = change.hooks.map((hook) => join(root, toTypesFile(hook))).filter(isTypesFile)
  const gone = [...files.map(({ file }) => file), ...types]
  for (const file of gone) rmSync(file)
  const folder = join(root, toFixtures(module))
  if (existsSync(folder) && readdirSync(folder).length === 0) rmdirSync(folder)
  context.print(renderFields([...change.done, ...gone.map((file): [string, string] => ['removed', file])]))
  const left = change.variables.filter((variable) => !change.text.includes(`\${${variable}}`))
  if (left.length > 0) context.print(`\n${left.join(', ')} in .env is no longer used. It was left there.`)
  return exitCodes.ok
}

/** A name of another form is that of a preset only, and no path. */
function listNamedFiles(name: string, list: () => Made[]): Made[] {
  return /^[A-Za-z][\w-]*(\.ts)?$/.test(name) ? list() : []
}

/** The entry of `plugins` with the files of the plugin. Throws `conflict` if a mapping uses it; the rules of the configuration find any other use. */
function findPlugin(
  dir: string,
  { text, config }: LoadedConfig,
  name: string,
): { change: ConfigChange; files: Made[] } {
  const index = config.plugins.indexOf(toPluginEntry(name))
  const files = listNamedFiles(name, () => listPluginFiles(dir, name))
  const unchanged = { text, done: [], hooks: [], variables: [] }
  if (index < 0) return { change: unchanged, files }
  const user = config.hooks.mappings.findIndex(
    ({ verify, recover }) => verify?.scheme === name || recover?.sender === name,
  )
  if (user >= 0)
    throw new Problem('conflict', `hooks.mappings[${user}] uses "${name}". Remove that first. Nothing was changed.`)
  const done = [['removed', `"${toPluginEntry(name)}" from plugins`]] as const
  const rest = removeEmptyList(editConfig(text, ['plugins', index], undefined), ['plugins'])
  return { change: { ...unchanged, text: rest, done }, files }
}

const toFixtures = (module: string) => module.replace(/\.ts$/, '.fixtures')

type Made = { readonly file: string; readonly isMade: boolean }

/** The module and all its fixtures. `isMade`: the file is as a command wrote it. */
function listFiles(root: string, module: string): Made[] {
  const folder = join(root, toFixtures(module))
  const entries = existsSync(folder) ? readdirSync(folder, { withFileTypes: true }) : []
  const fixtures = entries.flatMap((entry) => (entry.isFile() ? entry.name : [])).toSorted()
  const names = [module, ...fixtures.map((name) => join(toFixtures(module), name))]
  const first = readText(join(folder, 'first.json'))
  return names.flatMap((name) => {
    const file = join(root, name)
    const text = readText(file)
    return text === undefined ? [] : [{ file, isMade: isBundled(name, text) || isScaffold(name, text, first) }]
  })
}

function isScaffold(name: string, text: string, first: string | undefined): boolean {
  const fixture = first === undefined ? undefined : parseFixture(first)
  if (fixture === undefined || typeof fixture === 'string') return false
  return name.endsWith('.ts') ? isFirstModule(text, fixture.request) : isFirstFixture(text, fixture.request)
}

function isBundled(name: string, text: string): boolean {
  return readText(resolvePackagePath('transforms', name)) === text
}

function readText(file: string): string | undefined {
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined
}

/** `hooks`: those that no mapping has any more. `variables`: those that the removed parts read. */
type ConfigChange = {
  readonly text: string
  readonly done: readonly (readonly [string, string])[]
  readonly hooks: readonly string[]
  readonly variables: readonly string[]
}

/**
 * Removes the mappings that a command wrote for the module, or the preset. A mapping with other keys stays without its transform: `hookloom new` adds
 * the transform to a mapping that has none.
 */
function removeFromConfig({ text, config }: LoadedConfig, name: string, module: string): ConfigChange {
  const written: unknown = parse(text, [], { allowTrailingComma: true })
  const hooks = isJsonObject(written) && isJsonObject(written['hooks']) ? written['hooks'] : {}
  const done: [string, string][] = []
  let rest = text
  const removed: unknown[] = []
  const paths: string[] = []
  // from the end, so that the earlier indexes stay valid
  for (const [index, mapping] of [...config.hooks.mappings.entries()].toReversed()) {
    if (mapping.transform?.module.replace(/^(\.\/)+/, '') !== module) continue
    const own = Array.isArray(hooks['mappings']) ? hooks['mappings'][index] : undefined
    const isWhole = isWrittenMapping(own, name, module)
    rest = editConfig(rest, ['hooks', 'mappings', index, ...(isWhole ? [] : ['transform'])], undefined)
    const label = `the mapping "${cutLine(mapping.id ?? mapping.match.path ?? String(index), 60)}"`
    done.push(isWhole ? ['removed', label] : ['changed', `${label}: it has no transform now, and its other keys stay`])
    removed.push(isWhole ? own : undefined)
    if (isWhole && mapping.match.path !== undefined) paths.push(trimSlashes(mapping.match.path))
  }
  const preset = config.hooks.presets.findIndex((entry) => (typeof entry === 'string' ? entry : entry.name) === name)
  if (done.length === 0 && preset >= 0) {
    rest = editConfig(rest, ['hooks', 'presets', preset], undefined)
    done.push(['removed', `the preset "${name}"`])
    removed.push(Array.isArray(hooks['presets']) ? hooks['presets'][preset] : undefined)
  }
  const left: unknown = parse(rest, [], { allowTrailingComma: true })
  const used = JSON.stringify(isJsonObject(left) && isJsonObject(left['hooks']) ? left['hooks']['mappings'] : [])
  const variables = [...JSON.stringify(removed).matchAll(/\$\{(\w+)\}/g)].map(([, variable = '']) => variable)
  return {
    text: rest,
    done,
    hooks: paths.filter((path) => !used.includes(JSON.stringify(path))),
    variables: [...new Set(variables)],
  }
}

/** Whether the mapping is as a command wrote or printed it, so that it has no key of somebody else. */
function isWrittenMapping(own: unknown, name: string, module: string): boolean {
  if (!isJsonObject(own)) return false
  const { id, match, transform, verify, ...others } = own
  const matches = [{ path: name }, tryParseJson(readMatch(module))]
  return (
    id === name &&
    Object.keys(others).length === 0 &&
    isSameJson(transform, { module }) &&
    matches.some((one) => isSameJson(match, one)) &&
    (verify === undefined || isWrittenVerify(verify))
  )
}

function isWrittenVerify(verify: unknown): boolean {
  if (!isJsonObject(verify)) return false
  return Object.keys(verify).join() === 'scheme,secret' && /^\$\{\w+_WEBHOOK_SECRET\}$/.test(String(verify['secret']))
}

function describeUnknown({ config }: LoadedConfig, name: string): string {
  const names = [
    ...config.hooks.mappings.flatMap(({ transform }) => transform?.module.replace(/\.\w+$/, '') ?? []),
    ...config.hooks.presets.map((entry) => (typeof entry === 'string' ? entry : entry.name)),
    ...config.plugins.flatMap((entry) => readPluginName(entry) ?? []),
  ]
  const near = findNearest(name, names)
  const next = near === undefined ? '' : ` Did you mean "${near}"?`
  return `No transform, mapping of one, preset or plugin of hooks/plugins has the name "${cutLine(name, 60)}".${next}`
}
