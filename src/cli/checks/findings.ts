// The findings of `check` and `doctor`, and how they are printed. A warning is not a failure.
import colors from 'picocolors'
import type { AssembledParts } from '../../gateway/reload/assemble.ts'
import { atStart, createFixtureGate } from '../../gateway/replay/fixture-gate.ts'
import { type FixtureCounts, chooseTransforms } from '../../core/reload/gate.ts'
import { formatPlacedIssue, type LoadedConfig, loadConfig, placeProblem } from '../../gateway/config/config.ts'
import { readFileModes, checkRisks } from '../../gateway/config/warnings.ts'
import type { OwnChannel } from '../../model/channel.ts'
import type { LoadedPlugin } from '../../model/plugin.ts'
import type { Config } from '../../model/config/config.ts'
import { readMappingId } from '../../core/model/mapping.ts'
import { toIssue } from '../../core/model/issue.ts'
import { exitCodes, Problem, type ProblemRecord, toProblemRecord } from '../../core/model/problem.ts'
import type { DefinedVerifier } from '../../model/proof.ts'
import { type CompiledMapping, compileMapping } from '../../core/mapping/compile.ts'
import { createRouter } from '../../core/mapping/match.ts'
import { normalizeHookName } from '../../core/model/mapping-rules.ts'
import { quoteShellWord } from '../../base/shell.ts'
import { listWithSection } from '../../plugins/sources/index.ts'
import { createGeneration, toMappingParts } from '../../gateway/generation/generation.ts'
import type { KnownSchemes, SenderTable } from '../../gateway/proofs/senders.ts'
import { builtInSenders } from '../../gateway/built-in.ts'
import { createBench } from './bench.ts'
import type { Context } from '../terminal/context.ts'
import { checkPlaceholders } from '../scaffold/placeholders.ts'
import { indent } from '../terminal/print.ts'

/** A warning does not change the exit code of the command; a failure does. */
export type CheckFinding = { readonly name: string; readonly detail: string } & (
  | { readonly ok: true }
  | { readonly ok: false; readonly severity: 'warning' }
  | { readonly ok: false; readonly severity: 'failure'; readonly exitCode: number }
)

export function buildFailure(name: string, detail: string, exitCode: number): CheckFinding {
  return { name, ok: false, severity: 'failure', detail, exitCode }
}

/** The loaded configuration, or one finding for each of its problems. */
export function checkConfig({ dir, env }: Context): { loaded: LoadedConfig | undefined; findings: CheckFinding[] } {
  try {
    const loaded = loadConfig({ dir, env })
    return { loaded, findings: [{ name: 'config', ok: true, detail: `${loaded.files[0] ?? dir} is valid` }] }
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    const lines = error.frame?.split('\n') ?? [error.message]
    return { loaded: undefined, findings: lines.map((line) => buildFailure('config', line, exitCodes[error.kind])) }
  }
}

/** The text of the warning for `hooks.enabled: false`. */
export const hooksOffWarning = 'hooks.enabled is false: every hook answers 404. Set it to true.'

/** The senders of the package and of plugins; without those of plugins if the configuration is invalid. */
export function findKnownSenders(assembling: Promise<AssembledParts>): Promise<SenderTable> {
  return assembling.then(
    ({ senders }) => senders,
    () => builtInSenders,
  )
}

export function checkWarnings({ config, files, text }: LoadedConfig, senders: SenderTable): CheckFinding[] {
  const off: CheckFinding = { name: 'hooks', ok: false, severity: 'warning', detail: hooksOffWarning }
  const checked = [...checkRisks(config, { files: readFileModes(files), text }), checkPlaceholders(config)]
  const warnings = checked.map(({ name, ok, detail }): CheckFinding =>
    ok ? { name, ok, detail } : { name, ok, severity: 'warning', detail },
  )
  const all = [...warnings, ...findUnsignedSenders(config, text, senders)]
  return config.hooks.enabled ? all : [off, ...all]
}

/** Warns of mappings without `verify` whose senders sign: most of these senders cannot send the hook token. */
function findUnsignedSenders({ hooks }: Config, text: string, senders: SenderTable): CheckFinding[] {
  return hooks.mappings.flatMap(({ match, verify }, index) => {
    const known = senders.schemes.filter(({ source }) => source !== undefined && source === match.source)
    const [first] = known
    if (verify !== undefined || first === undefined) return []
    const names = known.map(({ id }) => `"${id}"`).join(' or ')
    const issue = toIssue(
      ['hooks', 'mappings', index],
      `takes requests of ${first.label} and has no verify, so each of them needs the hook token. Most senders that sign cannot send it, and get 401. Set verify with the scheme ${names}.`,
    )
    return [{ name: 'senders', ok: false, severity: 'warning', detail: formatPlacedIssue(issue, text) }]
  })
}

/** Checks the templates and conditions of every mapping, and every module: transforms with their fixtures, verifiers, channels and presets. */
export async function checkMappings(
  context: Context,
  loaded: LoadedConfig,
  assembling: Promise<AssembledParts>,
): Promise<CheckFinding[]> {
  const { config } = loaded
  const mappings = config.hooks.mappings.map((mapping, index) => ({
    ...mapping,
    id: readMappingId(mapping, index),
  }))
  try {
    const { senders, verifiers, own, plugins, mappings: all } = await assembling
    const templates = mappings.map((mapping) => checkTemplates(loaded, mapping, { senders, verifiers }))
    const sound = mappings.filter((_, index) => templates[index]?.ok === true)
    // mappings that do not parse are left out, so that one mistake does not hide the others
    const sane = { ...config, hooks: { ...config.hooks, mappings: sound } }
    return [
      ...templates,
      ...verifiers.map(toVerifierFinding),
      ...plugins.map(toPluginFinding),
      ...own.channels.map(toChannelFinding),
      ...findUnreadMailboxes(loaded, all),
      ...(await checkTransforms(context, sane, loaded)),
    ]
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    const known = mappings.filter(
      ({ verify }) => verify === undefined || builtInSenders.schemeNames.includes(verify.scheme),
    )
    const templates = known.map((mapping) => checkTemplates(loaded, mapping, { senders: builtInSenders }))
    return [...templates, buildFailure('mappings', describeProblem(placeProblem(error, loaded)), exitCodes[error.kind])]
  }
}

/** Warns of mailboxes whose mails no mapping takes: each of them would be stored as skipped. A section of `sources` is refused before. */
function findUnreadMailboxes({ config, text }: LoadedConfig, mappings: AssembledParts['mappings']): CheckFinding[] {
  const hooks = new Set(mappings.map(({ match }) => normalizeHookName(match.path ?? '')))
  return listWithSection(config.hooks).flatMap(({ definition: { name } }): CheckFinding[] => {
    const why = `brings items that no mapping takes. Run "hookloom add preset ${quoteShellWord(name)}".`
    const detail = formatPlacedIssue(toIssue(['hooks', name], why), text)
    return hooks.has('') || hooks.has(name) ? [] : [{ name: 'sources', ok: false, severity: 'warning', detail }]
  })
}

/** Checks the transforms as a gateway does when it starts. */
async function checkTransforms(context: Context, config: Config, loaded: LoadedConfig): Promise<CheckFinding[]> {
  const bench = createBench(context)
  try {
    const { root, parts } = await bench.load([], config)
    // throws if a template of a preset is invalid
    createGeneration(parts)
    const test = createFixtureGate({ root, parts, ...atStart })
    const { modules } = await chooseTransforms({ loaded: parts.transforms, serving: undefined, test })
    return modules.map(({ module, problem, fixtures }): CheckFinding => {
      const name = `transform ${module}`
      if (problem !== undefined) return buildFailure(name, describeProblem(problem), exitCodes.broken)
      const hash = [...parts.transforms.values()].find((transform) => transform.module === module)?.hash
      return { name, ok: true, detail: `builds and loads (${hash?.slice(0, 12)})${describePassedFixtures(fixtures)}` }
    })
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    return [buildFailure('mappings', describeProblem(placeProblem(error, loaded)), exitCodes[error.kind])]
  } finally {
    await bench.close()
  }
}

function describePassedFixtures({ passed, notRun }: FixtureCounts): string {
  const text = passed === 0 ? '' : passed === 1 ? ', its fixture passes' : `, its ${passed} fixtures pass`
  return notRun === 0 ? text : `${text}; ${notRun} did not run: out of time`
}

function toVerifierFinding(verifier: DefinedVerifier): CheckFinding {
  const name = `verifier ${verifier.scheme}`
  if (verifier.kind === 'sound') return { name, ok: true, detail: `builds and loads (${verifier.hash.slice(0, 12)})` }
  return buildFailure(name, describeProblem(verifier.problem), exitCodes.broken)
}

function toPluginFinding(plugin: LoadedPlugin): CheckFinding {
  const name = `plugin ${plugin.name}`
  if (plugin.kind === 'broken') return buildFailure(name, describeProblem(plugin.problem), exitCodes.broken)
  const parts = plugin.value.map(({ kind, definition }) => `${kind} ${definition.name}`)
  return { name, ok: true, detail: `builds and loads (${plugin.hash.slice(0, 12)}): ${parts.join(', ')}` }
}

function toChannelFinding(channel: OwnChannel): CheckFinding {
  const name = `channel ${channel.id}`
  if (channel.kind === 'sound') return { name, ok: true, detail: `builds and loads (${channel.hash.slice(0, 12)})` }
  return buildFailure(name, describeProblem(channel.problem), exitCodes.broken)
}

function describeProblem(problem: Problem | ProblemRecord): string {
  const { detail, frame } = problem instanceof Problem ? toProblemRecord(problem) : problem
  return frame === undefined ? detail : `${detail}\n${frame}`
}

function checkTemplates(loaded: LoadedConfig, mapping: CompiledMapping['mapping'], known: KnownSchemes): CheckFinding {
  const name = `mapping ${mapping.id}`
  try {
    createRouter([compileMapping(mapping, undefined, toMappingParts(known))])
    return { name, ok: true, detail: 'its templates and conditions parse' }
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    return buildFailure(name, placeProblem(error, loaded).message, exitCodes[error.kind])
  }
}

/** Prints the findings. Returns the exit code: that of an invalid configuration if a finding has it, else that of the first failure. */
export function printFindings(context: Context, findings: readonly CheckFinding[]): number {
  for (const finding of findings) {
    const { name, ok, detail } = finding
    if (context.json)
      context.printJson({ name, ok, ...('severity' in finding ? { severity: finding.severity } : {}), detail })
    else context.print(renderFinding(finding))
  }
  const codes = findings.flatMap((finding) => ('exitCode' in finding ? [finding.exitCode] : []))
  return codes.find((code) => code === exitCodes.config) ?? codes[0] ?? exitCodes.ok
}

function renderFinding(finding: CheckFinding): string {
  const [first = '', ...frame] = finding.detail.split('\n')
  const mark = finding.ok ? colors.green('✓') : finding.severity === 'warning' ? colors.yellow('!') : colors.red('✗')
  const line = `${mark} ${indent(`${finding.name}: ${first}`).trim()}`
  return frame.length === 0 ? line : `${line}\n${indent(frame.join('\n'))}`
}
