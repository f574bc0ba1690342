// Loads preset packs. A pack is bundled, or comes from hooks/presets or from a package in the config directory.
import { presets } from '../../../presets/index.ts'
import { findPresetFile, findPresetPackage, type PresetFile } from './definition-files.ts'
import { createDefinitions, type Definition, type Definitions } from './definitions.ts'
import { safeParsePreset } from '../../model/definitions.ts'
import { findNearest } from '../../base/text.ts'
import type { Preset } from '../../model/preset.ts'
import { Problem } from '../../core/model/problem.ts'
import { type ModuleReport, buildReport } from '../../core/reload/gate.ts'

/** The source of a preset that is not bundled. */
type PackOrigin = Pick<PresetFile, 'label' | 'fixtures' | 'page'> & Pick<Definition, 'hash' | 'describeThrown'>

/** `name`: the name in the configuration. `origin` is undefined for a bundled preset. */
export type Pack = { readonly name: string; readonly preset: Preset; readonly origin: PackOrigin | undefined }

/** `where`: the place for messages, such as `hooks.presets[0]`. */
type WantedPack = { readonly name: string; readonly where: string }

/** The pack of each name, without repeats. A name without a pack is left out. Throws `config-invalid` with place and file for an invalid pack. */
export async function loadPacks(
  dir: string,
  wanted: readonly WantedPack[],
  definitions: Definitions,
): Promise<readonly Pack[]> {
  const firsts = wanted.filter(({ name }, index) => wanted.findIndex((other) => other.name === name) === index)
  const found = await Promise.all(firsts.map(async (one) => ({ ...one, file: await findFile(dir, one) })))
  const files = found.flatMap(({ file }) => file ?? [])
  const loaded = await definitions.load(files)
  return found.flatMap(({ name, where, file }) => {
    const bundled = findBundled(name)
    if (bundled !== undefined) return { name, preset: bundled, origin: undefined }
    const definition = file && loaded[files.indexOf(file)]
    return file === undefined || definition === undefined ? [] : checkPack({ name, where }, file, definition)
  })
}

/** The pack that a command names, whether it is enabled or not. Throws `config-invalid` if it is invalid. */
export async function findPack(dir: string, name: string): Promise<Pack | undefined> {
  const [pack] = await loadPacks(dir, [{ name, where: `The preset "${name}"` }], createDefinitions())
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

async function findFile(dir: string, { name, where }: WantedPack): Promise<PresetFile | undefined> {
  try {
    const own = await findPresetFile(dir, name)
    if (findBundled(name) === undefined) return own ?? (await findPresetPackage(dir, name))
    if (own === undefined) return undefined
  } catch (error) {
    throw error instanceof Problem ? new Problem('config-invalid', `${where}: ${error.message}`) : error
  }
  // a bundled preset has priority, so the file would never be used
  throw new Problem('config-invalid', `${where}: "${name}" is a bundled preset: rename the one in hooks/presets.`)
}

function checkPack({ name, where }: WantedPack, file: PresetFile, definition: Definition | Problem): Pack {
  const { label, fixtures, page } = file
  if (definition instanceof Problem) {
    const { message, frame } = definition
    throw new Problem('config-invalid', `${where}: ${message}`, frame === undefined ? {} : { frame })
  }
  const parsed = safeParsePreset(definition.value)
  if (!parsed.ok) {
    throw new Problem('config-invalid', `${where}: ${label} must export a preset by default: definePreset({ … }).`, {
      frame: parsed.faults.map((fault) => `${label}: ${fault}.`).join('\n'),
    })
  }
  const { value: preset } = parsed
  if (file.packageName === undefined && preset.name !== name) {
    throw new Problem('config-invalid', `${where}: ${label} must define the preset "${name}", found another name.`)
  }
  const { hash, describeThrown } = definition
  return { name, preset, origin: { label, fixtures, page, hash, describeThrown } }
}
