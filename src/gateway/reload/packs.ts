// Loads preset packs. A pack is bundled, or comes from hooks/presets or from a package in the config directory.
import { dirname, join } from 'node:path'
import { presets } from '../../../presets/index.ts'
import { createLoader, type Loaded, type Loader } from './loader.ts'
import { findModuleFile, findOwnFile, type FoundFile } from './module-files.ts'
import { findNearest } from '../../base/text.ts'
import type { Preset } from '../../model/preset.ts'
import { Problem } from '../../core/model/problem.ts'
import { type ModuleReport, buildReport } from '../../core/reload/gate.ts'

/**
 * The source of a preset that is not bundled. `fixtures`: the path of the folder of its fixtures. `page`: the path of its README; undefined for a
 * preset that is a single file. Neither need exist.
 */
type PackOrigin = { readonly fixtures: string; readonly page: string | undefined } & Pick<
  Extract<Loaded<'preset'>, { kind: 'sound' }>,
  'label' | 'hash' | 'describeThrown'
>

/** `name`: the name in the configuration. `origin` is undefined for a bundled preset. */
export type Pack = { readonly name: string; readonly preset: Preset; readonly origin: PackOrigin | undefined }

/** `where`: the place for messages, such as `hooks.presets[0]`. */
type WantedPack = { readonly name: string; readonly where: string }

/** The pack of each name, without repeats. A name without a pack is left out. Throws `config-invalid` with place and file for an invalid pack. */
export async function loadPacks(wanted: readonly WantedPack[], loader: Loader): Promise<readonly Pack[]> {
  const firsts = wanted.filter(({ name }, index) => wanted.findIndex((other) => other.name === name) === index)
  const found = await Promise.all(firsts.map(async (one) => ({ ...one, file: await findFile(loader.dir, one) })))
  const files = found.flatMap(({ file }) => file ?? [])
  const loaded = await loader.load('preset', files)
  return found.flatMap(({ name, where, file }): Pack[] => {
    const bundled = findBundled(name)
    if (bundled !== undefined) return [{ name, preset: bundled, origin: undefined }]
    const module = file && loaded[files.indexOf(file)]
    return file === undefined || module === undefined ? [] : [checkPack({ name, where }, file, module)]
  })
}

/** The pack that a command names, whether it is enabled or not. Throws `config-invalid` if it is invalid. */
export async function findPack(dir: string, name: string): Promise<Pack | undefined> {
  const [pack] = await loadPacks([{ name, where: `The preset "${name}"` }], createLoader(dir))
  return pack
}

/** Reports for each pack that is not bundled whether its code is new. */
export function reportPacks(packs: readonly Pack[], serving: readonly Pack[] = []): ModuleReport[] {
  const hashes = new Set(serving.map(({ origin }) => origin?.hash))
  return packs.flatMap(({ origin }) =>
    origin === undefined ? [] : buildReport(origin.label, hashes.has(origin.hash) ? 'same' : 'live'),
  )
}

/** Suggests the most similar name, or the file of a new preset. */
export function describeUnknownPreset(name: string): string {
  const names = presets.map((preset) => preset.name)
  const near = findNearest(name, names)
  if (near !== undefined) return `there is no preset "${name}". Did you mean ${near}?`
  const own = `your own: hooks/presets/${name}.ts, or a package in node_modules`
  return `there is no preset "${name}". Presets: ${names.join(', ')}; ${own}.`
}

function findBundled(name: string): Preset | undefined {
  return presets.find((preset) => preset.name === name)
}

async function findFile(dir: string, { name, where }: WantedPack): Promise<FoundFile | undefined> {
  const isBundled = findBundled(name) !== undefined
  try {
    const file = await (isBundled ? findOwnFile : findModuleFile)(dir, 'preset', name)
    if (!isBundled || file === undefined) return file
  } catch (error) {
    throw error instanceof Problem ? new Problem('config-invalid', `${where}: ${error.message}`) : error
  }
  // a bundled preset has priority, so the file would never be used
  throw new Problem('config-invalid', `${where}: "${name}" is a bundled preset: rename the one in hooks/presets.`)
}

function checkPack({ name, where }: WantedPack, file: FoundFile, module: Loaded<'preset'>): Pack {
  if (module.kind === 'broken') {
    const { detail, frame } = module.problem
    throw new Problem('config-invalid', `${where}: ${detail}`, frame === undefined ? {} : { frame })
  }
  const { label, value: preset, hash, describeThrown } = module
  if (file.packageName === undefined && preset.name !== name) {
    throw new Problem('config-invalid', `${where}: ${label} must define the preset "${name}", found another name.`)
  }
  return { name, preset, origin: { label, ...findPages(file, name), hash, describeThrown } }
}

function findPages({ root, file, place = '' }: FoundFile, name: string): Pick<PackOrigin, 'fixtures' | 'page'> {
  if (place !== '' && dirname(place) === '.') return { fixtures: join(root, `${name}.fixtures`), page: undefined }
  const folder = place === '' ? file : join(root, name)
  return { fixtures: join(folder, 'fixtures'), page: join(folder, 'README.md') }
}
