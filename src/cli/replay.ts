// Runs kept requests through the live code and through an edit, and shows the differences. Stores and sends nothing.
import { formatQuantity } from '../base/text.ts'
import type { KeptQuery } from '../store/queries.ts'
import { readFile } from 'node:fs/promises'
import { relative, resolve } from 'node:path'
import colors from 'picocolors'
import { newId } from '../base/id.ts'
import { formatCommand } from '../base/shell.ts'
import { renderMarkdown } from '../gateway/replay/markdown.ts'
import { createRecordingReader, parseRecording } from '../gateway/replay/recording.ts'
import { emptyReplay, matchMappings, replay as replayKept, runAll } from '../gateway/replay/replay.ts'
import { toReplayReport } from '../gateway/replay/replay-report.ts'
import { envFile, readConfigText } from '../gateway/config/text.ts'
import { describeReadFault, type Env, parseEnv } from '../gateway/config/env.ts'
import { exitCodes, Problem } from '../core/model/problem.ts'
import { defaultReplays } from '../model/api/limits.ts'
import { toModuleLabel } from '../core/transforms/root.ts'
import { createGeneration } from '../gateway/generation/generation.ts'
import type { Outcome } from '../gateway/replay/outcome.ts'
import type { ChangeFields, GroupFields, ReplayClass, ReplayReport } from '../model/api/replay.ts'
import { createBench } from './checks/bench.ts'
import { askAdmin } from './gateway/gateway.ts'
import { findRunning } from './gateway/running.ts'
import { readStore } from './gateway/stored.ts'
import { type Context, withProgress } from './terminal/context.ts'
import { renderDiff } from './terminal/diff.ts'
import { cutLine, indent } from './terminal/print.ts'

export type ReplayOptions = {
  /** Default: `defaultReplays`, or all requests of the recording. */
  readonly last?: number
  readonly hook?: string
  readonly source?: string
  readonly since?: number
  readonly from?: string
  /** The classes of changes that make the command fail. `changed`: any change. */
  readonly failOn?: readonly Change[]
  readonly recording?: string
  readonly format?: 'text' | 'markdown'
}

type Change = Exclude<ReplayClass, 'same'>

/** The time limit of a replay in this process. */
const limitMs = 600_000

export async function replay(context: Context, options: ReplayOptions): Promise<number> {
  const { last, hook, source, since, from, failOn = [], recording, format } = options
  const query = { limit: last ?? (recording === undefined ? defaultReplays : Infinity), hook, source, since }
  const isRunning = findRunning(context.dir) !== undefined
  const report = await withProgress(context, 'Replaying', () =>
    recording !== undefined
      ? replayRecording(context, query, { file: recording, from })
      : isRunning && from === undefined
        ? askReplay(context, query)
        : replayHere(context, query, { from, isRunning }),
  )
  const names = { base: describeBase(context, report), edit: from ?? 'the files on disk' }
  if (context.json) printJson(context, report)
  else if (format === 'markdown') context.print(renderMarkdown(report, names).trimEnd())
  else print(context, report, names)
  return mustFail(report, failOn) ? exitCodes.broken : exitCodes.ok
}

function describeBase({ dir }: Context, { compared }: ReplayReport): string {
  const near = relative(process.cwd(), dir) || '.'
  const names = { live: 'the live code', recorded: 'what was recorded', base: near.startsWith('..') ? dir : near }
  return names[compared]
}

/** Whether the command fails: if a change has a class in `failOn`, or if the outcome of a request is unknown, because it was too large to be kept,
 * the time was up or its module does not load. Never fails if `failOn` is empty. */
function mustFail({ tooLarge, notRun, problems, counts, total }: ReplayReport, failOn: readonly Change[]): boolean {
  if (failOn.length === 0) return false
  const isCompared = tooLarge.length + notRun === 0 && problems.every(({ notCompared }) => notCompared === 0)
  const failing = failOn.includes('changed') ? total - counts.same : failOn.reduce((sum, name) => sum + counts[name], 0)
  return !isCompared || failing > 0
}

/**
 * Runs the requests of a recording through the code of the config directory and through the code of `from`. Needs neither a gateway nor the secrets
 * of the directories.
 */
async function replayRecording(
  context: Context,
  query: KeptQuery,
  { file, from }: { file: string; from: string | undefined },
): Promise<ReplayReport> {
  if (from === undefined) {
    throw new Problem(
      'usage-invalid',
      '--recording compares two config directories: --config-dir names the base, and --from the edit.',
    )
  }
  const requests = parseRecording(await readText(file), file)
  const env = context.env
  const benches = [context.dir, resolve(from)].map((dir) => createBench({ dir, env, isWithoutSecrets: true }))
  try {
    const [base, edit] = await Promise.all(benches.map(async (bench) => createGeneration((await bench.load([])).parts)))
    if (base === undefined || edit === undefined) throw new Error('there are two directories')
    const done = await replayKept({
      store: createRecordingReader(requests, [base, edit]),
      query,
      before: (page) => runAll(base, page, { newId }),
      after: edit,
      findAfterId: matchMappings(base, edit),
      newId,
      limitMs,
    })
    return toReplayReport(done, { compared: 'base', transforms: edit.transforms })
  } finally {
    await Promise.all(benches.map((bench) => bench.close()))
  }
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (cause) {
    throw new Problem('usage-invalid', `${cutLine(file, 200)} cannot be read: ${describeReadFault(cause)}.`, { cause })
  }
}

function askReplay(context: Context, { limit, hook, source, since }: KeptQuery): Promise<ReplayReport> {
  return askAdmin(context, 'POST /api/replay', { query: { last: limit, hook, source, since } })
}

/** Runs the edit in this process. The base is the live code of the running gateway; without a gateway, the recorded outcomes. */
async function replayHere(
  context: Context,
  query: KeptQuery,
  { from, isRunning }: { from: string | undefined; isRunning: boolean },
): Promise<ReplayReport> {
  const env = from === undefined ? context.env : { ...readEnv(context.dir), ...context.env }
  const bench = createBench({ dir: resolve(from ?? context.dir), env })
  try {
    const { parts } = await bench.load([])
    const after = createGeneration(parts)
    const done = await readStore(context, emptyReplay, (store) =>
      replayKept({
        store,
        query,
        before: isRunning
          ? (page) =>
              askLive(
                context,
                page.map(({ deliveryId }) => deliveryId),
              )
          : undefined,
        after,
        newId,
        limitMs,
      }),
    )
    return toReplayReport(done, { compared: isRunning ? 'live' : 'recorded', transforms: parts.transforms })
  } finally {
    await bench.close()
  }
}

/** The `.env` of the config directory: the folder of an edit, such as a checkout, rarely has one. */
function readEnv(dir: string): Env {
  return parseEnv(readConfigText(dir, envFile) ?? '').values
}

async function askLive(context: Context, ids: readonly string[]): Promise<ReadonlyMap<string, Outcome>> {
  const { outcomes } = await askAdmin(context, 'POST /api/replay/live', { query: { ids: ids.join(',') } })
  // as: the gateway decides with the same code
  return new Map(Object.entries(outcomes as Record<string, Outcome>))
}

/** Prints a line for each delivery, and a last line with the rest of the report. */
function printJson(context: Context, { deliveries, ...rest }: ReplayReport): void {
  for (const delivery of deliveries) context.printJson(delivery)
  context.printJson(rest)
}

function print(context: Context, report: ReplayReport, names: { base: string; edit: string }): void {
  const { total, groups, unstable, drift, tooLarge, notRun, problems } = report
  for (const { detail, frame } of problems) {
    context.note(`${colors.yellow('!')} ${cutLine(detail, 500)}${frame === null ? '' : `\n${indent(frame)}`}`)
  }
  const isEmpty = total === 0 && tooLarge.length === 0
  if (isEmpty && problems.every(({ notCompared }) => notCompared === 0)) return context.print(nothingKept)
  const [base, edit] = [cutLine(names.base, 80), cutLine(names.edit, 80)]
  if (total > 0) context.print(`${formatQuantity(total, 'request')}: ${base} (-) and ${edit} (+)`)
  for (const group of groups) context.print(`\n${renderHeading(group, group.class)}\n${renderExample(group.example)}`)
  if (unstable.length > 0) {
    const paths = unstable.map(({ path, count }) => `${path} (${count})`).join(', ')
    context.print(`\nLeft out, because two runs of the same code differ: ${cutLine(paths, 500)}`)
  }
  for (const group of drift) {
    context.print(`\n${renderHeading(group, 'recorded (-), and live now (+)')}\n${renderExample(group.example)}`)
  }
  if (total > 0) context.print(`\n${formatCounts(report)}`)
  for (const { module, notCompared } of problems) {
    if (notCompared === 0) continue
    context.print(`${formatQuantity(notCompared, 'request')} not compared: ${toModuleLabel(module)} does not load.`)
  }
  if (tooLarge.length > 0)
    context.print(`${formatQuantity(tooLarge.length, 'request')} not replayable: larger than 256 KiB.`)
  if (notRun > 0) context.print(`${formatQuantity(notRun, 'request')} not replayed: the time was up.`)
  const [first] = groups
  if (first !== undefined)
    context.print(`\n"${formatCommand`hookloom capture ${first.example.deliveryId}`}" makes a fixture of a request.`)
}

export const nothingKept =
  'No request is kept. "retain": 100 in hooks or in a mapping keeps the newest requests, and "hookloom dev" does so by itself.'

function renderHeading({ paths, count, percent }: GroupFields, title: string): string {
  const where = paths.length === 1 && paths[0] === 'decision' ? '' : paths.join(', ')
  return `${colors.bold(title)}${where === '' ? '' : `  ${cutLine(where, 200)}`}  ${formatQuantity(count, 'request')}, ${percent} %`
}

function renderExample({ deliveryId, hook, changes }: GroupFields['example']): string {
  return [`  ${deliveryId}  ${cutLine(hook, 60)}`, ...changes.flatMap(renderChange)].join('\n')
}

function renderChange({ path, before, after, recorded }: ChangeFields): string[] {
  const record = recorded === undefined ? [] : [colors.dim(`recorded ${cutLine(JSON.stringify(recorded), 120)}`)]
  return [`  ${path}`, ...[...renderDiff(before, after), ...record].map((line) => `    ${line}`)]
}

function formatCounts({ counts, total }: ReplayReport): string {
  const parts = Object.entries(counts).filter(([name, count]) => count > 0 || name === 'same')
  return parts
    .map(([name, count]) => `${count} ${name} (${Math.round((count / Math.max(1, total)) * 100)} %)`)
    .join(', ')
}
