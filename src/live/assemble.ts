// From a configuration to the mappings of a generation: presets behind the operator's own.
import { presets } from '../../presets/index.ts'
import { nearestOf } from '../model/nearest.ts'
import type { Config } from '../model/config.ts'
import { toMappingIssues } from '../model/config-rules.ts'
import { toIssueSentence } from '../model/issue.ts'
import { Mapping } from '../model/mapping.ts'
import type { Preset, PresetParts } from '../model/preset.ts'
import { Problem } from '../model/problem.ts'
import type { NamedMapping } from '../pipeline/compile.ts'

/** Every mapping in order of priority: the operator's first, then each preset's. */
export function toMappings(config: Config): NamedMapping[] {
  const own = config.hooks.mappings.map((mapping, index) => ({ ...mapping, id: mapping.id ?? `mapping-${index + 1}` }))
  const packed = config.hooks.presets.flatMap((entry, index) => toPresetMappings(entry, config, index))
  const all = [...own, ...packed]
  const twice = all.find(({ id }, index) => all.findIndex((other) => other.id === id) !== index)
  if (twice !== undefined) {
    throw new Problem(
      'config-invalid',
      `Two mappings have the id "${twice.id}". Give one of hooks.mappings another id.`,
    )
  }
  return all
}

function toPresetMappings(entry: Config['hooks']['presets'][number], config: Config, index: number): NamedMapping[] {
  const { name, ...given } = typeof entry === 'string' ? { name: entry } : entry
  const preset = findPreset(name, index)
  const { mappings, maxBodyBytes } = build(preset, { ...toSection(config, name), ...given }, index)
  return mappings.map((input, at) => {
    const id = input.id ?? (mappings.length === 1 ? name : `${name}-${at + 1}`)
    const mapping = Mapping.parse(input)
    const [issue] = toMappingIssues(mapping, config, ['hooks', 'presets', index])
    if (issue !== undefined) throw new Problem('config-invalid', `Preset "${name}": ${issue.text}`)
    return { ...mapping, id, maxBodyBytes }
  })
}

function findPreset(name: string, index: number): Preset {
  const preset = presets.find((candidate) => candidate.name === name)
  if (preset !== undefined) return preset
  const names = presets.map((candidate) => candidate.name)
  const near = nearestOf(name, names)
  const hint = near === undefined ? `Presets: ${names.join(', ')}.` : `Did you mean "${near}"?`
  throw new Problem('config-invalid', `hooks.presets[${index}]: there is no preset "${name}". ${hint}`)
}

/** `hooks.<name>`, where the configuration has a section of the preset's name. */
function toSection(config: Config, name: string): object {
  return name === 'gmail' ? (config.hooks.gmail ?? {}) : {}
}

function build(preset: Preset, options: object, index: number): PresetParts {
  const parsed = preset.options.safeParse(options)
  if (parsed.success) return preset.build(parsed.data)
  const lines = parsed.error.issues.map((issue) => `hooks.presets[${index}]: ${toIssueSentence(issue, options)}.`)
  throw new Problem('config-invalid', `The options of preset "${preset.name}" do not hold`, { frame: lines.join('\n') })
}
