// The part of the store that the list has: all deliveries from the newest one to a place, so that the rows and the histogram have no holes. What
// changes below this place is counted. The number of rows is limited, so that a page that stays open for long does not fill the memory.
import { type Filters, type ListRow, matchesFilters } from './rows.ts'

/** The limit of rows at the start, and by how much a reader may extend it at a time. */
export const stepRows = 5_000

export type ListRange = {
  /** Sorted, newest first. */
  readonly rows: readonly ListRow[]
  /** The delivery where the list ends: the cursor of the next older page. Null if the list ends with the oldest delivery. */
  readonly next: string | null
  /** The number of deliveries that are older than the list; undefined if only a visit of all could count them. */
  readonly older: number | undefined
  /** The moment back to which a search has searched, in milliseconds since the epoch. Undefined without a search, and when it has ended. */
  readonly searchedTo: number | undefined
  /** The deliveries below the end of the list that changed, the last one last. */
  readonly below: readonly string[]
  readonly limit: number
}

export const emptyRange: ListRange = {
  rows: [],
  next: null,
  older: undefined,
  searchedTo: undefined,
  below: [],
  limit: stepRows,
}

/** A page of older rows, with the refusals of its time. */
export type RangePage = Pick<ListRange, 'rows' | 'next' | 'older' | 'searchedTo'>

/** The range with an older page at its end. The gateway has searched for its rows. */
export function addPage(range: ListRange, { rows, ...end }: RangePage, filters: Filters): ListRange {
  const all = mergeRows(range.rows, rows, filters, true)
  const shown = new Set(rows.map(({ id }) => id))
  return trim({ ...range, ...end, rows: all, below: range.below.filter((id) => !shown.has(id)) })
}

/** The range with changed rows. `isFound`: the gateway has searched for them. Rows of the stream are not searched. */
export function addChanges(
  range: ListRange,
  changed: readonly ListRow[],
  filters: Filters,
  isFound = false,
): ListRange {
  const known = new Set(range.rows.map(({ id }) => id))
  const isBelow = (row: ListRow) => !known.has(row.id) && isOlder(row, range.next)
  const deep = changed.filter((row) => isBelow(row) && matchesFilters(row, { ...filters, q: '' })).map(({ id }) => id)
  const within = changed.filter((row) => !isBelow(row))
  const below = deep.length === 0 ? range.below : [...range.below.filter((id) => !deep.includes(id)), ...deep]
  return trim({ ...range, rows: mergeRows(range.rows, within, filters, isFound), below })
}

/** Whether a delivery is older than the end of the list. Ids of deliveries sort by time. */
function isOlder(row: ListRow, next: string | null): boolean {
  return next !== null && row.kind === 'delivery' && row.id < next
}

/** Cuts the oldest rows that are over the limit. The list then ends before them. */
function trim(range: ListRange): ListRange {
  const { rows, limit, older } = range
  if (rows.length <= limit) return range
  const kept = rows.slice(0, limit)
  const last = kept.findLast(({ kind }) => kind === 'delivery')
  const cut = rows.slice(limit).filter(({ kind }) => kind === 'delivery').length
  if (last === undefined || cut === 0) return { ...range, rows: kept }
  return { ...range, rows: kept, next: last.id, older: older === undefined ? undefined : older + cut }
}

/**
 * Adds the new rows and replaces the changed rows. A row that no longer matches the filters is removed. The page does not have the payloads
 * and replies, which only the gateway can search, so a row that the gateway found stays, whatever its text.
 */
function mergeRows(
  rows: readonly ListRow[],
  changed: readonly ListRow[],
  filters: Filters,
  isFound: boolean,
): readonly ListRow[] {
  if (changed.length === 0) return rows
  const others = { ...filters, q: '' }
  const news = new Map(changed.map((row) => [row.id, row]))
  const kept = rows.flatMap((row) => {
    const now = news.get(row.id)
    if (now === undefined) return [row]
    news.delete(row.id)
    return matchesFilters(now, others) ? [now] : []
  })
  const added = [...news.values()].filter((row) =>
    matchesFilters(row, isFound && row.kind === 'delivery' ? others : filters),
  )
  return added.length === 0 ? kept : [...added, ...kept].toSorted(compareByTime)
}

/** Orders rows, newest first. Ids sort by time, so they order the rows of the same millisecond. */
function compareByTime(one: ListRow, other: ListRow): number {
  return other.at - one.at || (one.id < other.id ? 1 : -1)
}
