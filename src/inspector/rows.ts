// The rows of the list: deliveries and refusals.
import type { DeliveryRow, JobFields } from '../model/api/answers.ts'
import type { RefusalFields } from '../model/api/refusals.ts'
import { formatDuration, formatTimes, toLocalTimes } from './format.ts'

export type ListRow = { readonly id: string; readonly at: number } & (
  | { readonly kind: 'delivery'; readonly delivery: DeliveryRow }
  | ({ readonly kind: 'refusal'; readonly refusal: RefusalFields } & Fold)
)

/** `times`: the number of refusals that the row stands for. `fold`: their name, if they are several. `isOpen`: each has its own row below. */
type Fold = { readonly times: number; readonly fold?: string; readonly isOpen?: boolean }

/** The set with the name, or without it if it had it. */
export const toggleName = (names: ReadonlySet<string>, name: string): ReadonlySet<string> =>
  new Set(names.has(name) ? [...names].filter((each) => each !== name) : [...names, name])

/** `state`: the state of a row. `since`, `until`: milliseconds since the epoch. An empty filter selects all rows. */
export type Filters = { readonly [Name in 'state' | 'hook' | 'source' | 'q' | 'since' | 'until']: string }

export const toListRow = (delivery: DeliveryRow): ListRow => ({
  kind: 'delivery',
  id: delivery.deliveryId,
  at: Date.parse(delivery.receivedAt),
  delivery,
})
export const toRefusalRow = (refusal: RefusalFields): ListRow => ({
  kind: 'refusal',
  id: refusal.requestId,
  at: refusal.receivedAt,
  refusal,
  times: 1,
})

/** Whether a moment is within the time filter. An empty limit is no limit. */
export function isWithin(at: number, { since, until }: { readonly since: string; readonly until: string }): boolean {
  return (since === '' || at >= Number(since)) && (until === '' || at < Number(until))
}

/** Whether a row matches all filters. Rows from the stream are not filtered by the gateway. */
export function matchesFilters(row: ListRow, { state, hook, source, q, since, until }: Filters): boolean {
  const word = q.trim().toLowerCase()
  if (!isWithin(row.at, { since, until })) return false
  const fitsState = state === '' || (state === 'waiting' ? waitingStates : [state]).includes(findRowState(row))
  if (row.kind === 'refusal') {
    const { refusal } = row
    const text = `${refusal.hook ?? refusal.path}\n${refusal.code}`.toLowerCase()
    return (
      fitsState &&
      source === '' &&
      (hook === '' || hook === refusal.hook) &&
      (text.includes(word) || row.id.startsWith(word))
    )
  }
  const { delivery } = row
  const { summary, mappingId, event } = delivery
  const text = [delivery.hook, delivery.source, event, mappingId, summary].join('\n').toLowerCase()
  return (
    fitsState &&
    (hook === '' || hook === delivery.hook) &&
    (source === '' || source === delivery.source) &&
    (text.includes(word) || row.id.startsWith(word))
  )
}

export type RowState =
  | 'parked'
  | 'dead'
  | 'refused'
  | 'failing'
  | 'waiting'
  | 'running'
  | 'done'
  | 'skipped'
  | 'dropped'
  | 'superseded'
  | 'cancelled'
  | 'expired'

/** The states of the filter `waiting`: all states in which a row has not ended. */
const waitingStates: readonly string[] = ['failing', 'waiting', 'running'] satisfies RowState[]

export function findRowState(row: ListRow): RowState {
  return row.kind === 'refusal' ? 'refused' : findState(row.delivery)
}

const endsWithoutEffect = ['cancelled', 'superseded', 'expired', 'skipped'] as const

/** The state of a delivery in one word. If several words fit, the one that needs a person has priority. */
export function findState({ state, jobs }: Pick<DeliveryRow, 'state' | 'jobs'>): RowState {
  if (state === 'parked' || state === 'skipped' || state === 'dropped') return state
  if (jobs.dead > 0) return 'dead'
  if (jobs.failing > 0) return 'failing'
  if (jobs.running > 0) return 'running'
  if (state === 'pending' || jobs.queued > 0) return 'waiting'
  if (jobs.dropped > 0) return 'dropped'
  if (jobs.done > 0) return 'done'
  return endsWithoutEffect.find((end) => jobs[end] > 0) ?? 'done'
}

/** Whether an attempt of a run failed. What only waits, such as for a budget, may have a sentence in `lastError` too. */
export const hasFailed = ({ attempts, failures }: Pick<JobFields, 'attempts' | 'failures'>) =>
  attempts > 0 || failures.length > 0

/** Counts the jobs of one delivery for `findState`. `failing` has the rule of the gateway: the error of an older attempt does not count. */
export function countJobs(jobs: readonly JobFields[]): DeliveryRow['jobs'] {
  const count = (isCounted: (job: JobFields) => boolean) => jobs.filter(isCounted).length
  return {
    queued: count(({ state }) => state === 'queued'),
    running: count(({ state }) => state === 'running'),
    done: count(({ state }) => state === 'done'),
    dead: count(({ state }) => state === 'dead'),
    failing: count(
      ({ state, attempts, failingSince }) => state === 'queued' && (attempts > 0 || failingSince !== null),
    ),
    dropped: count(({ state }) => state === 'dropped'),
    superseded: count(({ state }) => state === 'superseded'),
    cancelled: count(({ state }) => state === 'cancelled'),
    expired: count(({ state }) => state === 'expired'),
    skipped: count(({ state }) => state === 'skipped'),
  }
}

/** A symbol for each state, so that colour is not the only sign. `silent`: a sender. */
export const glyphs: Readonly<Record<RowState | 'silent', string>> = {
  silent: '◌',
  parked: '■',
  dead: '✕',
  refused: '⊘',
  failing: '▲',
  waiting: '○',
  running: '◐',
  done: '✓',
  skipped: '–',
  dropped: '⌫',
  superseded: '↷',
  cancelled: '⊗',
  expired: '◷',
}

export type ListItem = { readonly kind: 'day'; readonly id: string; readonly at: number } | ListRow

/**
 * The rows, with a heading for each day before today. The refusals of one hook for one reason become one row a day, at the place of the newest. Those
 * of strangers become one row for each client and status between two other rows, unless `showsStrangers`. `open`: the names of the folds that are open.
 */
export function toListItems(
  rows: readonly ListRow[],
  { showsStrangers = false, open = new Set() }: { showsStrangers?: boolean; open?: ReadonlySet<string> } = {},
): ListItem[] {
  const items: ListItem[] = []
  const places = new Map<string, number>()
  const strangers = new Map<string, number>()
  let midnight = new Date().setHours(0, 0, 0, 0)
  for (const row of rows) {
    const isFirstOfDay = row.at < midnight
    if (isFirstOfDay) {
      midnight = new Date(row.at).setHours(0, 0, 0, 0)
      items.push({ kind: 'day', id: `day-${midnight}`, at: row.at })
      places.clear()
    }
    if (isFirstOfDay || row.kind === 'delivery' || !row.refusal.isStranger) strangers.clear()
    if (row.kind === 'delivery' || (row.refusal.isStranger && showsStrangers)) {
      items.push(row)
      continue
    }
    const { refusal } = row
    const name = refusal.isStranger
      ? `${refusal.client} ${refusal.status}`
      : `${refusal.hook ?? refusal.path} ${refusal.code}`
    const known = refusal.isStranger ? strangers : places
    const place = known.get(name)
    const newest = place === undefined ? undefined : items[place]
    if (place !== undefined && newest?.kind === 'refusal') {
      items[place] = { ...newest, times: newest.times + 1, fold: name, isOpen: open.has(name) }
      if (!open.has(name)) continue
    } else known.set(name, items.length)
    items.push(row)
  }
  return items
}

export function describeRow(row: ListRow): string {
  if (row.kind === 'refusal') {
    return toLocalTimes(row.refusal.reason)
  }
  const { repeats, recovered, edited, summary, waits } = row.delivery
  // the summary of a row that needs a person is a sentence of the gateway, and no text of the sender
  const content = failures.includes(findRowState(row)) ? toLocalTimes(summary) : summary
  return `${content}${waits === undefined ? '' : ` · ${toLocalTimes(waits)}`}${recovered ? ' · recovered' : ''}${edited ? ' · edited' : ''}${repeats === 0 ? '' : ` · repeated ${formatTimes(repeats)}`}`
}

/** The time from the arrival to the last step of the last action, without the time that it was parked. Blank until then, and for a refusal. */
export function formatTook(row: ListRow): string {
  return row.kind === 'refusal' ? '' : formatDuration(row.delivery.doneMs)
}

/** `from`, `until`: milliseconds since the epoch; `until` is exclusive. `failed`: the number of rows that need a person. */
export type Bin = { readonly from: number; readonly until: number; readonly all: number; readonly failed: number }

/** The number of equal parts into which the shown time is divided. */
const bins = 48
const failures: readonly string[] = ['parked', 'dead', 'failing', 'refused']

/** The bins. None for fewer than two rows. Refusals of strangers do not count as failures. */
export function buildBins(rows: readonly ListRow[]): readonly Bin[] {
  const [newest, oldest] = [rows[0]?.at, rows.at(-1)?.at]
  if (newest === undefined || oldest === undefined || rows.length < 2) return []
  const length = Math.max(1, Math.ceil((newest - oldest + 1) / bins))
  const counts = Array.from({ length: bins }, () => ({ all: 0, failed: 0 }))
  for (const row of rows) {
    const count = counts[Math.floor((row.at - oldest) / length)]
    if (count === undefined) continue
    count.all += 1
    const isQuiet = row.kind === 'refusal' && row.refusal.isStranger
    if (!isQuiet && failures.includes(findRowState(row))) count.failed += 1
  }
  return counts.map((count, at) => ({ from: oldest + at * length, until: oldest + (at + 1) * length, ...count }))
}
