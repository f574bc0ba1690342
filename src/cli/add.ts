// Adds a bundled preset to the configuration, or a bundled transform to the transforms root. Overwrites nothing.
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { presets } from '../../presets/index.ts'
import { configFile, envFile, loadConfig, parseConfig } from '../loader/config.ts'
import { editConfig, privateMode, writeFileAtomic } from '../loader/config-file.ts'
import { parseEnv, toEnvLine } from '../loader/env.ts'
import { nearestOf } from '../model/nearest.ts'
import { resolveTransformsRoot } from '../loader/root.ts'
import type { Config } from '../model/config.ts'
import type { Preset } from '../model/preset.ts'
import { exitCodes, Problem } from '../model/problem.ts'
import type { Context } from './context.ts'
import { toAddress } from './gateway.ts'
import { inPackage } from './package.ts'

/**
 * Puts the preset into hooks.presets, every comment kept, and a fresh secret into `.env` where its variable is not set: a
 * configuration with an unset variable does not load, and a random secret lets nobody in.
 */
export async function addPreset(
  context: Context,
  { name, secretEnv }: { name: string; secretEnv: string | undefined },
): Promise<number> {
  const { dir, env } = context
  const { config, text } = loadConfig({ dir, env })
  const preset = findOne(name, presets, 'preset')
  if (config.hooks.presets.some((entry) => (typeof entry === 'string' ? entry : entry.name) === name)) {
    throw new Problem('config-invalid', `The preset "${name}" is in hooks.presets already. Nothing was changed.`)
  }
  const key = preset.setup?.key
  const variable = toVariable(preset, secretEnv)
  const fresh = variable === undefined || isSet(context, variable) ? undefined : randomBytes(32).toString('hex')
  const entry = toEntry(preset, variable)
  const edited = editConfig(text, ['hooks', 'presets', -1], entry)
  const file = join(dir, envFile)
  const secrets = existsSync(file) ? await readFile(file, 'utf8') : ''
  const line = variable === undefined || fresh === undefined ? '' : toEnvLine(variable, fresh)
  checkEdited(edited, {
    ...parseEnv(secrets + line).values,
    ...env,
    ...(fresh && variable ? { [variable]: fresh } : {}),
  })
  // the secret first: a gateway that watches the configuration must never meet a variable that is not set
  if (line !== '') await writeFileAtomic(file, secrets.replace(/([^\n])$/, '$1\n') + line, privateMode)
  await writeFileAtomic(join(dir, configFile), edited, privateMode)
  context.print(`hooks.presets has ${JSON.stringify(entry)} now.`)
  context.print(`URL     ${toUrl(dir, config, name)}, behind your public address`)
  if (variable !== undefined && fresh !== undefined) {
    if (key?.from === 'operator')
      context.print(`Secret  ${fresh}\n        in .env as ${variable}: give it to the sender.`)
    else
      context.print(
        `Key     ${variable} in .env is a placeholder that lets nobody in: put there what the sender shows.`,
      )
  } else if (variable !== undefined) context.print(`Secret  ${variable}, which is set already.`)
  context.print(`\n${readSteps(name)}`)
  return exitCodes.ok
}

/** Copies a bundled transform with its fixtures into the transforms root, and prints the mapping that calls it. */
export async function addTransform(context: Context, { name }: { name: string }): Promise<number> {
  const { dir, env } = context
  const { config } = loadConfig({ dir, env })
  const known = readdirSync(inPackage('transforms'))
    .filter((file) => file.endsWith('.ts'))
    .map((file) => ({ name: file.slice(0, -'.ts'.length) }))
  const { name: stem } = findOne(name.replace(/\.ts$/, ''), known, 'transform')
  const root = await resolveTransformsRoot({ configDir: dir, transformsDir: config.hooks.transformsDir })
  const module = `${stem}.ts`
  const files = [module, ...listFixtures(stem)]
  const there = files.filter((file) => existsSync(join(root, file)))
  if (there.length > 0) {
    throw new Problem('config-invalid', `${join(root, there[0] ?? '')} is there already. Nothing was overwritten.`)
  }
  for (const file of files) {
    await mkdir(dirname(join(root, file)), { recursive: true })
    await writeFile(join(root, file), await readFile(inPackage('transforms', file)), { flag: 'wx' })
    context.print(`created  ${join(root, file)}`)
  }
  const mapping = { id: stem, match: { path: stem.split('-')[0] }, transform: { module } }
  context.print(`\nAdd to hooks.mappings in ${configFile}:\n\n  ${JSON.stringify(mapping)}`)
  return exitCodes.ok
}

function findOne<T extends { readonly name: string }>(name: string, all: readonly T[], what: string): T {
  const found = all.find((one) => one.name === name)
  if (found !== undefined) return found
  const names = all.map((one) => one.name)
  const near = nearestOf(name, names)
  const next = near === undefined ? `There are: ${names.join(', ')}.` : `Did you mean ${near}?`
  throw new Problem('usage-invalid', `There is no bundled ${what} "${name}". ${next}`)
}

/** The variable of the key; undefined where the preset has none. */
function toVariable({ name, setup }: Preset, asked: string | undefined): string | undefined {
  if (setup?.key === undefined) {
    if (asked === undefined) return undefined
    throw new Problem('usage-invalid', `The preset "${name}" takes no secret from the configuration.`)
  }
  if (asked !== undefined && !/^[A-Za-z_][A-Za-z0-9_]*$/.test(asked)) {
    throw new Problem('usage-invalid', '--secret-env takes the name of a variable, as in GITHUB_WEBHOOK_SECRET.')
  }
  const last = setup.key.option === 'publicKey' ? 'PUBLIC_KEY' : 'WEBHOOK_SECRET'
  return asked ?? `${name.toUpperCase().replaceAll('-', '_')}_${last}`
}

function isSet({ dir, env }: Context, variable: string): boolean {
  if (env[variable] !== undefined) return true
  const file = join(dir, envFile)
  return existsSync(file) && Object.hasOwn(parseEnv(readFileSync(file, 'utf8')).values, variable)
}

function toEntry({ name, setup }: Preset, variable: string | undefined): string | Record<string, string | boolean> {
  if (setup === undefined) return name
  const key = setup.key === undefined || variable === undefined ? {} : { [setup.key.option]: `\${${variable}}` }
  return { name, ...key, ...setup.options }
}

function checkEdited(text: string, env: Context['env']): void {
  const { config, problems } = parseConfig(text, env)
  if (config !== undefined) return
  throw new Problem('config-invalid', 'The configuration would not hold with this preset. Nothing was changed.', {
    frame: problems.join('\n'),
  })
}

function toUrl(dir: string, config: Config, name: string): string {
  try {
    return `${toAddress(dir, config).url}/${name}`
  } catch {
    // no gateway runs, and its port is any
    return `${config.hooks.path}/${name}`
  }
}

/** The numbered steps of the preset's page. */
function readSteps(name: string): string {
  const page = readFileSync(inPackage('presets', name, 'README.md'), 'utf8')
  const [, section = ''] = /^## Set up\n\n([^]*?)(?=^`hookloom add|^## |$(?![^]))/m.exec(page) ?? []
  return section.trimEnd()
}

function listFixtures(stem: string): string[] {
  const folder = `${stem}.fixtures`
  if (!existsSync(inPackage('transforms', folder))) return []
  return readdirSync(inPackage('transforms', folder))
    .toSorted()
    .map((name) => join(folder, name))
}
