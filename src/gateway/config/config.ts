// Reads hookloom.jsonc and .env. Reports all problems at once, each on one line, which never shows a secret.
import { join } from 'node:path'
import { formatQuantity } from '../../base/text.ts'
import type { Config } from '../../model/config/config.ts'
import { ConfigSchema, getOpenConfigSchema } from './keys.ts'
import { readMappingId } from '../../core/model/mapping.ts'
import { type ConfigIssue, type ConfigPath, toDottedPath } from '../../core/model/issue.ts'
import { findConfigIssues } from '../../model/config/rules.ts'
import { describeValueKind } from '../../base/json.ts'
import { Problem } from '../../core/model/problem.ts'
import { noteOutsideValues } from '../../model/config/secrets.ts'
import { type Env, parseEnv, pickEnv, substituteEnv } from './env.ts'
import { toConfigIssues } from './issues.ts'
import { parseJsonc, locateKey } from './jsonc.ts'
import { configFile, envFile, readConfigText } from './text.ts'
import { findRecoverIssues } from './recover-issues.ts'
import { findWorkspaceIssues } from './workspaces.ts'

export type LoadedConfig = {
  readonly config: Config
  /** The variables that `${NAME}` reads: those of the process and of `.env`. If both have a name, the value of the process counts. */
  readonly env: Env
  /** The text of hookloom.jsonc on disk. */
  readonly text: string
  /** The text of .env on disk. Undefined if it does not exist. */
  readonly envText: string | undefined
  /** The files of the configuration, including those that do not exist. A watcher watches them. */
  readonly files: readonly string[]
}

/**
 * Throws `config-missing`, or `config-invalid` whose frame has one line for each problem. `env` wins over `.env`. `isWithoutSecrets`: see
 * `substituteEnv`. `before`: an earlier result with the same other arguments, whose configuration is kept if its files did not change.
 */
export function loadConfig({ dir, env, before, ...options }: ConfigPlace): LoadedConfig {
  const files = [join(dir, configFile), join(dir, envFile)]
  const [text, envText] = [readConfigText(dir, configFile), readConfigText(dir, envFile)]
  if (text === undefined) {
    throw new Problem('config-missing', `There is no ${configFile} in ${dir}. "hookloom init" makes one.`)
  }
  const fromFile = parseEnv(envText ?? '')
  const all = { ...fromFile.values, ...dropUnset(env) }
  const isSame = before?.text === text && before.envText === envText && !mayNameFile.test(text)
  const { config, problems } = isSame ? { config: before.config, problems: [] } : checkText(text, all, options)
  const found = config === undefined ? problems : findWorkspaceIssues(config, dir)
  const wrong = [...fromFile.problems, ...found.map((problem) => formatPlacedIssue(problem, text))]
  if (config === undefined || wrong.length > 0) throw toConfigProblem(wrong)
  return { config, env: all, text, envText, files }
}

/** Of a text with `${file:…}`, whose files are read each time. A key may have its letters as `\u0066`. */
const mayNameFile = /file:|\\u/

type ConfigPlace = { readonly dir: string; readonly env: Env; readonly before?: LoadedConfig | undefined } & LoadOptions
type LoadOptions = { readonly isWithoutSecrets?: boolean | undefined }

/** The configuration in a text, or every reason why it is invalid. */
export function parseConfig(text: string, env: Env): ConfigResult<string> {
  const { config, problems } = checkText(text, env)
  return config === undefined ? { config, problems: problems.map((one) => one.text) } : { config, problems: [] }
}

type ConfigResult<Wrong> = { config: Config; problems: readonly [] } | { config: undefined; problems: readonly Wrong[] }

/** A problem without a path is about the whole file, and names the file. */
type PlacedProblem = Pick<ConfigIssue, 'text'> & { readonly path?: ConfigPath | undefined }

/** The line of a problem, with the place of its key. */
export function formatPlacedIssue({ path, text: sentence }: PlacedProblem, text: string): string {
  return path === undefined ? sentence : `${locateKey(text, configFile, path)} ${sentence}`
}

/** Adds the place of the key to a problem that was found after the load, such as an invalid template. The problem names the key. */
export function placeProblem(problem: Problem, { config, text }: Pick<LoadedConfig, 'config' | 'text'>): Problem {
  const { code, message, frame, cause } = problem
  if (code !== 'config-invalid') return problem
  const place = (line: string) => formatPlacedIssue({ path: findNamedPath(line, config), text: line }, text)
  return new Problem(code, place(message), {
    cause,
    ...(frame === undefined ? {} : { frame: frame.split('\n').map(place).join('\n') }),
  })
}

/** The path of the key that the line of a problem names. The line has the path, or a mapping and a field, as in `mapping "github": sessionKey:`. */
function findNamedPath(line: string, config: Config): ConfigPath | undefined {
  const [, id, field = ''] = /\bmappings?\b[^"]*"([^"]*)"(?:: ([\w.]+):)?/i.exec(line) ?? []
  const index = config.hooks.mappings.findLastIndex((mapping, at) => readMappingId(mapping, at) === id)
  if (index >= 0) return ['hooks', 'mappings', index, ...field.split('.').filter((key) => key !== '')]
  const sections = Object.keys(config).join('|')
  const [, path] = new RegExp(`(?:^|: )((?:${sections})(?:\\.[\\w-]+|\\[\\d+\\])+)`).exec(line) ?? []
  return path?.match(/[\w-]+/g)?.map((key) => (/^\d+$/.test(key) ? Number(key) : key))
}

/** Parses a text, reads the variables and files that it names, and checks the result. */
function checkText(text: string, env: Env, options: LoadOptions = {}): ConfigResult<PlacedProblem> {
  const parsed = parseJsonc(text, configFile)
  if (parsed.problems.length > 0)
    return { config: undefined, problems: parsed.problems.map((line) => ({ text: line })) }
  const root = parsed.value
  if (typeof root !== 'object' || root === null || Array.isArray(root)) {
    return {
      config: undefined,
      problems: [{ text: `${configFile}:1:1 must contain one object, found ${describeValueKind(root)}.` }],
    }
  }
  const substituted = substituteEnv(root, env, options)
  const unset = substituted.issues
  const data = unset.reduce((rest, issue) => removeKey(rest, issue.path), substituted.value)
  const result = chooseSchema(data).safeParse(data)
  if (result.success && unset.length === 0) {
    const issues = [...findConfigIssues(result.data), ...findRecoverIssues(result.data)]
    const passedOn = pickEnv(result.data.hooks.transforms.env, env)
    noteOutsideValues(result.data, { substituted: substituted.values, passedOn })
    return issues.length === 0
      ? { config: result.data, problems: [] }
      : { config: undefined, problems: withoutRepeats(issues) }
  }
  const wrong = result.success ? [] : result.error.issues.flatMap((issue) => toConfigIssues(issue, data))
  // a key whose variable is missing is not reported as a missing key too
  const first = [...unset, ...wrong.filter((issue) => !unset.some((other) => isSamePath(other.path, issue.path)))]
  return { config: undefined, problems: withoutRepeats([...first, ...findFurtherIssues(data, first)]) }
}

/** With plugins, which are loaded later, sections may be theirs. */
function chooseSchema(data: unknown): typeof ConfigSchema {
  const plugins: unknown = typeof data === 'object' && data !== null ? Reflect.get(data, 'plugins') : undefined
  return Array.isArray(plugins) && plugins.length > 0 ? getOpenConfigSchema() : ConfigSchema
}

/** Removes the keys that have an issue already, and applies the rules to the rest of the configuration. Returns the further issues. */
function findFurtherIssues(data: unknown, issues: readonly ConfigIssue[]): ConfigIssue[] {
  let rest = data
  let paths = issues.map((issue) => issue.path)
  // a removal can leave its parent incomplete, such as a transform without its module: then the parent is removed too
  for (let round = 0; round < 3; round++) {
    rest = paths.reduce(removeKey, rest)
    const result = chooseSchema(rest).safeParse(rest)
    if (result.success) {
      const isReported = ({ path, missingPath }: ConfigIssue) =>
        issues.some(
          (issue) => isSamePath(issue.path, path) || (missingPath !== undefined && isWithin(issue.path, missingPath)),
        )
      return [...findConfigIssues(result.data), ...findRecoverIssues(result.data)].filter((found) => !isReported(found))
    }
    const left = rest
    paths = result.error.issues.flatMap((issue) => toConfigIssues(issue, left)).map((issue) => issue.path.slice(0, -1))
  }
  return []
}

/** A copy without the key at the path. For an entry of an array, the whole array is removed, so that no other entry moves. */
function removeKey(value: unknown, path: ConfigPath): unknown {
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
  return new Problem('config-invalid', `${configFile} has ${formatQuantity(lines.length, 'problem')}`, {
    frame: lines.join('\n'),
  })
}

function withoutRepeats(issues: readonly ConfigIssue[]): ConfigIssue[] {
  return issues.filter(({ text }, index) => issues.findIndex((other) => other.text === text) === index)
}

function isWithin(path: ConfigPath, section: ConfigPath): boolean {
  return isSamePath(path.slice(0, section.length), section)
}

function isSamePath(one: ConfigPath, other: ConfigPath): boolean {
  return toDottedPath(one) === toDottedPath(other)
}

/** Removes variables whose value is undefined. */
function dropUnset(env: Env): Env {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined))
}
