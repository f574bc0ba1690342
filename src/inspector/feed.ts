// The rows that the list shows, kept up to date by the stream. While the list is paused, changes are counted, and applied on resume.
import { useEffect, useRef, useState } from 'preact/hooks'
import type { DeliveryRow, StatusFields } from '../model/api/answers.ts'
import type { RefusalFields } from '../model/api/refusals.ts'
import { call, ApiError, toQuery } from './api.ts'
import { addChanges, addPage, emptyRange, type ListRange, type RangePage, stepRows } from './range.ts'
import { type Filters, matchesFilters, type ListRow, toRefusalRow, toListRow } from './rows.ts'
import { describeException } from './said.ts'
import { followChanges } from './stream.ts'

export type Feed = ListRange & {
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
  /** Reads the next older rows, if there are any and the limit allows more rows. */
  loadOlder(): void
  /** Lets the list have more rows, and reads the next ones. */
  extend(): void
}

const pageRows = 200
/** The maximum number of pages that are read to fill one screen, for a filter that the API does not have. */
const maxPages = 5
/** How long a search runs by itself; then it continues on demand. A search of the whole store may take a hundred requests. */
const maxSearchMs = 2_000
/** The minimum time between two searches for new deliveries that match. */
const searchAgainMs = 1_500

const noRows: RangePage = { rows: [], next: null, older: 0, searchedTo: undefined }
const toIsoTime = (at: string) => (at === '' ? '' : new Date(Number(at)).toISOString())

/** The state filter of the page as a filter of the API. Undefined: no delivery of the API has this state. */
function toApiState(state: string): string | undefined {
  if (state === 'refused' || state === 'attention') return undefined
  if (state === 'done') return 'accepted'
  return state
}

/** `opened` resolves when the stream is open, or cannot be opened now. */
function createOpened() {
  let resolve = () => {}
  const opened = new Promise<void>((done) => (resolve = done))
  return { opened, resolve }
}

export function useFeed({ state, hook, source, q, since, until }: Filters): Feed {
  const filters = { state, hook, source, q, since, until }
  const [range, setRange] = useState<ListRange>(emptyRange)
  const [isLoading, setLoading] = useState(true)
  const [problem, setProblem] = useState('')
  const [isConnected, setConnected] = useState(true)
  const [status, setStatus] = useState<StatusFields>()
  const [isPaused, setPaused] = useState(false)
  const [waiting, setWaiting] = useState(0)
  const [changed, setChanged] = useState<ReadonlyMap<string, number>>(new Map())
  const [reloads, setReloads] = useState(0)
  const searchTimer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const now = useRef({
    filters,
    isPaused,
    range,
    /** Changes that wait while the list is paused. */
    changedRows: new Map<string, ListRow>(),
    /** True: so many changes waited that some were forgotten, so the list must be read again. */
    hasMissed: false,
    /** Changes that came while the list was read: its answer may be older than they are. Undefined while it is not read. */
    arrived: undefined as Map<string, ListRow> | undefined,
    refusals: [] as readonly ListRow[],
    isReading: false,
  })
  now.current.filters = filters
  now.current.isPaused = isPaused
  now.current.range = range

  const stream = useRef<{ readonly opened: Promise<void>; readonly resolve: () => void }>(undefined)
  stream.current ??= createOpened()
  useEffect(() => {
    const ended = new AbortController()
    void followChanges(
      {
        deliveries: (found: readonly DeliveryRow[]) => showChanges(found.map(toListRow)),
        refusals: (found: readonly RefusalFields[]) => showChanges(found.map(toRefusalRow)),
        status: (found: StatusFields) => {
          setStatus(found)
          stream.current?.resolve()
        },
        reset: () => setReloads((before) => before + 1),
        connected: (isUp: boolean) => {
          setConnected(isUp)
          if (!isUp) stream.current?.resolve()
        },
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
    for (const row of found) now.current.arrived?.set(row.id, row)
    if (!isWaiting) return setRange((before) => addChanges(before, found, wanted))
    for (const row of found) if (matchesFilters(row, wanted) || changedRows.has(row.id)) changedRows.set(row.id, row)
    for (const id of changedRows.keys()) {
      if (changedRows.size <= stepRows) break
      changedRows.delete(id)
      now.current.hasMissed = true
    }
    setWaiting(changedRows.size)
  }

  /** Searches again: the payload of a new delivery may contain the words. */
  function searchAgainSoon(): void {
    searchTimer.current ??= setTimeout(() => {
      searchTimer.current = undefined
      const { filters: asked, isPaused: isWaiting } = now.current
      if (asked.q === '' || isWaiting) return
      void searchAgain(asked).catch(() => undefined)
    }, searchAgainMs)
  }
  async function searchAgain(asked: Filters): Promise<void> {
    const page = await readPage(null, asked)
    if (toQuery(asked) !== toQuery(now.current.filters)) return
    const [newest] = now.current.range.rows
    // more new rows than a page: those between the page and the list were not read
    const isApart = page.next !== null && newest !== undefined && (page.rows[0]?.at ?? 0) > newest.at
    if (isApart) setReloads((before) => before + 1)
    else setRange((before) => addChanges(before, page.rows, asked, true))
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
      // what changes before the stream is open would be missed
      await stream.current?.opened
      if (signal.aborted) return
      now.current.arrived = new Map()
      const hasRefusals = (state === '' || state === 'refused') && source === ''
      const refusals = hasRefusals ? (await call('GET /api/refusals', { signal })).refusals : []
      now.current.refusals = refusals.map(toRefusalRow)
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
        count += found.rows.filter((row) => matchesFilters(row, { ...filters, q: '' })).length
        const shown = addRefusals(found)
        const arrived = page === 0 ? [...(now.current.arrived?.values() ?? [])] : []
        if (page === 0) now.current.arrived = undefined
        setRange((before) => addChanges(addPage(page === 0 ? emptyRange : before, shown, filters), arrived, filters))
      }
      setProblem('')
      setLoading(false)
    } catch (error) {
      if (signal.aborted) return
      setProblem(describeException(error, 'The list could not be read.'))
      setLoading(false)
    }
  }

  /** The page with the refusals that came after its oldest row. The last page gets all that are left. */
  function addRefusals(page: RangePage): RangePage {
    const oldest = page.next === null ? 0 : (page.rows[0]?.at ?? Number.POSITIVE_INFINITY)
    return { ...page, rows: [...page.rows, ...now.current.refusals.filter(({ at }) => at >= oldest)] }
  }

  /** Reads one page. A search looks at a part of a large store, so a page may have few rows, or none, although there are more rows. */
  async function readPage(before: string | null, wanted: Filters, signal?: AbortSignal): Promise<RangePage> {
    const apiState = toApiState(wanted.state)
    if (apiState === undefined) return noRows
    const times = { since: toIsoTime(wanted.since), until: toIsoTime(wanted.until) }
    const words = { hook: wanted.hook, source: wanted.source, q: wanted.q }
    const query = { state: apiState, ...words, ...times, before: before ?? undefined, limit: pageRows }
    try {
      const page = await call('GET /api/deliveries', { query, signal })
      const searched = page.searchedTo === null ? undefined : Date.parse(page.searchedTo)
      const older = page.older ?? undefined
      return { rows: page.deliveries.map(toListRow), next: page.next, older, searchedTo: searched }
    } catch (error) {
      // the delivery that `before` names was deleted by the retention, and so were all older ones
      if (before !== null && error instanceof ApiError && error.status === 404) return noRows
      throw error
    }
  }

  function loadOlder(limit = range.limit): void {
    if (range.next === null || now.current.isReading || range.rows.length >= limit) return
    now.current.isReading = true
    void readOlder(range.next)
      .catch(() => undefined)
      .finally(() => (now.current.isReading = false))
  }

  async function readOlder(from: string): Promise<void> {
    const startedAt = performance.now()
    for (let at = from; ;) {
      const { filters: wanted } = now.current
      const page = await readPage(at, wanted)
      // the list has been read again since then, or new rows moved its end
      if (now.current.range.next !== at) return
      const shown = addRefusals(page)
      setRange((before) => (before.next === at ? addPage(before, shown, wanted) : before))
      if (page.next === null || page.rows.length > 0 || performance.now() - startedAt > maxSearchMs) return
      at = page.next
      // the next step continues from a list that is drawn
      await new Promise((done) => setTimeout(done))
    }
  }

  function extend(): void {
    const limit = range.limit + stepRows
    setRange((before) => ({ ...before, limit }))
    loadOlder(limit)
  }

  function pause(isWaiting: boolean): void {
    setPaused(isWaiting)
    if (isWaiting) return
    const found = [...now.current.changedRows.values()]
    now.current.changedRows.clear()
    setWaiting(0)
    if (now.current.hasMissed) setReloads((before) => before + 1)
    else setRange((before) => addChanges(before, found, filters))
    now.current.hasMissed = false
  }

  return {
    ...range,
    isLoading,
    problem,
    isConnected,
    status,
    waiting,
    isPaused,
    changed,
    pause,
    loadOlder: () => loadOlder(),
    extend,
  }
}
