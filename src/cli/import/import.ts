// `hookloom init --from`: a config directory from the file of another program. The file is only read; nothing is overwritten.
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { homedir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import JSON5 from 'json5'
import colors from 'picocolors'
import { isJsonObject, type JsonObject } from '../../base/json.ts'
import { toPrintableLine } from '../../base/text.ts'
import { configFile, envFile, readConfigText } from '../../gateway/config/text.ts'
import { privateMode } from '../../base/files.ts'
import { reportUnwritable, writeFileAtomic } from '../../gateway/config/config-file.ts'
import type { Env } from '../../gateway/config/env.ts'
import { renderConfigSchema } from '../../gateway/config/schema.ts'
import { Problem } from '../../core/model/problem.ts'
import { type FileResult, createMissingFile, createEditorConfig, schemaFile } from '../scaffold/folder.ts'
import { quoteShellWord } from '../../base/shell.ts'
import { type Context, formatInvocation, withProgress } from '../terminal/context.ts'
import { renderFields } from '../terminal/print.ts'
import type { ImportDraft } from './draft.ts'
import { createNotes, createSecrets, type Note, readEnv, type Secrets, renderEnvText, renderNote } from './notes.ts'
import { convertOpenClaw } from './openclaw.ts'
import { dropRefusedParts, type Settled } from './settle.ts'
import { adaptTransforms, copyTransforms, keepExistingTransforms, readTransforms, runEachOnce } from './transforms.ts'
import { convertWebhook } from './webhook.ts'

type Source =
  | { readonly kind: 'openclaw'; readonly root: JsonObject }
  | { readonly kind: 'webhook'; readonly hooks: readonly JsonObject[] }

/** Throws `usage-invalid` for a file that is neither an openclaw.json nor a hooks.json, and `config-invalid` if a configuration exists
 * already. */
export async function importFrom(context: Context, given: string): Promise<void> {
  const { dir, env } = context
  const file = resolve(given)
  const source = readSource(file)
  if (existsSync(join(dir, configFile))) {
    const next = 'Choose another folder with --config-dir. Nothing was changed.'
    throw new Problem('config-invalid', `${dir} has a configuration already. ${next}`)
  }
  const notes = createNotes()
  const envText = readConfigText(dir, envFile)
  const own = { ...readEnv(envText), ...env }
  const secrets = createSecrets(own, source.kind === 'openclaw' ? readTheirs(file, source.root) : {})
  const home = env['HOME'] ?? homedir()
  const tools = { notes, secrets, home }
  const draft = source.kind === 'openclaw' ? convertOpenClaw(source.root, tools) : convertWebhook(source.hooks, tools)
  const found =
    source.kind === 'openclaw'
      ? await readTransforms({ dir: dirname(file), transformsDir: draft.transformsDir, home }, notes)
      : undefined
  const kept = source.kind === 'openclaw' ? await keepExistingTransforms(draft.mappings, found, notes) : draft.mappings
  const { mappings, source: transforms } =
    found === undefined ? { mappings: kept, source: found } : adaptTransforms(kept, found)
  const gateway = { token: secrets.requireToken('HOOKLOOM_GATEWAY_TOKEN') }
  const all: ImportDraft = { ...draft, mappings, config: { ...draft.config, gateway } }
  const added = Object.fromEntries(secrets.added().map(({ name, value }) => [name, value]))
  const settled = dropRefusedParts(all, { ...own, ...added }, notes)

  const made = await reportUnwritable(dir, async () => {
    await mkdir(dir, { recursive: true, mode: 0o700 })
    const copied = transforms === undefined ? [] : await copyTransforms(dir, transforms)
    // write the secrets first: a configuration with an unset variable is invalid
    await writeFileAtomic(join(dir, envFile), renderEnvText(envText, secrets.added()), privateMode)
    const what: FileResult['what'] = envText === undefined ? 'created' : 'changed'
    return [
      await createMissingFile(dir, configFile, renderConfig(basename(file), settled.config), privateMode),
      { file: envFile, what },
      await createMissingFile(dir, schemaFile, renderConfigSchema()),
      ...copied,
      await createEditorConfig(dir),
    ]
  })
  context.print(`Config directory ${dir}`)
  context.print(renderFields(made.map((one) => [one.what, one.file])))
  printResult(context, { file: basename(file), source, settled, notes: notes.all(), secrets })
  if (transforms === undefined || settled.mappings.every(({ mapping }) => mapping['transform'] === undefined)) return
  if (transforms.files.some(({ name }) => name === 'package.json')) {
    const folder = quoteShellWord(join(dir, 'hooks', 'transforms'))
    context.print(`\nThe transforms use npm packages. Install them: npm install --prefix ${folder}`)
  }
  const runs = await withProgress(context, 'Running the transforms', () => runEachOnce(context))
  context.print('\nEach transform once, without effects')
  for (const { module, ok, detail } of runs) {
    const mark = ok ? colors.green('✓') : colors.red('✗')
    context.print(`  ${mark} ${toPrintableLine(`${module} ${detail}`)}`)
  }
  if (runs.every(({ ok }) => ok)) return
  context.print(`  Try a real payload: ${formatInvocation(context, ['run'])} <hook> <file>`)
}

function readSource(file: string): Source {
  const name = basename(file)
  const text = readConfigText(dirname(file), name)
  if (text === undefined) throw new Problem('usage-invalid', `${file} does not exist.`)
  if (/\.ya?ml$/i.test(name)) {
    const next = 'Convert it to JSON first, for example with: yq -o=json hooks.yaml > hooks.json'
    throw new Problem('usage-invalid', `${name} is YAML, and --from reads JSON and JSON5. ${next}`)
  }
  const value = parseSource(text, name)
  if (Array.isArray(value) && value.length > 0 && value.every(isHook)) return { kind: 'webhook', hooks: value }
  const sections = ['hooks', 'agents', 'channels', 'models', 'gateway']
  if (isJsonObject(value) && sections.some((key) => isJsonObject(value[key]))) return { kind: 'openclaw', root: value }
  const expected =
    'Expected an openclaw.json (an object with "hooks"), or a hooks.json of webhook (a list of hooks with ids).'
  throw new Problem('usage-invalid', `${name} is not a file that can be taken over. ${expected}`)
}

function isHook(value: unknown): value is JsonObject {
  return isJsonObject(value) && typeof value['id'] === 'string'
}

function parseSource(text: string, name: string): unknown {
  try {
    return JSON5.parse<unknown>(text.replace(/^\uFEFF/, ''))
  } catch (error) {
    const where = error instanceof Error ? /\d+:\d+$/.exec(error.message)?.[0] : undefined
    const place = where === undefined ? '' : ` at ${where.replace(':', ', column ').replace(/^/, 'line ')}`
    throw new Problem('usage-invalid', `${name} is not JSON or JSON5${place}. A template must be rendered first.`)
  }
}

/** The variables from the section `env` of OpenClaw's configuration, and from the `.env` next to it, which has priority. */
function readTheirs(file: string, { env }: JsonObject): Env {
  const inline = isJsonObject(env) ? { ...env, ...(isJsonObject(env['vars']) ? env['vars'] : {}) } : {}
  const texts = Object.entries(inline).filter((pair): pair is [string, string] => typeof pair[1] === 'string')
  return { ...Object.fromEntries(texts), ...readEnv(readConfigText(dirname(file), envFile)) }
}

function renderConfig(file: string, { server, gateway, hooks, ...rest }: Settled['config']): string {
  const text = JSON.stringify({ $schema: `./${schemaFile}`, server, gateway, hooks, ...rest }, undefined, 2)
  return `// Made from ${toPrintableLine(file)} by "hookloom init --from". Comments and trailing commas are welcome.
// \${NAME} reads the environment, or .env in the same folder. "hookloom check" checks all of it.
${text}
`
}

type Result = {
  readonly file: string
  readonly source: Source
  readonly settled: Settled
  readonly notes: readonly Note[]
  readonly secrets: Secrets
}

/** Prints the names of the variables, and no secret. */
function printResult({ print }: Context, { file, source, settled, notes, secrets }: Result): void {
  const [kind, all] =
    source.kind === 'openclaw' ? ['mappings', countMappings(source.root)] : ['hooks', source.hooks.length]
  const taken = new Set(settled.mappings.map(({ from }) => from)).size
  print(`\nTook over ${taken} of ${all} ${kind} of ${toPrintableLine(file)}.`)
  const added = secrets.added()
  const [kept, missing] = [added.filter((one) => !one.isPlaceholder), added.filter((one) => one.isPlaceholder)]
  if (kept.length > 0) print(`.env has ${kept.map(({ name }) => name).join(', ')}.`)
  if (missing.length > 0) print(`.env needs values for ${missing.map(({ name }) => name).join(', ')}.`)
  if (notes.length === 0) return
  print(`\nNot taken over from ${toPrintableLine(file)}, or changed`)
  for (const note of notes) print(`  ${toPrintableLine(renderNote(note))}`)
}

function countMappings({ hooks }: JsonObject): number {
  const mappings = isJsonObject(hooks) ? hooks['mappings'] : undefined
  return Array.isArray(mappings) ? mappings.length : 0
}
