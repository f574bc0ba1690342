// The rows that the list shows, kept up to date by the stream. While the list is paused, changes are counted, and applied on resume.
import { useEffect, useRef, useState } from 'preact/hooks'
import type { DeliveryRow, StatusFields } from '../model/api/answers.ts'
import type { RefusalFields } from '../model/api/refusals.ts'
import { call, ApiError, toQuery } from './api.ts'
import { type Filters, matchesFilters, mergeRows, maxRows, type ListRow, toRefusalRow, toListRow } from './rows.ts'
import { describeException } from './said.ts'
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
  /** The number of changes of each delivery since the page was opened. An opened delivery is read again when its number grows. */
  readonly changed: ReadonlyMap<string, number>
  /** Pauses the list, or resumes it (false) and applies the changes that were counted. */
  pause(isPaused: boolean): void
  /** The moment back to which a search has searched, in milliseconds since the epoch. Undefined without a search, and when it has ended. */
  readonly searchedTo: number | undefined
  /** Reads the next older rows, if there are any. */
  loadOlder(): void
}

const pageRows = 200
/** The maximum number of pages that are read to fill one screen, for a filter that the API does not have. */
const maxPages = 5
/** How long a search runs by itself; then it continues on demand. A search of the whole store may take a hundred requests. */
const maxSearchMs = 2_000
/** The minimum time between two searches for new deliveries that match. */
const searchAgainMs = 1_500

type PageOfRows = {
  readonly rows: readonly ListRow[]
  readonly next: string | null
  readonly searchedTo: number | undefined
}
const noRows: PageOfRows = { rows: [], next: null, searchedTo: undefined }
const toIsoTime = (at: string) => (at === '' ? '' : new Date(Number(at)).toISOString())

/** The state filter of the page as a filter of the API. Undefined: no delivery of the API has this state. */
function toApiState(state: string): string | undefined {
  if (state === 'refused' || state === 'attention') return undefined
  if (state === 'done') return 'accepted'
  return state === 'waiting' ? '' : state
}

export function useFeed({ state, hook, source, q, since, until }: Filters): Feed {
  const filters = { state, hook, source, q, since, until }
  const [rows, setRows] = useState<readonly ListRow[]>([])
  const [isLoading, setLoading] = useState(true)
  const [problem, setProblem] = useState('')
  const [isConnected, setConnected] = useState(true)
  const [status, setStatus] = useState<StatusFields>()
  const [isPaused, setPaused] = useState(false)
  const [waiting, setWaiting] = useState(0)
  const [changed, setChanged] = useState<ReadonlyMap<string, number>>(new Map())
  const [reloads, setReloads] = useState(0)
  const [searchedTo, setSearchedTo] = useState<number>()
  const searchTimer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const now = useRef({
    filters,
    isPaused,
    /** The cursor of the next older page. */
    next: null as string | null,
    changedRows: new Map<string, ListRow>(),
    /** The refusals that are older than the pages that were read. */
    olderRefusals: [] as readonly ListRow[],
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
    if (wanted.q !== '') searchAgainSoon()
    if (!isWaiting) return setRows((before) => mergeRows(before, found, wanted))
    for (const row of found) if (matchesFilters(row, wanted) || changedRows.has(row.id)) changedRows.set(row.id, row)
    for (const id of changedRows.keys()) if (changedRows.size > maxRows) changedRows.delete(id)
    setWaiting(changedRows.size)
  }

  /** Searches again: the payload of a new delivery may contain the words. */
  function searchAgainSoon(): void {
    searchTimer.current ??= setTimeout(() => {
      searchTimer.current = undefined
      const { filters: asked, isPaused: isWaiting } = now.current
      if (asked.q === '' || isWaiting) return
      void readPage(null, asked).then(
        (page) =>
          toQuery(asked) === toQuery(now.current.filters) &&
          setRows((before) => mergeRows(before, page.rows, asked, true)),
        () => undefined,
      )
    }, searchAgainMs)
  }
  useEffect(() => () => clearTimeout(searchTimer.current), [])

  useEffect(() => {
    const ended = new AbortController()
    // while somebody types a search, only its last version is read
    const timer = setTimeout(() => void load(ended.signal), q === '' ? 0 : 150)
    return () => {
      clearTimeout(timer)
      ended.abort()
    }
  }, [state, hook, source, q, since, until, reloads])

  async function load(signal: AbortSignal): Promise<void> {
    setLoading(true)
    try {
      const hasRefusals = (state === '' || state === 'refused') && source === ''
      const refusals = hasRefusals ? (await call('GET /api/refusals', { signal })).refusals : []
      now.current.olderRefusals = refusals.map(toRefusalRow)
      let next: string | null = null
      let count = 0
      const startedAt = performance.now()
      const mayContinue = (page: number, isSearch: boolean) =>
        isSearch ? performance.now() - startedAt < maxSearchMs : page < maxPages
      for (
        let [page, isSearch] = [0, false];
        page === 0 || (next !== null && count < pageRows && mayContinue(page, isSearch));
        page += 1
      ) {
        const found = await readPage(next, filters, signal)
        next = found.next
        isSearch = found.searchedTo !== undefined
        now.current.next = next
        setSearchedTo(found.searchedTo)
        count += found.rows.filter((row) => matchesFilters(row, { ...filters, q: '' })).length
        const shown = addRefusals(found)
        setRows((before) => mergeRows(page === 0 ? [] : before, shown, filters, true))
      }
      setProblem('')
      setLoading(false)
    } catch (error) {
      if (signal.aborted) return
      setProblem(describeException(error, 'The list could not be read.'))
      setLoading(false)
    }
  }

  /** The rows of a page, with the refusals that came after its oldest row. The last page gets all that are left. */
  function addRefusals({ rows: found, next }: PageOfRows): readonly ListRow[] {
    const oldest = next === null ? 0 : (found[0]?.at ?? Number.POSITIVE_INFINITY)
    const { olderRefusals } = now.current
    now.current.olderRefusals = olderRefusals.filter(({ at }) => at < oldest)
    return [...found, ...olderRefusals.filter(({ at }) => at >= oldest)]
  }

  /** Reads one page. A search looks at a part of a large store, so a page may have few rows, or none, although there are more rows. */
  async function readPage(before: string | null, wanted: Filters, signal?: AbortSignal): Promise<PageOfRows> {
    const apiState = toApiState(wanted.state)
    if (apiState === undefined) return noRows
    const times = { since: toIsoTime(wanted.since), until: toIsoTime(wanted.until) }
    const words = { hook: wanted.hook, source: wanted.source, q: wanted.q }
    const query = { state: apiState, ...words, ...times, before: before ?? undefined, limit: pageRows }
    try {
      const page = await call('GET /api/deliveries', { query, signal })
      const searched = page.searchedTo === null ? undefined : Date.parse(page.searchedTo)
      return { rows: page.deliveries.map(toListRow), next: page.next, searchedTo: searched }
    } catch (error) {
      // the delivery that `before` names was deleted by the retention, and so were all older ones
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
    const startedAt = performance.now()
    for (let at = from; ;) {
      const { filters: wanted } = now.current
      const page = await readPage(at, wanted)
      // the list has been read again since then
      if (now.current.next !== at) return
      now.current.next = page.next
      setSearchedTo(page.searchedTo)
      const shown = addRefusals(page)
      setRows((before) => mergeRows(before, shown, wanted, true))
      if (page.next === null || page.rows.length > 0 || performance.now() - startedAt > maxSearchMs) return
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

  return { rows, isLoading, problem, isConnected, status, waiting, isPaused, changed, searchedTo, pause, loadOlder }
}
