// Turns a configuration into the mappings of a generation, and loads the presets, verifiers and channels in code that it names. The mappings
// of presets follow those of the operator.
import { createRunnersAndChannels } from '../jobs/runners-and-channels.ts'
import { findRecoverFault } from '../config/recover-issues.ts'
import { createLoader, type Loader } from './loader.ts'
import type { BuildInput } from '../../core/transforms/read.ts'
import type { LoadedPlugin, OwnParts } from '../../model/plugin.ts'
import type { Config } from '../../model/config/config.ts'
import { findMappingIssues } from '../../model/config/rules.ts'
import { describeIssues, listKeys, safeParsePresetParts } from '../../model/definitions.ts'
import { toGmailPresetOptions } from '../../model/config/gmail.ts'
import { describeConfigIssue } from '../../core/model/issue.ts'
import { Mapping, readMappingId } from '../../core/model/mapping.ts'
import { findNearest, takeStart } from '../../base/text.ts'
import { Problem } from '../../core/model/problem.ts'
import type { NamedMapping } from '../../core/mapping/compile.ts'
import { toIdentity } from '../../core/mapping/identity.ts'
import type { SenderTable } from '../proofs/senders.ts'
import { builtInSenders } from '../built-in.ts'
import { loadPacks, type Pack, reportPacks, describeUnknownPreset } from './packs.ts'
import { loadPlugins, openPluginSenders } from './plugins.ts'
import {
  loadOwnChannels,
  openPluginChannels,
  openPluginOutboxes,
  openPluginRunners,
  openPluginSources,
} from './sections.ts'
import { checkShortSecrets } from './secret-issues.ts'
import { type LoadedVerifiers, loadVerifiers } from './verifiers.ts'

export type AssembledParts = LoadedVerifiers & {
  readonly plugins: readonly LoadedPlugin[]
  readonly own: OwnParts
  readonly packs: readonly Pack[]
  readonly mappings: readonly NamedMapping[]
  readonly senders: SenderTable
}

export type Assembler = {
  /**
   * Combines a configuration with presets and with the modules of integrators. Throws `config-invalid`, but not for a verifier or a channel that
   * does not load: its last good version, if there is one, keeps serving.
   */
  assemble(config: Config, serving?: AssembledParts): Promise<AssembledParts>
  /** All files of the presets, verifiers and channels in code, each with its state when it was read. */
  inputs(): readonly BuildInput[]
  readonly describeThrower: Loader['describeThrower']
}

const buildRunnersAndChannels = createRunnersAndChannels({ write() {}, env: {} })

/** Creates the runners and channels once, so that a wrong setting or an impossible recipient makes the configuration invalid. */
function checkRunnersAndChannels(config: Config, own: OwnParts): void {
  const { channels } = buildRunnersAndChannels(config, own)
  const routes = { 'channels.default': config.channels.default, 'hooks.alerts': config.hooks.alerts }
  for (const [key, route] of Object.entries(routes)) {
    const why = route?.to === undefined ? undefined : channels.get(route.channel)?.whyNot(route.to)
    if (why !== undefined) throw new Problem('config-invalid', `${key}.to: ${why}`)
  }
}

/** Makes an assembler that reloads only modules whose files have changed. */
export function createAssembler(dir: string): Assembler {
  const loader = createLoader(dir)
  return {
    async assemble(config, serving) {
      const ofFiles = await loadOwnChannels({ config, serving: serving?.own.channels ?? [] }, loader)
      const loaded = await loadPlugins({ names: config.plugins, serving: serving?.plugins ?? [] }, loader)
      const { plugins } = loaded
      const packs = await loadPacks(listWantedPacks(config), loader)
      const senders = openPluginSenders(plugins, builtInSenders)
      const mappings = buildMappings(config, packs, senders)
      const own = {
        channels: [...ofFiles.channels, ...openPluginChannels(plugins, config)],
        runners: openPluginRunners(plugins, config),
        outboxes: openPluginOutboxes(plugins, mappings),
        sources: openPluginSources(plugins, config, mappings),
      }
      checkRunnersAndChannels(config, own)
      const before = serving?.verifiers ?? []
      const { verifiers, reports } = await loadVerifiers({ mappings, packs, plugins, senders, serving: before }, loader)
      checkShortSecrets(config, mappings, { senders, verifiers })
      const all = [...reportPacks(packs, serving?.packs), ...reports, ...ofFiles.reports, ...loaded.reports]
      return { packs, mappings, senders, verifiers, own, plugins, reports: all }
    },
    inputs: loader.inputs,
    describeThrower: loader.describeThrower,
  }
}

/** Assembles a configuration once, for a command. */
export function assemble(dir: string, config: Config): Promise<AssembledParts> {
  return createAssembler(dir).assemble(config)
}

type PresetEntry = Config['hooks']['presets'][number]

function listWantedPacks({ hooks }: Config) {
  return hooks.presets.map((entry, index) => ({ name: readName(entry), where: describePlace(index) }))
}

function readName(entry: PresetEntry): string {
  return typeof entry === 'string' ? entry : entry.name
}

function describePlace(index: number): string {
  return `hooks.presets[${index}]`
}

/** All mappings in order of priority: first those of the operator, then those of each preset. */
function buildMappings(config: Config, packs: readonly Pack[], senders: SenderTable): NamedMapping[] {
  const own = config.hooks.mappings.map((mapping, index) => ({
    ...mapping,
    id: readMappingId(mapping, index),
    ...(mapping.id === undefined && { isUnnamed: true }),
  }))
  const packed = config.hooks.presets.flatMap((entry, index) => {
    const pack = packs.find(({ name }) => name === readName(entry))
    if (pack === undefined)
      throw new Problem('config-invalid', `${describePlace(index)}: ${describeUnknownPreset(readName(entry))}`)
    return buildPackMappings(pack, { entry, config, index })
  })
  const all = [...own, ...packed]
  const duplicate = all.find(({ id }, index) => all.findIndex((other) => other.id === id) !== index)
  if (duplicate !== undefined) {
    const next = own.some(({ id }) => id === duplicate.id)
      ? 'Change the id of the one in hooks.mappings.'
      : 'hooks.presets has a preset twice: remove one, or give it another path.'
    throw new Problem('config-invalid', `Two mappings have the id "${duplicate.id}". ${next}`)
  }
  checkSharedSecrets(all, senders)
  return all
}

/** Throws if two mappings would share the secret that a sender hands over: the secret of one sender must not open the mapping of another one. */
function checkSharedSecrets(mappings: readonly NamedMapping[], senders: SenderTable): void {
  const owners = new Map<string, string>()
  for (const mapping of mappings) {
    if (senders.findScheme(mapping.verify?.scheme ?? '')?.handsOver !== true) continue
    const { secretsName } = toIdentity(mapping)
    const other = owners.get(secretsName)
    if (other !== undefined) {
      throw new Problem(
        'config-invalid',
        `The mappings "${other}" and "${mapping.id}" have the same path and verify, so a secret that a sender hands over would open both. Give each of them an id.`,
      )
    }
    owners.set(secretsName, mapping.id)
  }
}

function buildPackMappings(
  pack: Pack,
  { entry, config, index }: { entry: PresetEntry; config: Config; index: number },
): NamedMapping[] {
  const { name, preset } = pack
  const { mappings, maxBodyBytes } = buildPack(
    pack,
    { ...readSection(config, name), ...readOptions(entry) },
    describePlace(index),
  )
  return mappings.map((input, at) => {
    const own = mappings.length === 1 ? preset.name : `${preset.name}-${at + 1}`
    const mapping = Mapping.safeParse(input)
    if (!mapping.success)
      throw buildInvalidValueProblem(pack, describePlace(index), describeIssues(mapping.error, input, ['mappings', at]))
    const [issue] = findMappingIssues(mapping.data, config, ['hooks', 'presets', index])
    const fault = findRecoverFault(mapping.data.recover)
    if (fault !== undefined) throw buildInvalidValueProblem(pack, describePlace(index), [`mappings[${at}].${fault}`])
    if (issue !== undefined) throw new Problem('config-invalid', `Preset "${name}": ${issue.text}`)
    const isUnnamed = mapping.data.id === undefined && mappings.length > 1
    return { ...mapping.data, id: mapping.data.id ?? own, ...(isUnnamed && { isUnnamed }), maxBodyBytes }
  })
}

/** The options in `hooks.<name>`, if the configuration has a section with the name of the preset. */
function readSection(config: Config, name: string): object {
  const { gmail } = config.hooks
  return name === 'gmail' && gmail !== undefined ? toGmailPresetOptions(gmail) : {}
}

function readOptions(entry: PresetEntry): object {
  if (typeof entry === 'string') return {}
  const { name: _name, ...options } = entry
  return options
}

/** The parts of a pack with these options. Throws `config-invalid`, for invalid options with a line for each. */
export function buildPack(pack: Pack, options: object, where: string) {
  const { preset } = pack
  const parsed = runPackCode(pack, where, () => preset.options.safeParse(options))
  if (!parsed.success) {
    const known = listKeys(preset.options)
    const lines = parsed.error.issues.flatMap((issue) =>
      issue.code === 'unrecognized_keys' && issue.path.length === 0
        ? issue.keys.map((key) => `${where}: ${describeUnknownOption(key, known)}`)
        : `${where}: ${describeConfigIssue(issue, options)}`.replace(/[^?]$/, '$&.'),
    )
    throw new Problem('config-invalid', `The options of preset "${preset.name}" are invalid`, {
      frame: lines.join('\n'),
    })
  }
  const parts = safeParsePresetParts(runPackCode(pack, where, () => preset.build(parsed.data)))
  if (parts.ok) return parts.value
  throw buildInvalidValueProblem(pack, where, parts.faults)
}

function describeUnknownOption(key: string, known: readonly string[]): string {
  const near = findNearest(key, known)
  const hint = near === undefined ? `Options: ${known.join(', ')}.` : `Did you mean ${near}?`
  return `${JSON.stringify(takeStart(key, 60))} is not an option of this preset.${known.length === 0 ? '' : ` ${hint}`}`
}

/** Runs code of a pack. An exception of a pack that is not bundled becomes a `config-invalid` that names the place in the code. */
function runPackCode<T>({ preset, origin }: Pack, where: string, call: () => T): T {
  try {
    return call()
  } catch (thrown) {
    if (origin === undefined) throw thrown
    const what = origin.describeThrown(thrown)
    throw new Problem('config-invalid', `${where}: the preset "${preset.name}" (${origin.label}) threw ${what}.`)
  }
}

function buildInvalidValueProblem({ preset, origin }: Pack, where: string, faults: readonly string[]): Problem {
  const label = origin?.label ?? 'bundled'
  return new Problem('config-invalid', `${where}: the preset "${preset.name}" (${label}) builds an invalid value`, {
    frame: faults.map((fault) => `${label}: ${fault}.`).join('\n'),
  })
}
