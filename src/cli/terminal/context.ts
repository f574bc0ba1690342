// The input and output of a command. Also writes command lines that a user can copy into a shell.
import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, join, relative, resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { quoteShellWord } from '../../base/shell.ts'
import { stringify } from '../../base/sent-json.ts'
import type { Env } from '../../gateway/config/env.ts'

/** The parts of a process that a command uses. A test replaces them. */
export type CommandIo = {
  readonly env: Env
  /** The path with which the program was started. */
  readonly script: string
  readonly stdin: Readable
  /** Whether standard output is a terminal, where a person reads lines of a limited width. */
  readonly isTerminal?: boolean
  /** Replaces the last line of standard error, which is a terminal. An empty text removes it. */
  readonly drawLine?: ((text: string) => void) | undefined
  writeOut(text: string): void
  writeError(text: string): void
}

export type Context = {
  /** The config directory, as an absolute path. */
  readonly dir: string
  readonly env: Env
  readonly script: string
  readonly stdin: Readable
  /** With `--json`: prints one JSON object a line on standard output, and nothing else. */
  readonly json: boolean
  readonly isTerminal: boolean
  readonly drawLine?: CommandIo['drawLine']
  /** Prints a line on standard output. Text from outside goes through `toPrintable` first. */
  print(text: string): void
  printJson(value: object): void
  /** Prints a line on standard error. */
  note(text: string): void
}

export function createContext(
  { env, script, stdin, isTerminal = false, drawLine, writeOut, writeError }: CommandIo,
  options: { configDir?: string; json?: boolean },
): Context {
  return {
    dir: resolveConfigDir(options.configDir, env),
    env,
    script,
    stdin,
    json: options.json === true,
    isTerminal,
    drawLine,
    print: (text) => writeOut(`${text}\n`),
    printJson: (value) => writeOut(`${renderJsonLine(value)}\n`),
    note: (text) => writeError(`${text}\n`),
  }
}

/** The config directory: `--config-dir`, else `HOOKLOOM_HOME`, else `~/.hookloom`. A blank value counts as missing. */
function resolveConfigDir(given: string | undefined, env: Env): string {
  const named = [given, env['HOOKLOOM_HOME']].find((dir) => dir !== undefined && dir.trim() !== '')
  return named === undefined ? findDefaultDir(env) : resolve(named)
}

function findDefaultDir(env: Env): string {
  return join(env['HOME'] ?? homedir(), '.hookloom')
}

/** Escapes the C1 controls and direction marks, which a terminal obeys and JSON does not escape. */
function renderJsonLine(value: object): string {
  return stringify(value).replace(
    /[\u007F-\u009F\u061C\u200E\u200F\u2028\u2029\u202A-\u202E\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/**
 * Runs the work. On a terminal, a line says each second how long it takes and, if the work reports it, what is done; it is gone at the end. In a pipe, nothing
 * is printed.
 */
export async function withProgress<T>(
  { drawLine }: Pick<Context, 'drawLine'>,
  label: string,
  work: (report: (done: string) => void) => Promise<T>,
): Promise<T> {
  let seconds = 0
  let done = ''
  const draw = () => {
    seconds += 1
    drawLine?.(`${label} … ${seconds} s${done === '' ? '' : `: ${done}`}`)
  }
  const timer = drawLine === undefined ? undefined : setInterval(draw, 1_000)
  try {
    return await work((text) => (done = text))
  } finally {
    clearInterval(timer)
    if (seconds > 0) drawLine?.('')
  }
}

/** The shell command that runs this program with these arguments on this config directory. */
export function formatInvocation({ dir, env, script }: Context, args: readonly string[]): string {
  const isInstalled = basename(script) === 'hookloom'
  const isThroughNpx = env['npm_command'] === 'exec' || basename(dirname(script)) === '.bin'
  const near = relative(process.cwd(), script)
  const installed = isThroughNpx ? ['npx', findNpxPackage(script)] : ['hookloom']
  const program = isInstalled ? installed : ['node', near.startsWith('..') ? script : near]
  const isFound = env['HOOKLOOM_HOME'] === dir || (env['HOOKLOOM_HOME'] === undefined && dir === findDefaultDir(env))
  return [...program, ...args, ...(isFound ? [] : ['--config-dir', dir])].map(quoteShellWord).join(' ')
}

/** What `npx` runs the program with. For a tarball it is the file: `npx` keeps that in a folder of its own, and would ask the registry for the name. */
function findNpxPackage(script: string): string {
  const folder = resolve(dirname(script), '../..')
  if (basename(dirname(folder)) !== '_npx') return 'hookloom'
  try {
    const { dependencies }: { dependencies: { hookloom: string } } = JSON.parse(
      readFileSync(join(folder, 'package.json'), 'utf8'),
    )
    const { hookloom } = dependencies
    // without "file:", npx would execute the tarball itself
    return hookloom.startsWith('file:') ? `file:${resolve(folder, hookloom.slice('file:'.length))}` : 'hookloom'
  } catch {
    return 'hookloom'
  }
}
