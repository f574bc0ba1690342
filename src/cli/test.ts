// Runs the fixtures of modules, as a gateway does before new code goes live.
import { join } from 'node:path'
import colors from 'picocolors'
import type { ModuleCoverageFields } from '../model/api/shapes.ts'
import { type CoverageNotes, createCoverageNotes } from '../gateway/replay/coverage.ts'
import type { FixtureFile } from '../gateway/replay/fixture-files.ts'
import { rewriteFixture } from '../gateway/replay/fixtures.ts'
import { exitCodes, Problem, type ProblemRecord } from '../core/model/problem.ts'
import { formatQuantity, toPrintableLine } from '../base/text.ts'
import { formatCommand } from '../base/shell.ts'
import { type Bench, createBench, type BenchModules } from './checks/bench.ts'
import type { CodePlace } from '../core/transforms/coverage.ts'
import { checkTypes, renderTypeErrors, type TypeReport } from './checks/types.ts'
import type { StoreReader } from '../store/store.ts'
import { readStore } from './gateway/stored.ts'
import { type Context, withProgress } from './terminal/context.ts'
import { cutLine, describeFailure, indent } from './terminal/print.ts'
import { type Round, watchSaves } from './checks/test-watch.ts'

/** `modules`: an empty list means all modules of the configuration. */
type TestOptions = { modules: readonly string[]; watch: boolean; update: boolean; coverage: boolean }

/** The exit code is that of `ok` if every module loads and every fixture passes or was updated, else that of `broken`. */
export async function test(context: Context, options: TestOptions): Promise<number> {
  const notes = options.coverage ? createCoverageNotes() : undefined
  const bench = createBench(notes === undefined ? context : { ...context, onCovered: notes.note })
  try {
    const round = (loaded: BenchModules, modules: readonly string[]) =>
      runModules(context, bench, { loaded, modules, options, notes })
    if (options.watch) return await watchSaves(context, bench, { names: options.modules, round })
    const loaded = await withProgress(context, 'Loading the transforms', () => bench.load(options.modules))
    return (await round(loaded, loaded.modules)).code
  } finally {
    await bench.close()
  }
}

type RoundInput = {
  readonly loaded: BenchModules
  readonly modules: readonly string[]
  readonly options: TestOptions
  /** Undefined if no coverage was requested. */
  readonly notes: CoverageNotes | undefined
}

type Counts = { passed: number; failed: number; updated: number; broken: number }

async function runModules(
  context: Context,
  bench: Bench,
  { loaded, modules, options, notes }: RoundInput,
): Promise<Round> {
  const counts: Counts = { passed: 0, failed: 0, updated: 0, broken: 0 }
  const written = new Map<string, string>()
  for (const module of modules) {
    const { problem, fixtures } = await bench.run(loaded, module)
    if (problem !== undefined) {
      counts.broken += 1
      printLine(context, { module, ok: false, problem })
    } else if (fixtures.length === 0 && !context.json) {
      context.print(`${colors.dim('·')} ${toPrintableLine(module)} has no fixtures`)
    }
    for (const each of fixtures) {
      const text = options.update ? await rewriteFixture(each.file, each.outcome) : undefined
      if (text !== undefined) written.set(each.file.file, text)
      const isUpdated = text !== undefined
      counts[isUpdated ? 'updated' : each.outcome.ok ? 'passed' : 'failed'] += 1
      const failed = each.outcome.ok ? undefined : each.outcome
      const { diff = [], log = [] } = failed ?? {}
      const fault = isUpdated ? undefined : failed?.problem
      const ok = failed === undefined || isUpdated
      printLine(context, { module, fixture: each.file.name, ok, diff, isUpdated, fault, log: isUpdated ? [] : log })
    }
    if (notes !== undefined && problem === undefined) {
      await showCoverage(context, notes, { module, loaded, fixtures: fixtures.map(({ file }) => file) })
    }
  }
  printTypes(context, checkTypes({ dir: context.dir, root: loaded.root, modules }))
  if (!context.json) context.print(`\n${describeCounts(counts)}`)
  return { code: counts.failed + counts.broken === 0 ? exitCodes.ok : exitCodes.broken, written }
}

/** Reports type errors if TypeScript is installed next to the transforms. They do not fail a fixture, because the gateway runs the code
 * anyway. */
function printTypes(context: Context, report: TypeReport | undefined): void {
  const errors = report?.errors ?? []
  if (errors.length === 0) return
  if (context.json) context.printJson({ types: errors })
  else context.print(`${colors.yellow('!')} type errors\n${indent(indent(renderTypeErrors(errors)))}`)
}

type CoveredShape = ModuleCoverageFields['shapes'][number]

type Line =
  | { module: string; ok: false; problem: ProblemRecord }
  | {
      module: string
      fixture: string
      ok: boolean
      diff: readonly string[]
      isUpdated: boolean
      fault: ProblemRecord | undefined
      /** The log lines of the transform. Empty if the fixture passes or is updated. */
      log: readonly string[]
    }

function printLine(context: Context, line: Line): void {
  if ('problem' in line) {
    const { module, problem } = line
    const { code, detail, frame } = problem
    if (context.json) context.printJson({ module, fixture: null, ok: false, updated: false, diff: [], problem })
    else context.print(describeFailure(new Problem(code, detail, frame === undefined ? {} : { frame })))
    return
  }
  const { module, fixture, ok, diff, isUpdated, fault, log } = line
  if (context.json) {
    return context.printJson({ module, fixture, ok, updated: isUpdated, diff, problem: fault ?? null, log })
  }
  const mark = ok ? colors.green('✓') : colors.red('✗')
  const name = toPrintableLine(join(module, fixture))
  context.print(`${mark} ${name}${isUpdated ? ' is updated' : ''}`)
  if (diff.length > 0) context.print(indent(diff.map((each) => `  ${each}`).join('\n')))
  if (fault?.frame !== undefined) context.print(`\n${indent(fault.frame)}\n`)
  if (log.length > 0) context.print(`    Log\n${indent(indent(indent(log.join('\n'))))}`)
}

function describeCounts({ passed, failed, updated, broken }: Counts): string {
  const parts = [`${passed} passed`, `${failed} failed`]
  if (updated > 0) parts.push(`${updated} updated`)
  if (broken > 0) parts.push(formatQuantity(broken, 'module does not load', 'modules do not load'))
  return parts.join(', ')
}

async function showCoverage(
  context: Context,
  notes: CoverageNotes,
  { module, loaded: { parts }, fixtures }: { module: string; loaded: BenchModules; fixtures: readonly FixtureFile[] },
): Promise<void> {
  const finishNotes = (store?: StoreReader) => notes.finish(module, { parts, fixtures, store })
  const measured = await readStore(context, undefined, async (store) => ({ coverage: await finishNotes(store) }))
  const { coverage } = measured ?? { coverage: await finishNotes() }
  if (context.json) return context.printJson({ module, coverage: coverage ?? null })
  if (coverage !== undefined) context.print(indent(renderCoverage(coverage)))
}

function renderCoverage({ files, requests: { total, covered, uncovered }, shapes }: ModuleCoverageFields): string {
  const lines = files.flatMap((file) => [
    `${file.file}: fixtures run ${file.covered} of ${file.lines} lines`,
    ...file.unreached.map((place) => `  ${describePlace(file.file, place)}  reached by nothing`),
    ...file.onlyKept.map((place) => `  ${describePlace(file.file, place)}  only by kept requests`),
  ])
  const requests = [
    `${covered} of ${total} kept requests run only code that the fixtures run`,
    ...uncovered.map(({ source, event, count, example }) => {
      const sender = [source, event].filter((word) => word !== null).join(' ') || 'no event'
      return `  ${count} of ${cutLine(sender, 60)} run other code: "${formatCommand`hookloom capture ${example}`}" makes a fixture`
    }),
  ]
  return [...lines, ...(total === 0 ? ['No request of it is kept.'] : requests), ...shapes.map(describeShape)].join(
    '\n',
  )
}

/** The maximum number of missing fields that are named for each event. */
const maxNamed = 5

function describeShape({ source, event, requests, fixtures, fields, covered, missing }: CoveredShape): string {
  const name = cutLine([source, event].filter((word) => word !== null).join(' ') || 'no event', 60)
  const head = `${name}: ${formatQuantity(requests, 'request')} came in; ${formatQuantity(fixtures, 'fixture has', 'fixtures have')} ${covered} of ${formatQuantity(fields, 'field')}`
  const named = missing.slice(0, maxNamed).map(({ path, kinds }) => `${path} (${kinds.join(', ')})`)
  const more = fields - covered - named.length
  return named.length === 0 || fixtures === 0
    ? head
    : `${head}\n  not ${cutLine(named.join(', '), 200)}${more > 0 ? `, and ${more} more` : ''}`
}

function describePlace(file: string, { line, endLine, text }: CodePlace): string {
  return `${file}:${line}${endLine === line ? '' : `-${endLine}`}  ${cutLine(text, 60)}`
}
