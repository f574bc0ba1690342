// `events/stream`: the events of one subscription as server-sent events, until the client goes. https://modelcontextprotocol.io/seps/3415-events-extension
import type { RunnerHost } from '../../../define.ts'
import { type Bell, createBell } from './bell.ts'
import { type EventLog, formatEventCursor, type LogPlace } from './event-log.ts'
import { toPlacedOccurrence } from './occurrence.ts'
import type { Principal } from './principals.ts'
import { type RpcCall, rpcCodes, RpcFailure } from './rpc.ts'

/** The specification asks for one at least every 30 seconds. */
const heartbeatMs = 15_000
/** Another gateway may have stored an event. */
const lookEveryMs = 1_000
const eventsAtOnce = 20
/** A stream takes a connection, and reads the store once a second. */
const maxStreams = 5

type StreamQuery = {
  readonly id: RpcCall['id']
  readonly name: string
  readonly start: { readonly place: LogPlace; readonly hasSkipped: boolean }
  readonly signal: AbortSignal
}

export function createStreams({ events, clock }: Pick<RunnerHost, 'clock'> & { readonly events: EventLog }) {
  const open = new Map<object, string>()

  async function* write({ id, name, start, signal }: StreamQuery, bell: Bell): AsyncGenerator<string> {
    const meta = { 'io.modelcontextprotocol/subscriptionId': id }
    const notify = (what: string, params: object) =>
      frame({ jsonrpc: '2.0', method: `notifications/events/${what}`, params: { ...params, _meta: meta } })
    let { place } = start
    yield notify('active', { cursor: formatEventCursor(place), truncated: start.hasSkipped })
    for (let sentAt = clock(); !signal.aborted;) {
      const reading = await events.read({ after: place, names: [name], limit: eventsAtOnce })
      if (reading.hasSkipped) yield notify('active', { cursor: formatEventCursor(place), truncated: true })
      for (const event of reading.events) yield notify('event', toPlacedOccurrence(event))
      place = reading.place
      if (reading.events.length > 0) sentAt = clock()
      if (reading.hasMore) continue
      if (clock() - sentAt >= heartbeatMs) {
        yield notify('heartbeat', { cursor: formatEventCursor(place) })
        sentAt = clock()
      }
      await bell.wait(lookEveryMs, signal)
    }
    yield frame({ jsonrpc: '2.0', id, result: { resultType: 'complete', _meta: meta } })
  }

  /** Ends quietly if the store fails: the client connects again, and continues at its cursor. */
  async function* writeBytes(query: StreamQuery): AsyncGenerator<Uint8Array> {
    const encoder = new TextEncoder()
    const bell = createBell()
    const stopListening = events.onAppended(bell.ring)
    try {
      for await (const text of write(query, bell)) yield encoder.encode(text)
    } catch {
      // the cursor of the client says where it was
    } finally {
      stopListening()
    }
  }

  return {
    /** Throws an `RpcFailure` if the subscriber has as many streams as it may have. */
    open({ name: subscriber }: Principal, query: StreamQuery): Response {
      if ([...open.values()].filter((other) => other === subscriber).length >= maxStreams)
        throw new RpcFailure(rpcCodes.exhausted, 'ResourceExhausted', { limit: 'streams', max: maxStreams })
      const place = {}
      open.set(place, subscriber)
      query.signal.addEventListener('abort', () => open.delete(place), { once: true })
      return new Response(ReadableStream.from(writeBytes(query)), { headers: { 'content-type': 'text/event-stream' } })
    },
  }
}

const frame = (message: object) => `data: ${JSON.stringify(message)}\n\n`
