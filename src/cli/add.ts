// Adds a preset to the configuration, or a bundled transform to the transforms root. Never overwrites a file.
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createRunnersAndChannels } from '../gateway/jobs/runners-and-channels.ts'
import { findPack, type Pack, describeUnknownPreset } from '../gateway/reload/packs.ts'
import { loadConfig, parseConfig } from '../gateway/config/config.ts'
import { configFile, envFile } from '../gateway/config/text.ts'
import { codeFolderMode, codeMode, privateMode } from '../base/files.ts'
import { editConfig, writeFileAtomic } from '../gateway/config/config-file.ts'
import { parseEnv, renderEnvLine } from '../gateway/config/env.ts'
import { findNearest } from '../base/text.ts'
import { resolveTransformsRoot } from '../core/transforms/root.ts'
import type { Config } from '../model/config/config.ts'
import type { Preset, PresetSetup } from '../model/preset.ts'
import { exitCodes, Problem } from '../core/model/problem.ts'
import type { Context } from './terminal/context.ts'
import { findGatewayAddress } from './gateway/gateway.ts'
import { resolvePackagePath } from '../base/package.ts'
import { generatePlaceholder } from './scaffold/placeholders.ts'
import { describeUnknownOutcome } from './checks/probes.ts'
import { findPackHook } from './requests/sample.ts'

/**
 * Adds the preset to hooks.presets and keeps every comment. If the variable of its secret is not set, adds a new secret to `.env`, or a placeholder
 * if only the sender can create the secret.
 */
export async function addPreset(
  context: Context,
  { name, secretEnv }: { name: string; secretEnv: string | undefined },
): Promise<number> {
  const { dir, env } = context
  const { config, text } = loadConfig({ dir, env })
  const pack = await findPack(dir, name)
  if (pack === undefined) throw new Problem('usage-invalid', `Nothing was added: ${describeUnknownPreset(name)}`)
  const { preset } = pack
  if (config.hooks.presets.some((entry) => (typeof entry === 'string' ? entry : entry.name) === name)) {
    throw new Problem('config-invalid', `The preset "${name}" is in hooks.presets already. Nothing was changed.`)
  }
  const key = preset.setup?.key
  const variable = chooseVariable(preset, secretEnv)
  const fresh = variable === undefined || isSet(context, variable) ? undefined : createKey(key)
  const entry = buildEntry(pack, variable)
  const edited = editConfig(text, ['hooks', 'presets', -1], entry)
  const file = join(dir, envFile)
  const secrets = existsSync(file) ? await readFile(file, 'utf8') : ''
  const line = variable === undefined || fresh === undefined ? '' : formatKeyLines(name, key, { variable, fresh })
  const added = checkEdited(edited, {
    ...parseEnv(secrets + line).values,
    ...env,
    ...(fresh && variable ? { [variable]: fresh } : {}),
  })
  const { path } = findPackHook(added, pack)
  // write the secret first: a gateway that watches the configuration must never read an unset variable
  if (line !== '') await writeFileAtomic(file, secrets.replace(/([^\n])$/, '$1\n') + line, privateMode)
  await writeFileAtomic(join(dir, configFile), edited, privateMode)
  context.print(`Added to hooks.presets: ${JSON.stringify(entry)}`)
  context.print(`URL     ${findHookUrl(dir, config, path)}, at your public address`)
  if (variable !== undefined && fresh !== undefined) {
    if (key?.from === 'operator')
      context.print(`Secret  ${fresh}\n        in .env as ${variable}: give it to the sender.`)
    else context.print(`Key     ${variable} in .env is a placeholder: replace it with the key that the sender shows.`)
  } else if (variable !== undefined) context.print(`Secret  ${variable}, which is set already.`)
  const channels = createRunnersAndChannels({ write: () => {}, env: {} })(added).channels
  for (const note of [...channels.values()].flatMap((channel) => describeUnknownOutcome(channel) ?? []))
    context.print(`Chat    ${note}.`)
  context.print(`\nAll steps, of which "hookloom add preset" is done:\n\n${readSteps(pack)}`)
  return exitCodes.ok
}

/** Copies a bundled transform with its fixtures into the transforms root, and prints the mapping that calls it. */
export async function addTransform(context: Context, { name }: { name: string }): Promise<number> {
  const { dir, env } = context
  const { config } = loadConfig({ dir, env })
  const known = readdirSync(resolvePackagePath('transforms'))
    .filter((file) => file.endsWith('.ts'))
    .map((file) => ({ name: file.slice(0, -'.ts'.length) }))
  const { name: stem } = findTransform(name.replace(/\.ts$/, ''), known)
  const root = await resolveTransformsRoot(dir, config.hooks)
  const module = `${stem}.ts`
  const files = [module, ...listFixtures(stem)]
  const existing = files.find((file) => existsSync(join(root, file)))
  if (existing !== undefined) {
    throw new Problem('config-invalid', `${join(root, existing)} exists already. Nothing was overwritten.`)
  }
  for (const file of files) {
    await mkdir(dirname(join(root, file)), { recursive: true, mode: codeFolderMode })
    await writeFile(join(root, file), await readFile(resolvePackagePath('transforms', file)), {
      flag: 'wx',
      mode: codeMode,
    })
    context.print(`created  ${join(root, file)}`)
  }
  const mapping = `{ "id": "${stem}", "match": ${readMatch(module)}, "transform": { "module": "${module}" } }`
  context.print(`\nAdd to hooks.mappings in ${configFile}, before others that take the same requests:\n\n  ${mapping}`)
  return exitCodes.ok
}

function findTransform<T extends { readonly name: string }>(name: string, all: readonly T[]): T {
  const found = all.find((one) => one.name === name)
  if (found !== undefined) return found
  const names = all.map((one) => one.name)
  const near = findNearest(name, names)
  const next = near === undefined ? `Known: ${names.join(', ')}.` : `Did you mean ${near}?`
  throw new Problem('usage-invalid', `There is no bundled transform "${name}". ${next}`)
}

/** A random key; for a key that only the sender can create, a placeholder that admits no request. */
function createKey(key: PresetSetup['key']): string {
  return key?.from === 'sender' ? generatePlaceholder() : randomBytes(32).toString('hex')
}

function formatKeyLines(
  name: string,
  key: PresetSetup['key'],
  { variable, fresh }: { variable: string; fresh: string },
) {
  const note =
    key?.from === 'sender' ? `# a placeholder: replace it with the key that the sender of ${name} shows\n` : ''
  return note + renderEnvLine(variable, fresh)
}

/** The variable for the preset's key: the one that `--secret-env` names, else one that is named after the preset. Undefined if the preset has no
 * key. */
function chooseVariable({ name, setup }: Preset, asked: string | undefined): string | undefined {
  if (setup?.key === undefined) {
    if (asked === undefined) return undefined
    throw new Problem('usage-invalid', `The preset "${name}" has no secret. Leave --secret-env out.`)
  }
  if (asked !== undefined && !/^[A-Za-z_][A-Za-z0-9_]*$/.test(asked)) {
    throw new Problem('usage-invalid', '--secret-env takes the name of a variable, for example GITHUB_WEBHOOK_SECRET.')
  }
  const last = setup.key.option === 'publicKey' ? 'PUBLIC_KEY' : 'WEBHOOK_SECRET'
  return (
    asked ??
    `${name
      .toUpperCase()
      .replace(/[^A-Z\d]+/g, '_')
      .replace(/^_?(?=\d)/, '_')}_${last}`
  )
}

function isSet({ dir, env }: Context, variable: string): boolean {
  if (env[variable] !== undefined) return true
  const file = join(dir, envFile)
  return existsSync(file) && Object.hasOwn(parseEnv(readFileSync(file, 'utf8')).values, variable)
}

function buildEntry(
  { name, preset: { setup } }: Pack,
  variable: string | undefined,
): string | Record<string, string | boolean> {
  if (setup === undefined) return name
  const key = setup.key === undefined || variable === undefined ? {} : { [setup.key.option]: `\${${variable}}` }
  return { name, ...key, ...setup.options }
}

function checkEdited(text: string, env: Context['env']): Config {
  const { config, problems } = parseConfig(text, env)
  if (config !== undefined) return config
  throw new Problem('config-invalid', 'The configuration would be invalid with this preset. Nothing was changed.', {
    frame: problems.join('\n'),
  })
}

function findHookUrl(dir: string, config: Config, path: string): string {
  try {
    return `${findGatewayAddress(dir, config).url}/${path}`
  } catch {
    // no gateway runs, and the configuration lets the system choose a port
    return `${config.hooks.path}/${path}`
  }
}

/** The section "Set up" of the preset's page; without it, the preset's title. */
function readSteps({ name, preset, origin }: Pack): string {
  const file = origin === undefined ? resolvePackagePath('presets', name, 'README.md') : origin.page
  if (file === undefined || !existsSync(file)) return preset.title
  const page = readFileSync(file, 'utf8')
  const [, section = ''] = /^## Set up\n\n([^]*?)(?=^`hookloom add|^## |$(?![^]))/m.exec(page) ?? []
  return section === '' ? preset.title : section.trimEnd()
}

/** The condition of the transform's mapping, as `transforms/README.md` shows it. */
export function readMatch(module: string): string {
  const page = readFileSync(resolvePackagePath('transforms', 'README.md'), 'utf8')
  const row = page.split('\n').find((line) => line.startsWith(`| [${module}]`))
  return /`\{"match": (\{.*\})\}`/.exec(row ?? '')?.[1] ?? '{}'
}

function listFixtures(stem: string): string[] {
  const folder = `${stem}.fixtures`
  if (!existsSync(resolvePackagePath('transforms', folder))) return []
  return readdirSync(resolvePackagePath('transforms', folder))
    .toSorted()
    .map((name) => join(folder, name))
}
