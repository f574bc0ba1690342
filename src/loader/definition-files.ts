// Where outsiders' presets and verifiers lie: in folders of the config directory that no link leads out of, or installed beside it.
import { readdir, realpath, stat } from 'node:fs/promises'
import { extname, join, sep } from 'node:path'
import { Problem } from '../model/problem.ts'
import type { ModuleFile } from './modules/build.ts'
import { isInside, isMissing, moduleExtensions, toRealPath } from './root.ts'

const verifiersFolder = 'hooks/verifiers'
const presetsFolder = 'hooks/presets'
const packageFolders = ['hooks/node_modules', 'node_modules']

/** A name that a file can have and that leads nowhere else. */
const plainName = /^[A-Za-z\d][\w.-]{0,99}$/
const packageName = /^(?:@[a-z\d~-][\w.~-]*\/)?[a-z\d~-][\w.~-]*$/

/** `fixtures` and `page`: where its samples and its README would be. */
export type PresetFile = ModuleFile & {
  readonly label: string
  readonly fixtures: string
  readonly page: string | undefined
}

/** Whether a scheme in code can have this name. */
export function isVerifierName(scheme: string): boolean {
  return plainName.test(scheme)
}

/** How messages call the file of a scheme that is not there. */
export function toVerifierLabel(scheme: string): string {
  return `${verifiersFolder}/${scheme}.ts`
}

/** The module of a scheme; undefined: there is none. Throws `config-invalid` where a link leads out of the folder. */
export async function findVerifierFile(dir: string, scheme: string): Promise<ModuleFile | undefined> {
  if (!isVerifierName(scheme)) return undefined
  return findFirst(
    dir,
    verifiersFolder,
    moduleExtensions.map((extension) => scheme + extension),
  )
}

/** The names of all schemes that have a module. */
export async function listVerifierNames(dir: string): Promise<string[]> {
  const names = await readdir(join(dir, verifiersFolder)).catch(() => [])
  return names
    .filter((name) => moduleExtensions.some((extension) => extension === extname(name)) && !name.endsWith('.d.ts'))
    .map((name) => name.slice(0, -extname(name).length))
    .toSorted()
}

/** `<name>.ts` or `<name>/preset.ts` of hooks/presets. Throws `config-invalid` where a link leads out of the folder. */
export async function findPresetFile(dir: string, name: string): Promise<PresetFile | undefined> {
  if (!plainName.test(name)) return undefined
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

/** The package of this name in the node_modules of the config directory, or of its hooks folder. */
export async function findPresetPackage(dir: string, name: string): Promise<PresetFile | undefined> {
  if (!packageName.test(name)) return undefined
  for (const folder of packageFolders) {
    const root = await toRealPath(join(dir, folder))
    const file = join(root, name)
    if (!(await isFile(join(file, 'package.json')))) continue
    if (!isInside(root, await realpath(file))) {
      throw new Problem(
        'config-invalid',
        `${folder}/${name} is a link that leads out of ${folder}: install the package itself.`,
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
  const base = join(await toRealPath(dir), folder)
  const root = await toRealPath(base)
  for (const name of names) {
    const file = await realpath(join(root, name)).catch((error: unknown) => {
      if (!isMissing(error)) throw error
      return undefined
    })
    if (file === undefined) continue
    if (root !== base || !isInside(root, file)) {
      throw new Problem('config-invalid', `${folder}/${name} leads out of ${folder} of the config directory.`)
    }
    if (await isFile(file)) return { root, file, folder }
  }
  return undefined
}

async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isFile() === true
}
