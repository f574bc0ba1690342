// Creates a config directory, or adds its missing files. Never overwrites a file.
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { tryParseJson } from '../../base/json.ts'
import { configFile, envFile } from '../../gateway/config/text.ts'
import { codeFolderMode, codeMode, privateMode } from '../../base/files.ts'
import { reportUnwritable, writeFileAtomic } from '../../gateway/config/config-file.ts'
import { parseEnv, renderEnvLine } from '../../gateway/config/env.ts'
import { renderConfigSchema } from '../../gateway/config/schema.ts'
import { renderEnv, renderNewConfig } from './new-config.ts'
import { resolveDependencyPath, resolvePackagePath } from '../../base/package.ts'

const sample = 'github-pull-request'
export const schemaFile = 'hookloom.schema.json'
const transformsDir = join('hooks', 'transforms')

/** `file`: relative to the config directory. */
export type FileResult = { readonly file: string; readonly what: 'created' | 'changed' | 'exists' }

/** Throws `config-invalid` if the directory cannot be written. */
export function createConfigFolder(dir: string): Promise<FileResult[]> {
  return reportUnwritable(dir, () => createFiles(dir))
}

async function createFiles(dir: string): Promise<FileResult[]> {
  await mkdir(dir, { recursive: true, mode: 0o700 })
  const made = [await createMissingFile(dir, configFile, renderNewConfig({ schema: `./${schemaFile}` }), privateMode)]
  // a new configuration needs new tokens; an existing configuration would not use them
  if (made[0]?.what === 'created') made.push(await createEnv(dir))
  else if (existsSync(join(dir, envFile))) made.push({ file: envFile, what: 'exists' })
  made.push(await createMissingFile(dir, schemaFile, renderConfigSchema()))
  for (const [file, text] of await readSample())
    made.push(await createMissingFile(dir, join(transformsDir, file), text))
  made.push(await createEditorConfig(dir))
  return made
}

/** Creates the tsconfig.json that lets editors understand the modules of this directory, unless it exists. */
export function createEditorConfig(dir: string): Promise<FileResult> {
  return createMissingFile(dir, join('hooks', 'tsconfig.json'), renderEditorConfig())
}

/**
 * Renews the tsconfig.json if its paths lead to an installation that is gone, as after an update by npx. A file that somebody edited stays. Never
 * rejects: the gateway does not read the file.
 */
export async function renewEditorConfig(dir: string): Promise<void> {
  const file = join(dir, 'hooks', 'tsconfig.json')
  const text = await readFile(file, 'utf8').catch(() => '')
  const options = EditorConfig.safeParse(tryParseJson(text)).data?.compilerOptions
  const [types] = options?.paths.hookloom ?? []
  if (options === undefined || types === undefined || existsSync(types)) return
  if (text === renderEditorConfig(options)) await writeFileAtomic(file, renderEditorConfig(), codeMode).catch(() => {})
}

/** The parts of the tsconfig.json that depend on the installation. */
const InstalledPaths = z.object({
  typeRoots: z.array(z.string()),
  paths: z.strictObject({
    hookloom: z.array(z.string()),
    // an older file does not have it
    'hookloom/testing': z.array(z.string()).optional(),
    zod: z.array(z.string()),
    'zod/v4': z.array(z.string()),
  }),
})
const EditorConfig = z.object({ compilerOptions: InstalledPaths })

/** The path of a fixture of the sample. */
export function toFixturePath(dir: string, name: string): string {
  return join(dir, transformsDir, `${sample}.fixtures`, name)
}

export async function createMissingFile(
  dir: string,
  file: string,
  text: string | Uint8Array,
  mode = codeMode,
): Promise<FileResult> {
  await mkdir(dirname(join(dir, file)), { recursive: true, mode: codeFolderMode })
  try {
    await writeFile(join(dir, file), text, { flag: 'wx', mode })
    return { file, what: 'created' }
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return { file, what: 'exists' }
    throw error
  }
}

/** An existing `.env` keeps its content, and gets the variables that the new configuration reads. */
async function createEnv(dir: string): Promise<FileResult> {
  const tokens = { token: generateToken(), gatewayToken: generateToken() }
  const made = await createMissingFile(dir, envFile, renderEnv(tokens), privateMode)
  if (made.what === 'created') return made
  const text = await readFile(join(dir, envFile), 'utf8')
  const { values } = parseEnv(text)
  const missing = [
    ['HOOKLOOM_TOKEN', tokens.token] as const,
    ['HOOKLOOM_GATEWAY_TOKEN', tokens.gatewayToken] as const,
  ].filter(([name]) => values[name] === undefined)
  if (missing.length === 0) return made
  const lines = missing.map(([name, value]) => renderEnvLine(name, value))
  await writeFileAtomic(join(dir, envFile), [text.replace(/([^\n])$/, '$1\n'), ...lines].join(''), privateMode)
  return { file: envFile, what: 'changed' }
}

export function generateToken(): string {
  return randomBytes(32).toString('base64url')
}

async function readSample(): Promise<[string, string][]> {
  const fixtures = await readdir(resolvePackagePath('transforms', `${sample}.fixtures`))
  const files = [`${sample}.ts`, ...fixtures.toSorted().map((name) => join(`${sample}.fixtures`, name))]
  return Promise.all(
    files.map(async (file): Promise<[string, string]> => [
      file,
      await readFile(resolvePackagePath('transforms', file), 'utf8'),
    ]),
  )
}

/** The tsconfig.json for editors. The gateway builds the modules and resolves `hookloom` and `zod` without this file. */
export function renderEditorConfig({ typeRoots, paths } = findInstalledPaths()): string {
  const compilerOptions = {
    target: 'ES2023',
    lib: ['ES2023'],
    module: 'ESNext',
    moduleResolution: 'Bundler',
    typeRoots,
    types: ['node'],
    paths,
    allowImportingTsExtensions: true,
    allowJs: true,
    isolatedModules: true,
    noEmit: true,
    resolveJsonModule: true,
    skipLibCheck: true,
    strict: true,
  }
  return `${JSON.stringify({ compilerOptions }, undefined, 2)}\n`
}

function findInstalledPaths(): z.infer<typeof InstalledPaths> {
  return {
    typeRoots: [dirname(resolveDependencyPath('@types/node'))],
    paths: {
      hookloom: [resolvePackagePath('dist', 'define.d.ts')],
      'hookloom/testing': [resolvePackagePath('dist', 'testing.d.ts')],
      zod: [resolveDependencyPath('zod')],
      'zod/v4': [resolveDependencyPath('zod', 'v4')],
    },
  }
}
