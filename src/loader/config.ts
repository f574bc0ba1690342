// Reads hookloom.jsonc and .env. Everything that is wrong is told at once, one line each, and no line shows a value.
import { join } from 'node:path'
import { Config } from '../model/config.ts'
import { type ConfigIssue, type ConfigPath, toDottedPath } from '../model/issue.ts'
import { toConfigIssues } from '../model/config-rules.ts'
import { toKindOf } from '../base/json.ts'
import { Problem } from '../model/problem.ts'
import { type Env, parseEnv, readRegularFile, substituteEnv, toReadFault } from './config/env.ts'
import { toKeyedIssues } from './config/issues.ts'
import { parseJsonc, toPlace } from './config/jsonc.ts'

export const configFile = 'hookloom.jsonc'
export const envFile = '.env'

/** Bytes. */
const largestFile = 10_000_000

export type LoadedConfig = {
  readonly config: Config
  /** The variables that `${NAME}` reads: those of the process, and behind them those of `.env`. */
  readonly env: Env
  /** hookloom.jsonc as it stands on disk. */
  readonly text: string
  /** The files that decide the configuration, there or not: what a watcher watches. */
  readonly files: readonly string[]
}

/** Throws `config-missing`, or `config-invalid` whose frame has one line for each problem. `env` wins over `.env`. */
export function loadConfig({ dir, env }: { dir: string; env: Env }): LoadedConfig {
  const files = [join(dir, configFile), join(dir, envFile)]
  const [text, envText] = [readText(dir, configFile), readText(dir, envFile)]
  if (text === undefined) {
    throw new Problem('config-missing', `There is no ${configFile} in ${dir}. "hookloom init" makes one.`)
  }
  const fromFile = parseEnv(envText ?? '')
  const all = { ...fromFile.values, ...toSet(env) }
  const { config, problems } = findProblems(text, all)
  const wrong = [...fromFile.problems, ...problems.map((problem) => toPlacedLine(problem, text))]
  if (config === undefined || wrong.length > 0) throw toConfigProblem(wrong)
  return { config, env: all, text, files }
}

/** The configuration that a text holds, or every reason why it holds none. Exactly one of the two is there. */
export function parseConfig(text: string, env: Env): Parsed<string> {
  const { config, problems } = findProblems(text, env)
  return config === undefined ? { config, problems: problems.map((one) => one.text) } : { config, problems: [] }
}

type Parsed<Wrong> = { config: Config; problems: readonly [] } | { config: undefined; problems: readonly Wrong[] }

/** A problem without a path is one of the whole file, and names it. */
type PlacedProblem = Pick<ConfigIssue, 'text'> & Partial<Pick<ConfigIssue, 'path'>>

/** The line of a problem, with the place of its key. */
export function toPlacedLine({ path, text: sentence }: PlacedProblem, text: string): string {
  return path === undefined ? sentence : `${toPlace(text, configFile, path)} ${sentence}`
}

function findProblems(text: string, env: Env): Parsed<PlacedProblem> {
  const parsed = parseJsonc(text, configFile)
  if (parsed.problems.length > 0)
    return { config: undefined, problems: parsed.problems.map((line) => ({ text: line })) }
  const root = parsed.value
  if (typeof root !== 'object' || root === null || Array.isArray(root)) {
    return {
      config: undefined,
      problems: [{ text: `${configFile} must contain one object, found ${toKindOf(root)}.` }],
    }
  }
  const substituted = substituteEnv(root, env)
  const unset = substituted.issues
  const data = unset.reduce((rest, issue) => without(rest, issue.path), substituted.value)
  const result = Config.safeParse(data)
  if (result.success && unset.length === 0) {
    const issues = toConfigIssues(result.data)
    return issues.length === 0
      ? { config: result.data, problems: [] }
      : { config: undefined, problems: withoutRepeats(issues) }
  }
  const wrong = result.success ? [] : result.error.issues.flatMap((issue) => toKeyedIssues(issue, data))
  // where a variable is missing, the key is not: one line is enough
  const first = [...unset, ...wrong.filter((issue) => !unset.some((other) => isSame(other.path, issue.path)))]
  return { config: undefined, problems: withoutRepeats([...first, ...toFurtherIssues(data, first)]) }
}

/** What the rules say of the rest, once the keys that are wrong by themselves are taken away. */
function toFurtherIssues(data: unknown, issues: readonly ConfigIssue[]): ConfigIssue[] {
  let rest = data
  let paths = issues.map((issue) => issue.path)
  // what a removal leaves incomplete goes as well: a mapping's transform without its module, and then no further
  for (let round = 0; round < 3; round++) {
    rest = paths.reduce(without, rest)
    const result = Config.safeParse(rest)
    if (result.success) {
      const isSaid = ({ path, missed }: ConfigIssue) =>
        issues.some((issue) => isSame(issue.path, path) || (missed !== undefined && isWithin(issue.path, missed)))
      return toConfigIssues(result.data).filter((found) => !isSaid(found))
    }
    const left = rest
    paths = result.error.issues.flatMap((issue) => toKeyedIssues(issue, left)).map((issue) => issue.path.slice(0, -1))
  }
  return []
}

/** A copy without the key at the path; of an entry of an array, without the array, so that no other entry moves. */
function without(value: unknown, path: ConfigPath): unknown {
  const keys = path.slice(0, path.findLastIndex((key) => typeof key === 'string') + 1)
  const copy = structuredClone(value)
  let parent: unknown = copy
  for (const key of keys.slice(0, -1)) {
    parent = typeof parent === 'object' && parent !== null ? Reflect.get(parent, key) : undefined
  }
  const last = keys.at(-1)
  if (last !== undefined && typeof parent === 'object' && parent !== null) Reflect.deleteProperty(parent, last)
  return copy
}

function toConfigProblem(lines: readonly string[]): Problem {
  const count = lines.length === 1 ? '1 problem' : `${lines.length} problems`
  return new Problem('config-invalid', `${configFile} has ${count}`, { frame: lines.join('\n') })
}

function withoutRepeats(issues: readonly ConfigIssue[]): ConfigIssue[] {
  return issues.filter(({ text }, index) => issues.findIndex((other) => other.text === text) === index)
}

function isWithin(path: ConfigPath, section: ConfigPath): boolean {
  return isSame(path.slice(0, section.length), section)
}

function isSame(one: ConfigPath, other: ConfigPath): boolean {
  return toDottedPath(one) === toDottedPath(other)
}

/** A variable that is there but undefined is one that is not set. */
function toSet(env: Env): Env {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined))
}

/** Undefined when the file is not there. Throws `config-invalid` for one that cannot be read. */
export function readText(dir: string, name: string): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(
      readRegularFile(join(dir, name), largestFile),
    )
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw new Problem('config-invalid', `${name} in ${dir} cannot be read: ${toReadFault(error)}.`, { cause: error })
  }
}
