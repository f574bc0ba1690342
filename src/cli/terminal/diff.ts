// Shows the lines in which two values differ.
import colors from 'picocolors'
import { stringify } from '../../base/sent-json.ts'
import { cutFrom, findDivergence, toPrintableLine } from '../../base/text.ts'

/** The maximum number of lines of each value, and of characters of each line. */
const maxLines = 12
const shownPart = { max: 200, lead: 40 }

/** Marks the lines that only the first value has with "-", and those that only the second has with "+". Of the equal lines at both ends,
 * only the last one before the first difference is shown. */
export function renderDiff(before: unknown, after: unknown): string[] {
  const [old, now] = [splitLines(before), splitLines(after)]
  const same = countSame(old, now)
  const rest = Math.min(old.length, now.length) - same
  const end = Math.min(rest, countSame(old.toReversed(), now.toReversed()))
  const [removed, added] = [old.slice(same, old.length - end), now.slice(same, now.length - end)]
  const from =
    removed.length === 1 && added.length === 1 ? findDivergence(removed[0] ?? '', added[0] ?? '', shownPart) : 0
  const context = same > 0 ? [`  ${renderLine(old[same - 1] ?? '', 0)}`] : []
  return [
    ...context.map((line) => colors.dim(line)),
    ...renderSide('-', removed, from).map((line) => colors.red(line)),
    ...renderSide('+', added, from).map((line) => colors.green(line)),
  ]
}

function splitLines(value: unknown): string[] {
  if (value === undefined || value === null) return []
  return (typeof value === 'string' ? value : stringify(value)).split('\n')
}

function countSame(one: readonly string[], other: readonly string[]): number {
  let same = 0
  while (same < one.length && same < other.length && one[same] === other[same]) same += 1
  return same
}

function renderSide(mark: string, lines: readonly string[], from: number): string[] {
  const shown = lines.slice(0, maxLines).map((line) => `${mark} ${renderLine(line, from)}`)
  const more = lines.length - shown.length
  return more > 0 ? [...shown, `${mark} … ${more} more lines`] : shown
}

function renderLine(line: string, from: number): string {
  return toPrintableLine(cutFrom(line, from, shownPart.max))
}
