// The rows that the list shows, kept up to date by the stream. Paused, it counts what came and shows it on request.
import { useEffect, useRef, useState } from 'preact/hooks'
import type { DeliveryRow, Page, RefusalFields, StatusFields } from '../model/api-types.ts'
import { get, ApiError, toQuery } from './api.ts'
import type { Filters } from './place.ts'
import { matchesFilters, mergeRows, maxRows, type ListRow, toRefusalRow, toListRow } from './rows.ts'
import { followChanges } from './stream.ts'

export type Feed = {
  readonly rows: readonly ListRow[]
  readonly isLoading: boolean
  readonly problem: string
  readonly isConnected: boolean
  readonly status: StatusFields | undefined
  /** Rows that came while it was paused. */
  readonly waiting: number
  readonly isPaused: boolean
  /** Counts changes: what shows one delivery reads it again. */
  readonly changed: ReadonlyMap<string, number>
  pause(isPaused: boolean): void
  /** Reads the next older rows, if there are any. */
  older(): void
}

const pageRows = 200

type PageOfRows = { readonly rows: readonly ListRow[]; readonly next: string | null }
const none: PageOfRows = { rows: [], next: null }

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
  const [round, setRound] = useState(0)
  const now = useRef({
    filters,
    isPaused,
    next: null as string | null,
    held: new Map<string, ListRow>(),
    isReading: false,
  })
  now.current.filters = filters
  now.current.isPaused = isPaused

  useEffect(() => {
    const ended = new AbortController()
    const take = (came: readonly ListRow[]) => {
      const { held, isPaused: isHeld, filters: wanted } = now.current
      setChanged(
        (before) => new Map([...before, ...came.map(({ id }) => [id, (before.get(id) ?? 0) + 1] as const)].slice(-500)),
      )
      if (!isHeld) return setRows((before) => mergeRows(before, came, wanted))
      for (const row of came) if (matchesFilters(row, wanted) || held.has(row.id)) held.set(row.id, row)
      for (const id of held.keys()) if (held.size > maxRows) held.delete(id)
      setWaiting(held.size)
    }
    void followChanges(
      {
        deliveries: (came: readonly DeliveryRow[]) => take(came.map(toListRow)),
        refusals: (came: readonly RefusalFields[]) => take(came.map(toRefusalRow)),
        status: setStatus,
        reset: () => setRound((before) => before + 1),
        connected: setConnected,
      },
      ended.signal,
    )
    return () => ended.abort()
  }, [])

  useEffect(() => {
    const ended = new AbortController()
    // one reads only the last of the words that one types
    const timer = setTimeout(() => void load(ended.signal), q === '' ? 0 : 150)
    return () => {
      clearTimeout(timer)
      ended.abort()
    }
  }, [state, hook, source, q, round])

  async function load(signal: AbortSignal): Promise<void> {
    setLoading(true)
    try {
      const asksRefusals = (state === '' || state === 'refused') && source === ''
      const refusals = asksRefusals ? (await get<{ refusals: RefusalFields[] }>('/api/refusals', signal)).refusals : []
      let refusalsLeft = refusals.map(toRefusalRow)
      let next: string | null = null
      let count = 0
      for (let isFirst = true; isFirst || (next !== null && count < pageRows); isFirst = false) {
        const page: PageOfRows = state === 'refused' ? none : await readPage(next, signal)
        next = page.next
        now.current.next = next
        count += page.rows.length
        const oldest = next === null ? 0 : (page.rows[0]?.at ?? Number.POSITIVE_INFINITY)
        const found = [...page.rows, ...refusalsLeft.filter(({ at }) => at >= oldest)]
        refusalsLeft = refusalsLeft.filter(({ at }) => at < oldest)
        const isReplaced = isFirst
        setRows((before) => mergeRows(isReplaced ? [] : before, found, filters))
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
    const query = toQuery({ state, hook, source, q, before: before ?? undefined, limit: pageRows })
    try {
      const { deliveries, next } = await get<Page<'deliveries', DeliveryRow>>(`/api/deliveries?${query}`, signal)
      return { rows: deliveries.map(toListRow), next }
    } catch (error) {
      // the retention has removed the delivery before which the next ones were, and so all that are older
      if (before !== null && error instanceof ApiError && error.status === 404) return none
      throw error
    }
  }

  function older(): void {
    if (now.current.next === null || now.current.isReading || rows.length >= maxRows) return
    now.current.isReading = true
    void readOlder(now.current.next)
      .catch(() => undefined)
      .finally(() => (now.current.isReading = false))
  }

  async function readOlder(from: string): Promise<void> {
    for (let at = from; ;) {
      const page = await readPage(at)
      // the list was read again since
      if (now.current.next !== at) return
      now.current.next = page.next
      setRows((before) => mergeRows(before, page.rows, now.current.filters))
      if (page.next === null || page.rows.length > 0) return
      at = page.next
    }
  }

  function pause(isHeld: boolean): void {
    setPaused(isHeld)
    if (isHeld) return
    const came = [...now.current.held.values()]
    now.current.held.clear()
    setWaiting(0)
    setRows((before) => mergeRows(before, came, filters))
  }

  return { rows, isLoading, problem, isConnected, status, waiting, isPaused, changed, pause, older }
}
