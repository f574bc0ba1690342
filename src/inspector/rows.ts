// The rows of the list: deliveries and refusals, newest first, in one order. It is bounded, so that a page that stays open stays small.
import type { DeliveryRow, RefusalFields } from '../model/api-types.ts'
import type { Filters } from './place.ts'

export type ListRow =
  | { readonly kind: 'delivery'; readonly id: string; readonly at: number; readonly delivery: DeliveryRow }
  | { readonly kind: 'refusal'; readonly id: string; readonly at: number; readonly refusal: RefusalFields }

export const maxRows = 5_000

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
})

/** The rows with the new and changed ones. A row that no longer fits the filters leaves. */
export function mergeRows(rows: readonly ListRow[], changed: readonly ListRow[], filters: Filters): readonly ListRow[] {
  if (changed.length === 0) return rows
  const news = new Map(changed.map((row) => [row.id, row]))
  const kept = rows.flatMap((row) => {
    const now = news.get(row.id)
    if (now === undefined) return [row]
    news.delete(row.id)
    return matchesFilters(now, filters) ? [now] : []
  })
  const added = [...news.values()].filter((row) => matchesFilters(row, filters))
  if (added.length === 0) return kept
  return [...added, ...kept].toSorted(byNewest).slice(0, maxRows)
}

/** Ids are in the order of their time, and break the ties of a millisecond. */
function byNewest(one: ListRow, other: ListRow): number {
  return other.at - one.at || (one.id < other.id ? 1 : -1)
}

/** The filters of the API, for rows that come by the stream. */
export function matchesFilters(row: ListRow, { state, hook, source, q }: Filters): boolean {
  const word = q.trim().toLowerCase()
  if (row.kind === 'refusal') {
    const { refusal } = row
    const text = `${refusal.hook ?? refusal.path}\n${refusal.code}`.toLowerCase()
    return (
      (state === '' || state === 'refused') &&
      source === '' &&
      (hook === '' || hook === refusal.hook) &&
      (text.includes(word) || row.id.startsWith(word))
    )
  }
  const { delivery } = row
  const text = [delivery.hook, delivery.source, delivery.event, delivery.mappingId].join('\n').toLowerCase()
  return (
    (state === '' || state === delivery.state || (state === 'dead' && delivery.jobs.dead > 0)) &&
    (hook === '' || hook === delivery.hook) &&
    (source === '' || source === delivery.source) &&
    (text.includes(word) || row.id.startsWith(word))
  )
}

type RowState = 'parked' | 'dead' | 'refused' | 'failing' | 'waiting' | 'done' | 'skipped' | 'dropped'

/** One word for what became of it: what needs a person first. */
export function toRowState(row: ListRow): RowState {
  if (row.kind === 'refusal') return 'refused'
  const { state, jobs } = row.delivery
  if (state === 'parked' || state === 'skipped' || state === 'dropped') return state
  if (jobs.dead > 0) return 'dead'
  if (jobs.failing > 0) return 'failing'
  return state === 'pending' || jobs.queued + jobs.running > 0 ? 'waiting' : 'done'
}

export function describeRow(row: ListRow): string {
  if (row.kind === 'refusal') return row.refusal.error
  const { repeats } = row.delivery
  return `${describeActions(row.delivery)}${repeats === 0 ? '' : ` · repeated ${formatTimes(repeats)}`}`
}

export function formatTimes(count: number): string {
  return count === 1 ? 'once' : `${count} times`
}

function describeActions({ became, jobs, code }: DeliveryRow): string {
  const count = jobs.queued + jobs.running + jobs.done + jobs.dead + jobs.dropped
  if (count > 1) return `${count} actions`
  const [only] = became
  if (only === undefined) return code ?? ''
  return only.kind === 'wake' ? 'event' : only.sessionKey
}

export function formatTook(row: ListRow): string {
  if (row.kind === 'refusal') return ''
  const { doneMs, tookMs } = row.delivery
  return formatDuration(doneMs ?? tookMs)
}

export function formatDuration(ms: number | null): string {
  if (ms === null) return ''
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} min`
  return `${Math.round(ms / 3_600_000)} h`
}
