// Runs the fixtures of modules, as the gateway does before new code goes live.
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import colors from 'picocolors'
import { writeFileAtomic } from '../config/config-file.ts'
import { updateFixture } from '../replay/fixture-files.ts'
import { exitCodes, Problem, type ProblemRecord } from '../model/problem.ts'
import { toPrintableLine } from '../base/text.ts'
import { type Bench, createBench, type BenchModules, type ModuleResult } from './checks/bench.ts'
import { type Context, withProgress } from './terminal/context.ts'
import { describeFailure, indent } from './terminal/print.ts'
import { type Round, watchSaves } from './checks/test-watch.ts'

/** `modules`: an empty list means all modules of the configuration. */
type TestOptions = { modules: readonly string[]; watch: boolean; update: boolean }

/** The exit code is 0 if every fixture passes or was updated, else that of `broken`. */
export async function test(context: Context, options: TestOptions): Promise<number> {
  const bench = createBench(context)
  try {
    const round = (loaded: BenchModules, modules: readonly string[]) =>
      runModules(context, bench, { loaded, modules, options })
    if (options.watch) return await watchSaves(context, bench, { names: options.modules, round })
    const loaded = await withProgress(context, 'Loading the transforms', () => bench.load(options.modules))
    return (await round(loaded, loaded.modules)).code
  } finally {
    await bench.close()
  }
}

type Counts = { passed: number; failed: number; updated: number; broken: number }

async function runModules(
  context: Context,
  bench: Bench,
  { loaded, modules, options }: { loaded: BenchModules; modules: readonly string[]; options: TestOptions },
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
      const text = options.update ? await update(each) : undefined
      if (text !== undefined) written.set(each.file.file, text)
      const isUpdated = text !== undefined
      counts[isUpdated ? 'updated' : each.outcome.ok ? 'passed' : 'failed'] += 1
      const failed = each.outcome.ok ? undefined : each.outcome
      const { diff = [], log = [] } = failed ?? {}
      const fault = isUpdated ? undefined : failed?.problem
      const ok = failed === undefined || isUpdated
      printLine(context, { module, fixture: each.file.name, ok, diff, isUpdated, fault, log: isUpdated ? [] : log })
    }
  }
  if (!context.json) context.print(`\n${describeCounts(counts)}`)
  return { code: counts.failed + counts.broken === 0 ? exitCodes.ok : exitCodes.broken, written }
}

/** Writes the current result as the expectation. Resolves with the new text; undefined if nothing was written. */
async function update({ file, outcome }: ModuleResult['fixtures'][number]): Promise<string | undefined> {
  if (file.kind === 'unusable' || outcome.ok || outcome.actual === undefined) return undefined
  // an exception must be fixed: as an expectation, it would never be noticed again
  if (outcome.actual.decision === 'park' && file.fixture.expect.decision !== 'park') return undefined
  const before = (await readFile(file.file, 'utf8')).replace(/^\uFEFF/, '')
  const text = updateFixture(before, outcome.actual)
  await writeFileAtomic(file.file, text, (await stat(file.file)).mode & 0o777)
  return text
}

type Line =
  | { module: string; ok: false; problem: ProblemRecord }
  | {
      module: string
      fixture: string
      ok: boolean
      diff: readonly string[]
      isUpdated: boolean
      fault: ProblemRecord | undefined
      /** The log lines of the transform, if the fixture fails. */
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
  if (log.length > 0) context.print(`    Log of the transform\n${indent(indent(indent(log.join('\n'))))}`)
}

function describeCounts({ passed, failed, updated, broken }: Counts): string {
  const parts = [`${passed} passed`, `${failed} failed`]
  if (updated > 0) parts.push(`${updated} updated`)
  if (broken > 0) parts.push(broken === 1 ? '1 module does not load' : `${broken} modules do not load`)
  return parts.join(', ')
}
