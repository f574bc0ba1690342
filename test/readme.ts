// The generated tables of the pages, built from the code that they describe.
import type { Argument } from 'commander'
import { calls } from '../src/model/api/calls.ts'
import { z } from 'zod'
import { presets } from '../presets/index.ts'
import { addCommands } from '../src/cli/main.ts'
import { CliCommand } from '../src/cli/terminal/usage.ts'
import { steps } from '../src/gateway/jobs/steps.ts'
import { ConfigSchema, RecoverSchema } from '../src/gateway/config/keys.ts'
import { Mapping } from '../src/core/model/mapping.ts'
import { exitCodes, problems } from '../src/core/model/problem.ts'
import { VerifySettings } from '../src/core/model/verify.ts'
import { toSenderRows } from './readme-senders.ts'

type Schema = {
  type?: string
  properties?: Record<string, Schema>
  items?: Schema
  anyOf?: Schema[]
  oneOf?: Schema[]
  const?: unknown
  enum?: unknown[]
  description?: string
  default?: unknown
}

/** The page of each generated table. */
export const tablePages: Readonly<Record<string, string>> = {
  calls: 'src/gateway/http/README.md',
  commands: 'src/cli/README.md',
  'config keys': 'src/gateway/config/README.md',
  'mapping keys': 'src/core/mapping/README.md',
  'verify keys': 'src/gateway/proofs/verifiers/README.md',
  'recover keys': 'src/plugins/outboxes/README.md',
  senders: 'src/gateway/proofs/verifiers/README.md',
  presets: 'presets/README.md',
  problems: 'src/gateway/config/README.md',
  steps: 'src/gateway/jobs/README.md',
}

/** Every generated table, by the name of its markers. */
export function toReadmeTables(): Record<string, string> {
  return {
    calls: toCallTable(),
    commands: toCommandTable(),
    'config keys': toKeyTable(toSchema(ConfigSchema), (path) => path !== '$schema'),
    'mapping keys': toKeyTable(toSchema(Mapping), () => true),
    'verify keys': toKeyTable(toSchema(VerifySettings), () => true),
    'recover keys': toRecoverTable(),
    senders: toTable(['sender', '`scheme`', 'what it proves', 'repeats', 'what to set', 'facts'], toSenderRows()),
    presets: toTable(
      ['preset', 'what it makes'],
      presets.map(({ name, title }) => [`[${name}](${name}/README.md)`, title]),
    ),
    problems: toProblemTable(),
    steps: toStepTable(),
  }
}

export const marker = (name: string) => new RegExp(`(<!-- ${name}: [^>]* -->\n)([^]*?)(<!-- end of ${name} -->)`)

function toSchema(type: z.ZodType): Schema {
  // as: the library's type is wider than the few keywords that are read here
  return z.toJSONSchema(type, { io: 'input', target: 'draft-7' }) as Schema
}

function toKeyTable(schema: Schema, isShown: (path: string) => boolean): string {
  const rows = toRows(schema, '').filter(([path = '']) => isShown(path))
  return toTable(['key', 'default', 'meaning'], rows)
}

/** The keys of each sender, and first those that all senders have. */
function toRecoverTable(): string {
  const sections = (toSchema(RecoverSchema).oneOf ?? []).map((section) => ({
    sender: section.properties?.['sender']?.const,
    rows: toRows(section, ''),
  }))
  const isShared = (row: string[]) => sections.every(({ rows }) => rows.some((other) => other.join() === row.join()))
  const own = sections.flatMap(({ sender, rows }) =>
    rows
      .filter((row) => !isShared(row))
      .map(([key = '', fallback = '', meaning = '']) => [String(sender), key, fallback, meaning]),
  )
  const shared = (sections[0]?.rows ?? []).filter(isShared).map((row) => ['all', ...row])
  return toTable(['sender', 'key', 'default', 'meaning'], [...shared, ...own])
}

const withOwnTable: ReadonlySet<string> = new Set(['hooks.mappings', 'verify'])

function toRows(schema: Schema, prefix: string): string[][] {
  return Object.entries(schema.properties ?? {}).flatMap(([key, value]) => {
    const path = `${prefix}${key}`
    if (value.properties !== undefined && !withOwnTable.has(path)) return toRows(value, `${path}.`)
    const fallback = value.default === undefined ? '' : `\`${JSON.stringify(value.default)}\``
    // a page would interpret <model> as an HTML tag
    const row = [
      `\`${path}\``,
      fallback,
      (value.description ?? '').replaceAll(/`[^`]*`|</g, (part) => (part === '<' ? String.raw`\<` : part)),
    ]
    const inner = withOwnTable.has(path) ? undefined : value.items?.properties && value.items
    return [row, ...(inner === undefined ? [] : toRows(inner, `${path}[].`))]
  })
}

function toProblemTable(): string {
  const rows = Object.entries(problems).map(([code, { status, kind, title }]) => [
    `\`${code}\``,
    String(status),
    `${kind} (${exitCodes[kind]})`,
    title,
  ])
  return toTable(['code', 'status', 'kind (exit code)', 'when'], rows)
}

/** Each call of the admin API as it is declared. */
function toCallTable(): string {
  const rows = Object.entries(calls).map(([name, { right, summary, query }]) => [
    `\`${name}\``,
    right,
    [summary, ...Object.entries(query).map(([key, meaning]) => `\`${key}\`: ${meaning}`)].join(' '),
  ])
  return toTable(['call', 'right', 'what it does, with its query parameters'], rows)
}

/** Each command as its help describes it. */
function toCommandTable(): string {
  const program = new CliCommand('hookloom', async () => {})
  addCommands(program, { writeOut: () => {} })
  const list = (command: CliCommand, name: string): string[][] => [
    ...(command.commands.length > 0 && command.registeredArguments.length === 0
      ? []
      : [[`\`${[name, ...command.registeredArguments.map(showArgument)].join(' ')}\``, command.description()]]),
    ...command.commands.flatMap((inner) => list(inner as CliCommand, `${name} ${inner.name()}`)),
  ]
  const rows = program.commands.flatMap((command) => list(command as CliCommand, `hookloom ${command.name()}`))
  return toTable(['command', 'what it does'], rows)
}

function showArgument(argument: Argument): string {
  const shown = `${argument.name()}${argument.variadic ? '...' : ''}`
  return argument.required ? `<${shown}>` : `[${shown}]`
}

function toStepTable(): string {
  const rows = Object.entries(steps).map(([name, { of, about, retry, isLogged, describeDeath }]) => {
    const end = describeDeath?.({ status: 'error', error: '…', why: '…' })
    return [
      `\`${name}\``,
      of.join(', '),
      about,
      retry === undefined ? '' : `\`${retry}\``,
      end === undefined ? '' : `\`Hook <name> (${end.status}): ${end.text}\``,
      isLogged ? 'yes' : '',
    ]
  })
  return toTable(['step', 'jobs', 'what it does', 'retries', 'event if it fails permanently', 'log line'], rows)
}

function toTable(head: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return `${[line(head), `|${head.map(() => '---|').join('')}`, ...rows.map(line)].join('\n')}\n`
}
