// The rows that the list shows, kept up to date by the stream. While the list is paused, changes are counted, and shown on resume.
import { useEffect, useRef, useState } from 'preact/hooks'
import type { DeliveryRow, Page, RefusalFields, StatusFields } from '../model/api-types.ts'
import { get, ApiError, toQuery } from './api.ts'
import { type Filters, matchesFilters, mergeRows, maxRows, type ListRow, toRefusalRow, toListRow } from './rows.ts'
import { followChanges } from './stream.ts'

export type Feed = {
  readonly rows: readonly ListRow[]
  readonly isLoading: boolean
  readonly problem: string
  readonly isConnected: boolean
  readonly status: StatusFields | undefined
  /** The number of rows that changed while the list was paused. */
  readonly waiting: number
  readonly isPaused: boolean
  /** The number of changes of each delivery since the page was opened. A view of the delivery reads it again when it grows. */
  readonly changed: ReadonlyMap<string, number>
  pause(isPaused: boolean): void
  /** Reads the next older rows, if there are any. */
  loadOlder(): void
}

const pageRows = 200
/** Pages that are read for one screen of a filter that the API does not have. */
const maxPages = 5

type PageOfRows = { readonly rows: readonly ListRow[]; readonly next: string | null }
const noRows: PageOfRows = { rows: [], next: null }

/** The filters of the page as those of the API. Undefined: the API has no delivery of this state. */
function toApiState(state: string): string | undefined {
  if (state === 'refused' || state === 'attention') return undefined
  if (state === 'done') return 'accepted'
  return state === 'waiting' ? '' : state
}

export function useFeed({ state, hook, source, q }: Filters): Feed {
  const filters = { state, hook, source, q }
  const [rows, setRows] = useState<readonly ListRow[]>([])
  const [isLoading, setLoading] = useState(true)
  const [problem, setProblem] = useState('')
  const [isConnected, setConnected] = useState(true)
  const [status, setStatus] = useState<StatusFields>()
  const [isPaused, setPaused] = useState(false)
  const [waiting, setWaiting] = useState(0)
  const [changed, setChanged] = useState<ReadonlyMap<string, number>>(new Map())
  const [reloads, setReloads] = useState(0)
  const now = useRef({
    filters,
    isPaused,
    /** `before` of the next older page. */
    next: null as string | null,
    changedRows: new Map<string, ListRow>(),
    isReading: false,
  })
  now.current.filters = filters
  now.current.isPaused = isPaused

  useEffect(() => {
    const ended = new AbortController()
    void followChanges(
      {
        deliveries: (found: readonly DeliveryRow[]) => showChanges(found.map(toListRow)),
        refusals: (found: readonly RefusalFields[]) => showChanges(found.map(toRefusalRow)),
        status: setStatus,
        reset: () => setReloads((before) => before + 1),
        connected: setConnected,
      },
      ended.signal,
    )
    return () => ended.abort()
  }, [])

  function showChanges(found: readonly ListRow[]): void {
    const { changedRows, isPaused: isWaiting, filters: wanted } = now.current
    setChanged(
      (before) => new Map([...before, ...found.map(({ id }) => [id, (before.get(id) ?? 0) + 1] as const)].slice(-500)),
    )
    if (!isWaiting) return setRows((before) => mergeRows(before, found, wanted))
    for (const row of found) if (matchesFilters(row, wanted) || changedRows.has(row.id)) changedRows.set(row.id, row)
    for (const id of changedRows.keys()) if (changedRows.size > maxRows) changedRows.delete(id)
    setWaiting(changedRows.size)
  }

  useEffect(() => {
    const ended = new AbortController()
    // while a search is typed, only its last version is read
    const timer = setTimeout(() => void load(ended.signal), q === '' ? 0 : 150)
    return () => {
      clearTimeout(timer)
      ended.abort()
    }
  }, [state, hook, source, q, reloads])

  async function load(signal: AbortSignal): Promise<void> {
    setLoading(true)
    try {
      const hasRefusals = (state === '' || state === 'refused') && source === ''
      const refusals = hasRefusals ? (await get<{ refusals: RefusalFields[] }>('/api/refusals', signal)).refusals : []
      let refusalsLeft = refusals.map(toRefusalRow)
      let next: string | null = null
      let count = 0
      for (let page = 0; page === 0 || (next !== null && count < pageRows && page < maxPages); page += 1) {
        const found = await readPage(next, signal)
        next = found.next
        now.current.next = next
        count += found.rows.filter((row) => matchesFilters(row, filters)).length
        const oldest = next === null ? 0 : (found.rows.at(0)?.at ?? Number.POSITIVE_INFINITY)
        const shown = [...found.rows, ...refusalsLeft.filter(({ at }) => at >= oldest)]
        refusalsLeft = refusalsLeft.filter(({ at }) => at < oldest)
        setRows((before) => mergeRows(page === 0 ? [] : before, shown, filters))
      }
      setProblem('')
      setLoading(false)
    } catch (error) {
      if (signal.aborted) return
      setProblem(error instanceof Error ? error.message : 'The list could not be read.')
      setLoading(false)
    }
  }

  /** A search looks at a part of a large store: a page may have few rows, or none, although there are more. */
  async function readPage(before: string | null, signal?: AbortSignal): Promise<PageOfRows> {
    const apiState = toApiState(state)
    if (apiState === undefined) return noRows
    const query = toQuery({ state: apiState, hook, source, q, before: before ?? undefined, limit: pageRows })
    try {
      const { deliveries, next } = await get<Page<'deliveries', DeliveryRow>>(`/api/deliveries?${query}`, signal)
      return { rows: deliveries.map(toListRow), next }
    } catch (error) {
      // the retention deleted the delivery that `before` names, and so all older ones
      if (before !== null && error instanceof ApiError && error.status === 404) return noRows
      throw error
    }
  }

  function loadOlder(): void {
    if (now.current.next === null || now.current.isReading || rows.length >= maxRows) return
    now.current.isReading = true
    void readOlder(now.current.next)
      .catch(() => undefined)
      .finally(() => (now.current.isReading = false))
  }

  async function readOlder(from: string): Promise<void> {
    for (let at = from; ;) {
      const page = await readPage(at)
      // the list was read again in the meantime
      if (now.current.next !== at) return
      now.current.next = page.next
      setRows((before) => mergeRows(before, page.rows, now.current.filters))
      if (page.next === null || page.rows.length > 0) return
      at = page.next
    }
  }

  function pause(isWaiting: boolean): void {
    setPaused(isWaiting)
    if (isWaiting) return
    const found = [...now.current.changedRows.values()]
    now.current.changedRows.clear()
    setWaiting(0)
    setRows((before) => mergeRows(before, found, filters))
  }

  return { rows, isLoading, problem, isConnected, status, waiting, isPaused, changed, pause, loadOlder }
}
