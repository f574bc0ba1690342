// The log lines of a reload.
import { formatQuantity } from '../../base/text.ts'
import type { ModuleReport } from '../../core/reload/gate.ts'
import { join, relative, sep } from 'node:path'
import { isSameJson } from '../../base/json.ts'
import { attemptWithin } from '../../base/time.ts'
import { configFile, envFile } from '../config/text.ts'
import type { BuildInput } from '../../core/transforms/read.ts'
import { isInside } from '../../core/transforms/root.ts'
import { findRealPath } from '../../core/reload/file-state.ts'
import type { Log } from '../../base/log.ts'
import type { Generation } from '../generation/generation.ts'
import { type Problem, type ProblemRecord, toProblemRecord } from '../../core/model/problem.ts'

/** `module` is undefined for a problem of the configuration. `since`: milliseconds since the epoch. */
export type LiveProblem = ProblemRecord & { readonly module: string | undefined; readonly since: number }

export type FoundProblem = Omit<LiveProblem, 'since'>

export function toConfigProblem(problem: Problem): FoundProblem {
  return { ...toProblemRecord(problem), module: undefined }
}

export function toModuleProblems(modules: readonly ModuleReport[]): FoundProblem[] {
  return modules.flatMap(({ module, problem }) => (problem === undefined ? [] : [{ ...problem, module }]))
}

export function isSameProblem(one: FoundProblem, other: FoundProblem): boolean {
  return one.module === other.module && one.detail === other.detail && one.frame === other.frame
}

/** The number of parked deliveries that wait for a module. */
type ParkedCounts = ReadonlyMap<string, number>

type ReloadFacts = {
  /** The earlier problems. */
  readonly before: readonly FoundProblem[]
  /** The problems now. */
  readonly problems: readonly FoundProblem[]
  readonly modules: readonly ModuleReport[]
  readonly parked: ParkedCounts
  /** The value of `hooks.transforms.drain`. */
  readonly drain: 'auto' | 'ask'
}

export type ParkedFor = (module: string) => Promise<number>

/** A store that takes longer is probably out of reach, and the next save waits for this line. */
const countLimitMs = 1_000

/** Counts the parked deliveries of modules with a problem, for a log line. The count is 0 if the store cannot be read in time. */
export async function countParked(
  parkedFor: ParkedFor | undefined,
  modules: readonly ModuleReport[],
): Promise<ParkedCounts> {
  const counted = modules
    .filter(({ kind, problem }) => kind !== 'same' && problem !== undefined)
    .map(async ({ module }) => {
      const asked = await attemptWithin(countLimitMs, () => parkedFor?.(module))
      return [module, (asked.kind === 'ended' ? asked.value : undefined) ?? 0] as const
    })
  return new Map(await Promise.all(counted))
}

/** `label`: the path of a file below the config directory. */
export type SavedFile = { readonly label: string; readonly isUsed: boolean }

/** The saved files that authors write, without temporary files of editors. */
export function listSavedFiles(dir: string, files: readonly string[], inputs: readonly BuildInput[]): SavedFile[] {
  const used = new Set(inputs.map(({ file }) => file))
  return files
    .map((file) => ({ file, label: toPlaceLabel(dir, file) }))
    .filter(({ label }) => label === configFile || label === envFile || authored.test(label))
    .map(({ file, label }) => ({
      label,
      isUsed: used.has(file) || !label.includes('/') || label.includes('.fixtures/'),
    }))
}

/** The folders with modules, below the config directory. */
export const codeFolders = ['transforms', 'presets', 'verifiers', 'channels', 'plugins'].map((name) =>
  join('hooks', name),
)

/** The path below the config directory. A folder of modules may be a link. */
function toPlaceLabel(dir: string, file: string): string {
  const top = findRealPath(dir)
  const folder = codeFolders.find((name) => isInside(findRealPath(join(top, name)), file))
  const place = folder === undefined ? top : findRealPath(join(top, folder))
  return join(folder ?? '', relative(place, file))
    .split(sep)
    .join('/')
}

const authored = /\.([cm]?[jt]s|json|txt)$/

/** Whether there is a new problem, a problem less, or a module that goes live: then `logReload` writes lines, and `logSaved` is not needed. */
function hasNews({ before, problems, modules }: ReloadFacts): boolean {
  const isNew = problems.some((problem) => !before.some((other) => isSameProblem(other, problem)))
  const isOver = modules.some(
    (report) => report.problem === undefined && before.some(({ module }) => module === report.module),
  )
  return isNew || isOver || modules.some(({ kind }) => kind === 'live')
}

/** Logs a save without news, because every save gets a line. */
function logSaved(log: Log, { saved, problems }: ReloadFacts & { readonly saved: readonly SavedFile[] }): void {
  // the imports of a broken module are unknown
  const used = problems.length > 0 ? saved : saved.filter(({ isUsed }) => isUsed)
  for (const { label } of used.length > 0 ? [] : saved) log.info({}, `${label} was saved; nothing uses it`)
  if (used.length === 0) return
  const names = used.map(({ label }) => label).join(', ')
  const [first] = problems
  if (first === undefined) return log.info({}, `${names} was saved; the gateway serves the same as before`)
  log.warn({}, `${names} was saved, but there is still a problem: ${toSentence(first.detail)}`)
}

export function logReload(
  log: Log,
  reload: ReloadFacts & {
    readonly tookMs: number
    /** The saved files if no new generation was built from them; else an empty list. */
    readonly saved: readonly SavedFile[]
  },
): void {
  if (reload.saved.length > 0 && !hasNews(reload)) return logSaved(log, reload)
  for (const { module, kind, fixtures, problem } of reload.modules) {
    if (kind === 'live') log.info({}, `${module} is live (${formatFacts(reload.tookMs, fixtures)})`)
    const wasWrong = reload.before.some((other) => other.module === module)
    if (kind === 'same' && problem === undefined && wasWrong)
      log.info({}, `${module} is valid again; the code that serves has not changed`)
  }
  logProblems(log, reload)
}

export function logProblems(log: Log, reload: ReloadFacts): void {
  for (const problem of reload.problems) {
    if (reload.before.some((other) => isSameProblem(other, problem))) continue
    const { module, frame } = problem
    // the frame of the configuration quotes no payload, so it stays in a log without quotes
    const lines = module === undefined && frame !== undefined ? { problems: frame.split('\n') } : {}
    log.warn(
      { ...(frame !== undefined && { frame }), ...lines },
      `${toSentence(problem.detail)}${describeConsequence(problem, reload)}`,
    )
  }
}

export function logSettings(log: Log, before: Generation, after: Generation): void {
  const differs = (pick: (generation: Generation) => unknown) => !isSameJson(pick(before), pick(after))
  if (differs(({ config }) => config)) log.info({}, `${configFile} is live`)
  if (differs(({ env }) => env)) log.info({}, 'the environment of transforms is live')
  if (!differs(({ config }) => [config.server, config.store.file, config.store.url])) return
  log.warn({}, 'changes of server, store.file and store.url may take effect only at the next start')
}

function toSentence(detail: string): string {
  return /[.!?]$/.test(detail) ? detail : `${detail}.`
}

function describeConsequence({ module, code }: FoundProblem, { modules, parked, drain }: ReloadFacts): string {
  if (module === undefined) return ' The last good configuration keeps serving.'
  const kind = modules.find((report) => report.module === module)?.kind
  const rest = describeWaiting(parked.get(module) ?? 0, drain)
  if (kind === 'kept') return ` The last good version keeps serving.${rest}`
  if (kind === 'live') return ' It is live anyway, because there is no better version.'
  if (kind !== 'broken') return ''
  if (code === 'channel-failed') return ' Its messages wait.'
  if (code === 'plugin-failed') return ' What it brings waits.'
  return code === 'verifier-failed' ? ' Its deliveries are answered 503.' : ` Its deliveries park.${rest}`
}

function describeWaiting(count: number, drain: ReloadFacts['drain']): string {
  if (count === 0) return ''
  const waiting = formatQuantity(count, 'parked delivery', 'parked deliveries')
  if (drain === 'auto') return ` ${waiting} will run again when it is fixed.`
  return ` ${waiting} ${count === 1 ? 'waits' : 'wait'}. When it is fixed, run "hookloom retry --parked".`
}

function formatFacts(tookMs: number, { passed, notRun }: ModuleReport['fixtures']): string {
  const facts = [`${Math.round(tookMs)} ms`]
  if (passed > 0) facts.push(`${formatQuantity(passed, 'fixture')} passed`)
  if (notRun > 0) facts.push(`${notRun} not run: out of time`)
  return facts.join(', ')
}

/** A build is logged while it runs if it takes longer than this. */
const buildingMs = 300

/** Logs the names of the saved files if the build takes long. */
export async function logLongBuild<Built>(
  log: Log,
  saved: () => readonly SavedFile[],
  run: () => Promise<Built>,
): Promise<Built> {
  const timer = setTimeout(() => {
    const labels = saved().map(({ label }) => label)
    log.info({}, `building ${labels.length === 0 ? 'the modules' : labels.join(', ')} …`)
  }, buildingMs)
  try {
    return await run()
  } finally {
    clearTimeout(timer)
  }
}
