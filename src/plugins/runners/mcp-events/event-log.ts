// The events of a runner, in one order without gaps. The number of the newest event and the event are written in one transaction, so any gateway can
// append, and a reader that has seen the number finds the event.
import { hash } from 'node:crypto'
import { z } from 'zod'
import type { RunnerState } from '../../../define.ts'
import { createSerialQueue, tryParseJson } from '../shared/kit.ts'

/** An event. `id`: that of its run, so that a repeated turn is the same event. `name`: the id of its agent. Times are milliseconds since the epoch. */
const Event = z.object({
  id: z.string(),
  name: z.string(),
  at: z.number(),
  hops: z.number(),
  data: z.record(z.string(), z.unknown()),
})
export type LoggedEvent = z.infer<typeof Event>

/** A place in the log: after the event with this number. `mark`: a digest of its id, by which another log is recognised. */
export type LogPlace = { readonly number: number; readonly mark: string }

const keepMs = 7 * 24 * 3_600_000
/** The last moment that a date can have: the number of the newest event is kept for good. */
const forever = 8_640_000_000_000_000
const start: LogPlace = { number: 0, mark: '00000000' }
/** The maximum number of events that one reading looks at, because most may have other names, and each may have 256 KiB. */
const maxLooked = 200
const maxAttempts = 100

export const formatEventCursor = ({ number, mark }: LogPlace) => `${number}-${mark}`

/** Undefined for a text that is no cursor of this server. */
export function parseEventCursor(text: string): LogPlace | undefined {
  const [, number = '', mark = ''] = /^(\d{1,15})-([\da-f]{8})$/.exec(text) ?? []
  return mark === '' ? undefined : { number: Number(number), mark }
}

const toPlace = (number: number, { id }: Pick<LoggedEvent, 'id'>): LogPlace => ({
  number,
  mark: hash('sha256', id).slice(0, 8),
})

/** What follows a place. `place`: where the next reading continues. `hasSkipped`: events between are no longer kept. */
type Reading = {
  readonly events: readonly (LoggedEvent & { readonly place: LogPlace })[]
  readonly place: LogPlace
  readonly hasMore: boolean
  readonly hasSkipped: boolean
}

type ReadQuery = {
  readonly after: LogPlace
  readonly names: readonly string[]
  readonly limit: number
  /** The sum of the JSON of the events, unless the first one is longer. */
  readonly maxBytes?: number
}

export type EventLog = {
  /** Stores the event, and resolves when it is on disk. An event whose id is known is not stored again. */
  append(event: LoggedEvent): Promise<void>
  /** The place after the newest event. */
  end(): Promise<LogPlace>
  /**
   * Where to continue after a place that a client names. If the place is not of this log, for example because the store was replaced, all events that are
   * kept follow: a client drops what it knows. `since`: leaves out events before this moment. `hasSkipped`: events after the place are no longer kept or
   * too old, or it is not of this log.
   */
  find(place: LogPlace, since?: number): Promise<{ readonly place: LogPlace; readonly hasSkipped: boolean }>
  read(query: ReadQuery): Promise<Reading>
  /** Calls the listener when this process has appended an event. Returns what ends the calls. */
  onAppended(listener: () => void): () => void
}

export function createEventLog(state: RunnerState, clock: () => number): EventLog {
  const inTurn = createSerialQueue()
  const listeners = new Set<() => void>()

  async function readEnd() {
    const stored = await state.read('end')
    return { stored, place: (stored && parseEventCursor(stored.text)) ?? start }
  }

  async function readEvent(number: number): Promise<LoggedEvent | undefined> {
    const stored = await state.read(`event/${number}`)
    return stored && Event.safeParse(tryParseJson(stored.text)).data
  }

  async function appendNow(event: LoggedEvent): Promise<void> {
    const known = `run/${event.id}`
    const until = clock() + keepMs
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      if ((await state.read(known)) !== undefined) return
      const { stored, place } = await readEnd()
      const after = toPlace(place.number + 1, event)
      const isWritten = await state.write([
        { key: 'end', from: stored, to: { text: formatEventCursor(after), until: forever } },
        { key: `event/${after.number}`, from: undefined, to: { text: JSON.stringify(event), until } },
        { key: known, from: undefined, to: { text: String(after.number), until } },
      ])
      if (!isWritten) continue
      for (const listener of listeners) listener()
      return
    }
    throw new Error('The event could not be appended, because other gateways append all the time.')
  }

  /** The number of the first event after `from` that is kept, and not older than `since`; `to + 1` if none is. Events are in the order of their times. */
  async function findKept(from: number, to: number, since = 0): Promise<number> {
    let [low, high] = [from + 1, to + 1]
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      if (isKept(await readEvent(middle), since)) high = middle
      else low = middle + 1
    }
    return low
  }

  /** The place before an event that is kept, or the end. */
  async function placeBefore(number: number, end: LogPlace): Promise<LogPlace> {
    if (number > end.number) return end
    const before = await readEvent(number - 1)
    // the event is gone, and with it the digest of its id: nothing is compared with the mark then
    return before === undefined ? { number: number - 1, mark: start.mark } : toPlace(number - 1, before)
  }

  async function isOfThisLog(place: LogPlace, end: LogPlace): Promise<boolean> {
    if (place.number >= end.number) return formatEventCursor(place) === formatEventCursor(end)
    const event = await readEvent(place.number)
    return event === undefined || toPlace(place.number, event).mark === place.mark
  }

  return {
    append: (event) => inTurn(() => appendNow(event)),
    end: async () => (await readEnd()).place,
    async find(place, since = 0) {
      const { place: end } = await readEnd()
      const isOwn = await isOfThisLog(place, end)
      const from = isOwn ? place.number : 0
      if (isOwn && (from === end.number || isKept(await readEvent(from + 1), since)))
        return { place, hasSkipped: false }
      return { place: await placeBefore(await findKept(from, end.number, since), end), hasSkipped: true }
    },
    async read({ after, names, limit, maxBytes = Number.POSITIVE_INFINITY }) {
      const { place: end } = await readEnd()
      const events: (LoggedEvent & { place: LogPlace })[] = []
      let place = after
      let bytes = 0
      let hasSkipped = false
      for (let looked = 0; place.number < end.number; looked++) {
        if (looked >= maxLooked || events.length >= limit) return { events, place, hasMore: true, hasSkipped }
        const number = place.number + 1
        const event = await readEvent(number)
        if (event === undefined) {
          hasSkipped = true
          place = await placeBefore(await findKept(number, end.number), end)
          continue
        }
        if (names.includes(event.name)) {
          bytes += JSON.stringify(event).length
          if (events.length > 0 && bytes > maxBytes) return { events, place, hasMore: true, hasSkipped }
          events.push({ ...event, place: toPlace(number, event) })
        }
        place = toPlace(number, event)
      }
      return { events, place, hasMore: false, hasSkipped }
    },
    onAppended(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}

const isKept = (event: LoggedEvent | undefined, since: number) => event !== undefined && event.at >= since
