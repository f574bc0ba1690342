// Finds the modules of integrators: in a folder below hooks/ for each kind, and presets and plugins also as installed packages. A link leads out
// of the folder that is searched only if its owner made it.
import { readdir, realpath, stat } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { explainUntrustedLink } from '../../base/links.ts'
import { Problem } from '../../core/model/problem.ts'
import { fileNamePattern } from '../../base/names.ts'
import { packageNamePattern } from '../../core/model/values.ts'
import type { ModuleFile } from '../../core/transforms/modules/build.ts'
import { followLinks, isInside, isMissing, moduleExtensions, resolveRealPath } from '../../core/transforms/root.ts'

const folders = {
  preset: 'hooks/presets',
  verifier: 'hooks/verifiers',
  channel: 'hooks/channels',
  plugin: 'hooks',
} as const
const packageFolders = ['hooks/node_modules', 'node_modules']

export type ModuleKind = keyof typeof folders

/** `place`: the path below `root` by which it was found, before links are followed. Undefined for a package. */
export type FoundFile = ModuleFile & { readonly place?: string }

/** The name in messages of a module that does not exist. A plugin is named as the configuration names it. */
export function toExpectedLabel(kind: ModuleKind, name: string): string {
  return kind === 'plugin' ? name : `${folders[kind]}/${name}.ts`
}

/** The module of this name; undefined if there is none. Throws `config-invalid` for a link that is not followed. */
export async function findModuleFile(dir: string, kind: ModuleKind, name: string): Promise<FoundFile | undefined> {
  const isPackage = kind === 'preset' || (kind === 'plugin' && !name.startsWith('./'))
  return (await findOwnFile(dir, kind, name)) ?? (isPackage ? findPackage(dir, name) : undefined)
}

/** The same, but no package. */
export async function findOwnFile(dir: string, kind: ModuleKind, name: string): Promise<FoundFile | undefined> {
  const folder = folders[kind]
  const places = listPlaces(kind, name)
  if (places.length === 0) return undefined
  const top = await resolveRealPath(dir)
  const base = join(top, folder)
  const root = await followLinks(top, { place: base, allowed: base })
  for (const place of places) {
    const path = join(root, place)
    const file = await realpath(path).catch((error: unknown) => {
      if (!isMissing(error)) throw error
      return undefined
    })
    if (file === undefined) continue
    const why = isInside(root, file) ? undefined : await explainUntrustedLink(root, { path, real: file })
    if (why !== undefined) throw new Problem('config-invalid', `${folder}/${place} ${why}.`)
    if (await isFile(file)) return { root, file: isInside(root, file) ? file : path, folder, place }
  }
  return undefined
}

/** The names of all modules in the folder of a kind. */
export async function listNames(dir: string, kind: ModuleKind): Promise<string[]> {
  const names = await readdir(join(dir, folders[kind])).catch(() => [])
  return names
    .filter((name) => moduleExtensions.some((extension) => extension === extname(name)) && !name.endsWith('.d.ts'))
    .map((name) => name.slice(0, -extname(name).length))
    .toSorted()
}

/** Where a module of this name may be: `<name>.ts` or another extension, of a preset also `<name>/preset.ts`; a plugin names its file. */
function listPlaces(kind: ModuleKind, name: string): string[] {
  if (kind === 'plugin') return name.startsWith('./') ? [join(name)] : []
  if (!fileNamePattern.test(name)) return []
  const stems = kind === 'preset' ? [name, join(name, 'preset')] : [name]
  return stems.flatMap((stem) => moduleExtensions.map((extension) => stem + extension))
}

/** The package of this name in the node_modules of `hooks/`, or else of the config directory. Throws `config-invalid` if a link leads out. */
async function findPackage(dir: string, name: string): Promise<FoundFile | undefined> {
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
    return { root, file, folder, packageName: name }
  }
  return undefined
}

async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isFile() === true
}
