// Reads the stream of the running gateway: server-sent events over fetch. Resumes after a broken connection.
import { setTimeout as sleep } from 'node:timers/promises'
import { EventSourceParserStream } from 'eventsource-parser/stream'
import { Problem } from '../../core/model/problem.ts'
import { openAdminStream } from './gateway.ts'
import type { Context } from '../terminal/context.ts'

export type StreamEvent = { readonly event: string; readonly data: string }

const retryMs = 1_000

/** Yields the events until `signal` is aborted. Reconnects each second if the connection breaks. Throws `gateway-unreachable` if the first
 * request gets no answer. */
export async function* followStream(context: Context, signal: AbortSignal): AsyncGenerator<StreamEvent> {
  let lastId: string | undefined
  let hasAnswered = false
  while (!signal.aborted) {
    try {
      const headers = lastId === undefined ? {} : { 'last-event-id': lastId }
      const body = await openAdminStream(context, { headers, signal })
      hasAnswered = true
      const events = body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream())
      for await (const { id, event = 'message', data } of events) {
        lastId = id ?? lastId
        yield { event, data }
      }
    } catch (error) {
      if (signal.aborted) return
      // a gateway that has answered before may be restarting
      const isAway = error instanceof Problem ? error.code === 'gateway-unreachable' : error instanceof TypeError
      if (!hasAnswered || !isAway) throw error
    }
    await sleep(retryMs, undefined, { signal }).catch(() => undefined)
  }
}
