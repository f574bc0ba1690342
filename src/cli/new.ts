// Creates a transform with its first fixture and its mapping. Overwrites nothing.
import { trimSlashes } from '../base/text.ts'
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type LoadedConfig, loadConfig, parseConfig } from '../config/config.ts'
import { configFile } from '../config/text.ts'
import { codeFolderMode, codeMode, privateMode } from '../base/files.ts'
import { editConfig, writeFileAtomic } from '../config/config-file.ts'
import { resolveTransformsRoot } from '../transforms/root.ts'
import { exitCodes, Problem } from '../model/problem.ts'
import { findBundledRequest } from './requests/bundled.ts'
import { type Context, formatInvocation } from './terminal/context.ts'
import { greeting, renderFirstTransform } from './scaffold/first-transform.ts'
import { createEditorConfig } from './scaffold/folder.ts'
import { renderFields } from './terminal/print.ts'
import { readRequest } from './requests/input.ts'
import { readKept } from './requests/kept.ts'
import { type Redacted, withoutSecrets } from '../replay/redact.ts'
import { assemble } from '../reload/assemble.ts'
import { listConfigSecrets } from '../model/config-secrets.ts'

/** `from`: a file, `-` for standard input, `last`, the id of a delivery, or a sender. `event`: an event of that sender. */
type NewOptions = { name: string; from: string | undefined; event: string | undefined }

/** Throws `usage-invalid` for an invalid name and for an unknown sender, `config-invalid` if a file exists. */
export async function createTransform(context: Context, { name, from, event }: NewOptions): Promise<number> {
  const { dir, env } = context
  checkName(name)
  const loaded = loadConfig({ dir, env })
  const { removed, ...request } = await findRequest(context, loaded, { from, event })
  const root = await resolveTransformsRoot({ configDir: dir, transformsDir: loaded.config.hooks.transformsDir })
  const module = `${name}.ts`
  const { path, edited } = addMapping(loaded, name, module)
  const text = renderFirstTransform({ path, headers: request.headers, payload: request.payload })
  // the fixture before its module, and both before the mapping, so that a watching gateway never loads incomplete files
  const fixture = join(root, `${name}.fixtures`, 'first.json')
  const files = [
    [fixture, text.fixture],
    [join(root, module), text.module],
  ] as const
  const there = files.find(([file]) => existsSync(file))
  if (there !== undefined) {
    throw new Problem('config-invalid', `${there[0]} exists already. Nothing was overwritten.`)
  }
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
  }
  if (removed.length > 0) made.push(['removed', removed.join(', ')])
  context.print(renderFields(made))
  context.print(`\nPOST ${loaded.config.hooks.path}/${path} calls it.${describeShadowing(loaded, path, module)}`)
  const next = [
    ['test', name, '--watch'],
    ['send', path, fixture],
  ].map((words) => `  ${formatInvocation(context, words)}`)
  context.print(`\nNext\n${next.join('\n')}`)
  return exitCodes.ok
}

/** The request of the first fixture, without secrets. */
async function findRequest(
  context: Context,
  { config }: LoadedConfig,
  { from, event }: Pick<NewOptions, 'from' | 'event'>,
): Promise<Pick<Redacted, 'headers' | 'payload' | 'removed'>> {
  if (event !== undefined && (from === undefined || !isSender(from))) {
    throw new Problem('usage-invalid', '--event needs --from <sender>, as in --from github --event release.')
  }
  if (from === undefined) return { ...greeting, removed: [] }
  if (isSender(from)) return { ...withoutSecrets(findBundledRequest(from, event), []), removed: [] }
  if (isId(from)) return (await readKept(context, config, from)).safe
  const { mappings } = await assemble(context.dir, config)
  return withoutSecrets({ ...(await readRequest(context, from)), query: {} }, listConfigSecrets(config, mappings))
}

function isId(from: string): boolean {
  return from === 'last' || /^[\da-f]{6,8}(-[\da-f-]*)?$/.test(from)
}

/** Whether the word is neither an id nor a file: not a path, not a name with an extension, and not an existing file. */
function isSender(from: string): boolean {
  return !isId(from) && /^[\w-]+$/.test(from) && from !== '-'
}

function checkName(name: string): void {
  if (/^(wake|agent)$/i.test(name)) {
    throw new Problem('usage-invalid', `"${name}" is a built-in hook, which no mapping overrides. Give another name.`)
  }
  if (/^[A-Za-z][\w-]{0,63}$/.test(name)) return
  throw new Problem(
    'usage-invalid',
    'The name of a transform has only letters, digits, "-" and "_", as in "greet". It starts with a letter.',
  )
}

/** The hook of the module, and the configuration with its mapping; undefined if a mapping already names the module. */
function addMapping(
  { config, env, text }: LoadedConfig,
  name: string,
  module: string,
): { path: string; edited: string | undefined } {
  const known = config.hooks.mappings.find(({ transform }) => transform?.module.replace(/^(\.\/)+/, '') === module)
  if (known !== undefined) return { path: trimSlashes(known.match.path ?? name), edited: undefined }
  const mapping = { id: name, match: { path: name }, transform: { module } }
  const edited = editConfig(text, ['hooks', 'mappings', -1], mapping)
  const { problems } = parseConfig(edited, env)
  if (problems.length === 0) return { path: name, edited }
  throw new Problem('config-invalid', 'The configuration would be invalid with this mapping. Nothing was changed.', {
    frame: problems.join('\n'),
  })
}

/** Order is priority: an earlier mapping of the same path may match every request. */
function describeShadowing({ config }: LoadedConfig, path: string, module: string): string {
  const before = config.hooks.mappings.find(
    ({ match, transform }) =>
      transform?.module !== module && (match.path === undefined || trimSlashes(match.path) === path),
  )
  if (before === undefined) return ''
  return `\nBut the mapping "${before.id ?? before.match.path ?? 'without a path'}" comes first and may take the same requests.`
}
