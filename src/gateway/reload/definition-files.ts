// Finds the modules of integrators: verifiers, channels and presets in their folders below hooks/, and presets also as installed packages. A link
// leads out of the folder that is searched only if its owner made it.
import { readdir, realpath, stat } from 'node:fs/promises'
import { extname, join, sep } from 'node:path'
import { explainUntrustedLink } from '../../base/links.ts'
import { Problem } from '../../core/model/problem.ts'
import { fileNamePattern } from '../../base/names.ts'
import { packageNamePattern } from '../../core/model/values.ts'
import type { ModuleFile } from '../../core/transforms/modules/build.ts'
import { followLinks, isInside, isMissing, moduleExtensions, resolveRealPath } from '../../core/transforms/root.ts'

const folders = { verifier: 'hooks/verifiers', channel: 'hooks/channels' } as const
const presetsFolder = 'hooks/presets'
const packageFolders = ['hooks/node_modules', 'node_modules']

/**
 * The module of a preset. `fixtures`: the path of the folder of its fixtures. `page`: the path of its README; undefined for a preset that is a
 * single file. Neither need exist.
 */
export type PresetFile = ModuleFile & {
  readonly label: string
  readonly fixtures: string
  readonly page: string | undefined
}

/** Kinds of modules that are named after their file. */
export type NamedModuleKind = keyof typeof folders

/** Whether a verifier or a channel in code can have this name. */
export function isPlainName(name: string): boolean {
  return fileNamePattern.test(name)
}

/** The file name of a missing module, for messages. */
export function toExpectedFile(kind: NamedModuleKind, name: string): string {
  return `${folders[kind]}/${name}.ts`
}

/** The module of this name; undefined if there is none. Throws `config-invalid` for a link that is not followed. */
export async function findNamedFile(dir: string, kind: NamedModuleKind, name: string): Promise<ModuleFile | undefined> {
  if (!isPlainName(name)) return undefined
  return findFirst(
    dir,
    folders[kind],
    moduleExtensions.map((extension) => name + extension),
  )
}

/** The names of all modules of a kind. */
export async function listNames(dir: string, kind: NamedModuleKind): Promise<string[]> {
  const names = await readdir(join(dir, folders[kind])).catch(() => [])
  return names
    .filter((name) => moduleExtensions.some((extension) => extension === extname(name)) && !name.endsWith('.d.ts'))
    .map((name) => name.slice(0, -extname(name).length))
    .toSorted()
}

/** Finds `<name>.ts` or `<name>/preset.ts`, or another extension, in hooks/presets. Throws `config-invalid` for a link that is not followed. */
export async function findPresetFile(dir: string, name: string): Promise<PresetFile | undefined> {
  if (!fileNamePattern.test(name)) return undefined
  const alone = await findFirst(
    dir,
    presetsFolder,
    moduleExtensions.map((extension) => name + extension),
  )
  if (alone !== undefined) {
    return { ...alone, label: toLabel(alone), fixtures: join(alone.root, `${name}.fixtures`), page: undefined }
  }
  const inFolder = await findFirst(
    dir,
    presetsFolder,
    moduleExtensions.map((extension) => join(name, `preset${extension}`)),
  )
  return inFolder && toPresetFile(inFolder, join(inFolder.root, name))
}

/**
 * The file of a plugin below hooks/, such as `./plugins/zulip.ts`, or the package of this name; undefined if there is none. Throws
 * `config-invalid` for a link that is not followed.
 */
export async function findPluginFile(
  dir: string,
  name: string,
): Promise<(ModuleFile & { readonly label: string }) | undefined> {
  if (!name.startsWith('./')) return findPresetPackage(dir, name)
  const found = await findFirst(dir, 'hooks', [join(name)])
  return found && { ...found, label: toLabel(found) }
}

/** The package of this name in the node_modules of `hooks/`, or else of the config directory. Throws `config-invalid` if a link leads out. */
export async function findPresetPackage(dir: string, name: string): Promise<PresetFile | undefined> {
  if (!packageNamePattern.test(name)) return undefined
  for (const folder of packageFolders) {
    const root = await resolveRealPath(join(dir, folder))
    const file = join(root, name)
    if (!(await isFile(join(file, 'package.json')))) continue
    if (!isInside(root, await realpath(file))) {
      throw new Problem(
        'config-invalid',
        `${folder}/${name} is a link that leads out of ${folder}: install the package itself (npm install --install-links <folder>).`,
      )
    }
    return toPresetFile({ root, file, folder, packageName: name }, file)
  }
  return undefined
}

function toPresetFile(module: ModuleFile, folder: string): PresetFile {
  return { ...module, label: toLabel(module), fixtures: join(folder, 'fixtures'), page: join(folder, 'README.md') }
}

function toLabel({ root, file, folder = '' }: ModuleFile): string {
  return `${folder}/${file
    .slice(root.length + 1)
    .split(sep)
    .join('/')}`
}

async function findFirst(dir: string, folder: string, names: readonly string[]): Promise<ModuleFile | undefined> {
  const top = await resolveRealPath(dir)
  const base = join(top, folder)
  const root = await followLinks(top, { place: base, allowed: base })
  for (const name of names) {
    const path = join(root, name)
    const file = await realpath(path).catch((error: unknown) => {
      if (!isMissing(error)) throw error
      return undefined
    })
    if (file === undefined) continue
    const why = isInside(root, file) ? undefined : await explainUntrustedLink(root, { path, real: file })
    if (why !== undefined) throw new Problem('config-invalid', `${folder}/${name} ${why}.`)
    if (await isFile(file)) return { root, file: isInside(root, file) ? file : path, folder }
  }
  return undefined
}

async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isFile() === true
}
