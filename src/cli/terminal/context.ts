// What a command is given: where it works, and the two streams it may write to.
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Env } from '../../loader/config/env.ts'

export type Context = {
  /** The config directory, absolute. */
  readonly dir: string
  readonly env: Env
  /** `--json`: one JSON object a line, and nothing else, on standard output. */
  readonly json: boolean
  /** Lines on standard output. Text from outside goes through `toPrintable` first. */
  print(text: string): void
  printJson(value: object): void
  /** Lines on standard error. */
  note(text: string): void
}

export function createContext(options: { configDir?: string; json?: boolean }): Context {
  const { env } = process
  return {
    dir: toConfigDir(options.configDir, env),
    env,
    json: options.json === true,
    print: (text) => void process.stdout.write(`${text}\n`),
    printJson: (value) => void process.stdout.write(`${toJsonLine(value)}\n`),
    note: (text) => void process.stderr.write(`${text}\n`),
  }
}

/** `--config-dir`, else `HOOKLOOM_HOME`, else `~/.hookloom`. A blank one counts as none. */
export function toConfigDir(given: string | undefined, env: Env): string {
  const named = [given, env['HOOKLOOM_HOME']].find((dir) => dir !== undefined && dir.trim() !== '')
  return named === undefined ? join(homedir(), '.hookloom') : resolve(named)
}

/** JSON leaves C1 controls and the marks that turn the direction of text as they are, and a terminal obeys them. */
function toJsonLine(value: object): string {
  return JSON.stringify(value).replace(
    /[\u007F-\u009F\u061C\u200E\u200F\u2028\u2029\u202A-\u202E\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
