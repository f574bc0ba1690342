// An event as the protocol shows it.
import { maxBodyBytes } from './callback.ts'
import { formatEventCursor, type LoggedEvent, type LogPlace } from './event-log.ts'

/** `EventOccurrence` of MCP Events, without its place. */
export function toOccurrence({ id, name, at, data }: LoggedEvent): object {
  return { eventId: id, name, timestamp: new Date(at).toISOString(), data }
}

/** The same with the place after it. */
export function toPlacedOccurrence(event: LoggedEvent & { readonly place: LogPlace }): object {
  return { ...toOccurrence(event), cursor: formatEventCursor(event.place) }
}

/** Whether an event is too long for a post. Its place is not known yet, so the longest one counts. */
export function exceedsPost(event: LoggedEvent): boolean {
  const place = { number: 999_999_999_999_999, mark: '00000000' }
  return Buffer.byteLength(JSON.stringify(toPlacedOccurrence({ ...event, place }))) > maxBodyBytes
}
