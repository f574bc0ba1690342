// Prints tables, fields and failures on a terminal. A cell may contain text from outside, so all cells are made printable here.
import colors from 'picocolors'
import { toPrintable, toPrintableLine } from '../../base/text.ts'
import { Problem, type TraceEntry } from '../../core/model/problem.ts'
import type { DeliveryRecord } from '../../store/records.ts'
import { type Context, formatInvocation } from './context.ts'

/** The maximum width of a cell: a sender chooses some texts, and one long cell would push all columns off the screen. */
const maxCellChars = 80

/**
 * Aligned columns under a header. A cell is cut to `maxCell` characters, except in the last column, which is cut only where a line would have
 * more than `maxLine` characters.
 */
export function renderTable(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  { maxCell = maxCellChars, maxLine = Number.POSITIVE_INFINITY } = {},
): string {
  const cells = [header, ...rows].map((row) =>
    row.map((cell, column) => (column === row.length - 1 ? toPrintableLine(cell) : cutLine(cell, maxCell))),
  )
  const widths = header.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)))
  const lines = cells.map((row) => {
    const line = row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')
    return (line.length > maxLine ? cutCharacters(line.trimEnd(), maxLine) : line).trimEnd()
  })
  return [colors.dim(lines[0]), ...lines.slice(1)].join('\n')
}

/** Prints a table. Only a terminal gets cut cells: a program that reads a pipe needs the whole text. */
export function printTable(
  context: Pick<Context, 'isTerminal' | 'print'>,
  header: readonly string[],
  rows: readonly (readonly string[])[],
  maxLine = Number.POSITIVE_INFINITY,
): void {
  const limits = context.isTerminal ? { maxLine } : { maxCell: Number.POSITIVE_INFINITY }
  context.print(renderTable(header, rows, limits))
}

/** One line for each pair of a name and a value, with the values aligned. A pair with an empty value is left out. */
export function renderFields(fields: readonly (readonly [name: string, value: string])[]): string {
  const filled = fields.filter(([, value]) => value !== '')
  const width = Math.max(0, ...filled.map(([name]) => name.length))
  return filled
    .map(([name, value]) => `  ${colors.dim(toPrintableLine(name).padEnd(width))}  ${toPrintableLine(value)}`)
    .join('\n')
}

/** The mappings that were tried, and why each of them matched or did not match the delivery. */
export function renderTrace(trace: readonly TraceEntry[]): string {
  const rows = trace.map(({ mappingId, matched, why }) => [matched ? '✓' : '·', mappingId, why])
  return renderTable(['', 'mapping', 'why'], rows)
}

/** If the page is full, prints the command that shows the older rows. `found`: sorted oldest first. */
export function printOlder<Row>(
  context: Context,
  command: readonly string[],
  { found, limit, cursor }: { found: readonly Row[]; limit: number; cursor: (oldest: Row) => string },
): void {
  const [oldest] = found
  if (oldest === undefined || found.length < limit) return
  const args = [...command, '--limit', String(limit), '--before', cursor(oldest)]
  context.print(`\n${colors.dim(`Older: ${formatInvocation(context, args)}`)}`)
}

/** The time in UTC, to the second. */
export function formatTime(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')}Z`
}

/**
 * How often a delivery was repeated, and when it was last repeated: only the time of day if that was the day on which the delivery arrived.
 * Empty if it was never repeated.
 */
export function describeRepetitions(record: Pick<DeliveryRecord, 'receivedAt' | 'repeats' | 'repeatedAt'>): string {
  const { receivedAt, repeats, repeatedAt } = record
  if (repeatedAt === undefined) return ''
  const [arrived, last] = [formatTime(receivedAt), formatTime(repeatedAt)]
  const isSameDay = arrived.slice(0, 10) === last.slice(0, 10)
  return `${repeats === 1 ? 'once' : `${repeats} times`}, last ${isSameDay ? last.slice(11) : last}`
}

export function cutLine(text: string, length: number): string {
  return cutCharacters(toPrintableLine(text), length)
}

function cutCharacters(text: string, length: number): string {
  const characters = [...text]
  return characters.length <= length ? characters.join('') : `${characters.slice(0, length - 1).join('')}…`
}

export function indent(text: string): string {
  return toPrintable(text)
    .split('\n')
    .map((line) => `  ${line}`)
    .join('\n')
}

/** Describes a failure for standard error: the sentence, then its frame. */
export function describeFailure(thrown: unknown): string {
  const problem = thrown instanceof Problem ? thrown : toUnexpectedProblem(thrown)
  const sentence = `${colors.red('✗')} ${toPrintable(problem.message)}`
  return problem.frame === undefined ? sentence : `${sentence}\n${indent(problem.frame)}`
}

/** Describes a problem that does not stop the command: one line, with the command that shows the details. */
export function describeWarning({ message, frame = '' }: Problem): string {
  const [first = ''] = frame.split('\n')
  const said = first === '' ? message : `${message}: ${first}`
  return `${colors.yellow('!')} ${toPrintableLine(said.replace(/[^.?]$/, '$&.'))} "hookloom check" shows more.`
}

function toUnexpectedProblem(thrown: unknown): Problem {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown))
  const frame = error.stack ?? error.message
  return new Problem('internal-error', 'Hookloom failed. This is a bug. Please report it with these lines:', {
    frame,
  })
}
