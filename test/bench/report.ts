// Renders the tables of the bench: first the ratios, then the measurements from which they are computed.
import type { DiskTimes } from './disk.ts'
import { computeMedian } from './statistics.ts'
import type { Load } from './suites.ts'
import type { Row, Verdict } from './verdicts.ts'

export type Report = {
  readonly machine: string
  /** The share of the processors that other programs used in the worst round, from 0 to 1. */
  readonly busy: number
  readonly disk: DiskTimes
  readonly verdicts: readonly Verdict[]
  /** Facts that are needed to read the figures of the peers. */
  readonly notes: readonly string[]
  readonly rows: readonly Row[]
}

/** The median of all rounds. */
export function summarizeDisk(rounds: readonly DiskTimes[]): DiskTimes {
  return {
    p50Ms: computeMedian(rounds.map(({ p50Ms }) => p50Ms)),
    p99Ms: computeMedian(rounds.map(({ p99Ms }) => p99Ms)),
  }
}

export function renderReport({ machine, busy, disk, verdicts, notes, rows }: Report): string {
  const ratios = verdicts.map((verdict) => [
    verdict.title,
    verdict.load === undefined ? '' : formatLoad(verdict.load),
    verdict.value.toFixed(2),
    `${verdict.lowest.toFixed(2)} to ${verdict.highest.toFixed(2)}`,
    formatGoal(verdict),
    verdict.goal === undefined ? '' : describeOutcome(verdict),
  ])
  const absolutes = rows.map((row) => [
    row.variant,
    formatLoad(row.load),
    Math.round(row.perSecond).toLocaleString('en'),
    row.p50Ms.toFixed(2),
    row.p99Ms.toFixed(2),
    row.cpuMicros.toFixed(0),
    row.mainMicros === 0 ? '' : row.mainMicros.toFixed(0),
    row.jobsPerSecond === undefined ? '' : `${Math.round(row.jobsPerSecond).toLocaleString('en')} runs/s beside`,
  ])
  return [
    renderTable(
      ['requests a second, as a ratio, and other verdicts', 'load', 'median', 'rounds', 'goal (floor)', ''],
      ratios,
    ),
    ...(rows.length === 0
      ? []
      : [renderTable(['server', 'load', 'req/s', 'p50 ms', 'p99 ms', 'cpu µs/req', 'main thread', ''], absolutes)]),
    ...(notes.length === 0 ? [] : [notes.join('\n')]),
    `disk: append and fdatasync p50 ${disk.p50Ms.toFixed(3)} ms, p99 ${disk.p99Ms.toFixed(3)} ms`,
    `machine: ${machine}, in use by others ${Math.round(busy * 100)} %`,
  ].join('\n\n')
}

/** A sentence for each missed goal. */
export function describeMisses(verdicts: readonly Verdict[]): string[] {
  return verdicts
    .filter(({ holds }) => !holds)
    .map(
      ({ title, load, value, isMost, floor }) =>
        `${[title, ...(load ? [formatLoad(load)] : [])].join(', ')}: expected ${isMost ? 'at most' : 'at least'} ${floor?.toFixed(2)}, ` +
        `measured ${value.toFixed(2)}.`,
    )
}

function formatLoad({ connections, bytes }: Load): string {
  return `${connections} × ${bytes / 1000} kB`
}

function formatGoal({ isMost, goal, floor }: Verdict): string {
  return goal === undefined ? '' : `${isMost ? '≤' : '≥'} ${goal} (${floor?.toFixed(2)})`
}

function describeOutcome({ isMost, value, goal, holds }: Verdict): string {
  if (!holds) return 'MISSED'
  const isReached = goal !== undefined && (isMost ? value <= goal : value >= goal)
  return isReached ? 'reached' : isMost ? 'below the ceiling' : 'above the floor'
}

/** The first two columns and the last one contain text, the others numbers. */
function renderTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((name, column) => Math.max(name.length, ...rows.map((row) => row[column]?.length ?? 0)))
  const isText = (column: number) => column < 2 || column === head.length - 1
  const renderLine = (cells: readonly string[]) =>
    cells
      .map((cell, column) => (isText(column) ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('  ')
      .trimEnd()
  return [head, widths.map((width) => '─'.repeat(width)), ...rows].map(renderLine).join('\n')
}
