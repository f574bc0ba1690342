// The options that several commands share, and the error for a wrong command line: one sentence and exit code 64.
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import { findNearest } from '../../base/text.ts'
import { Problem } from '../../core/model/problem.ts'
import type { Context } from './context.ts'

/** Runs the function of a command with the context, and keeps its exit code. */
type Start = (command: Command, work: (context: Context) => Promise<number>) => Promise<void>

/** A command of commander, with the examples of its help. Its function gets the context first, and returns the exit code. */
export class CliCommand extends Command {
  readonly #start: Start

  constructor(name: string | undefined, start: Start) {
    super(name)
    this.#start = start
  }

  override createCommand(name?: string): CliCommand {
    return new CliCommand(name, this.#start)
  }

  examples(...lines: readonly string[]): this {
    return this.addHelpText('after', [`\n${lines.length === 1 ? 'Example' : 'Examples'}:`, ...lines].join('\n  '))
  }

  run<Given extends unknown[]>(work: (context: Context, ...given: Given) => Promise<number>): this {
    return this.action((...given: Given) => this.#start(this, (context) => work(context, ...given)))
  }
}

/** The id in the examples of the help. */
export const exampleId = '01a1fb45-0fdd-7713-8f98-02441594b06c'

/** The help of an argument that is passed to `findId`. */
export const idArgument = 'delivery id or run id, a unique prefix of one, or "last"'

export function jsonOption(): Option {
  return new Option('--json', 'print one JSON object a line')
}

/** Converts an error of commander to a Problem. Undefined if commander only showed the help or the version. `asked`: the full name of the
 * command, such as "hookloom gmail setup". */
export function toUsageProblem(error: CommanderError, asked: string): Problem | undefined {
  if (error.exitCode === 0) return undefined
  if (error.code === 'commander.help') {
    return new Problem('usage-invalid', `Which command? "${asked} --help" lists the commands.`)
  }
  const [, said = '', near] = /^(?:error: )?([^]*?)(?:\n\(Did you mean ([^]*?)\?\))?$/.exec(error.message) ?? []
  const sentence = `${said.charAt(0).toUpperCase()}${said.slice(1)}`.replace(/\.?$/, '.')
  const isKnown = near !== undefined || sentence.includes('Did you mean') || sentence.includes('Expected')
  const next = near === undefined ? `"${asked} --help" shows the options.` : `Did you mean ${near}?`
  return new Problem(
    'usage-invalid',
    near === undefined && isKnown ? sentence.replace(/\?\.$/, '?') : `${sentence} ${next}`,
  )
}

/** The full name of the command in a command line, such as "hookloom gmail setup". */
export function findCommandName(program: Command, words: readonly string[]): string {
  let command = program
  const names = [program.name()]
  for (const word of words) {
    const next = command.commands.find((known) => known.name() === word)
    if (next === undefined) continue
    command = next
    names.push(word)
  }
  return names.join(' ')
}

/** Makes a parser for an option that takes a whole number. */
export function createIntegerParser(min: number, max: number): (text: string) => number {
  return (text) => {
    const number = Number(text)
    if (/^\d+$/.test(text) && number >= min && number <= max) return number
    throw new InvalidArgumentError(`Expected a whole number from ${min} to ${max}`)
  }
}

export const limitOption = () =>
  new Option('--limit <n>', 'the maximum number of rows; the newest are shown')
    .argParser(createIntegerParser(1, 10_000))
    .default(50)

/** Parses the value of `--before`: a time, as `--json` or a table prints it. Returns milliseconds since the epoch. */
export function parseMoment(text: string): number {
  const isWhole = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d))?$/.test(text)
  const moment = Date.parse(text)
  if (isWhole && !Number.isNaN(moment)) return moment
  throw new InvalidArgumentError('Expected a time such as 2026-01-02T03:04:05.678Z')
}

const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Parses the value of `--since`: a duration before now, such as 2h, or a time. Returns milliseconds since the epoch. */
export function parseSince(text: string): number {
  const [, count, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  const ms = unitMs[unit]
  if (ms !== undefined) return Date.now() - Number(count) * ms
  try {
    return parseMoment(text)
  } catch {
    throw new InvalidArgumentError('Expected 30m, 2h, 7d, or a time such as 2026-01-02T03:04:05Z')
  }
}

/** Makes a parser for an option that takes one of a few words. */
export function createWordParser<Word extends string>(words: readonly Word[]): (text: string) => Word {
  return (text) => {
    const word = words.find((known) => known === text)
    if (word !== undefined) return word
    const near = findNearest(text, words)
    throw new InvalidArgumentError(near === undefined ? `Expected one of ${words.join(', ')}` : `Did you mean ${near}?`)
  }
}

/** Collects the values of an option that may be given several times. */
export function collect(text: string, earlier: readonly string[] = []): string[] {
  return [...earlier, text]
}
