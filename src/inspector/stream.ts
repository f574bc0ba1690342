// Reads the stream of changes with fetch: an EventSource cannot send the key.
import { EventSourceParserStream } from 'eventsource-parser/stream'
import type { DeliveryRow, StatusFields } from '../model/api/answers.ts'
import type { RefusalFields } from '../model/api/refusals.ts'
import { callApi, ApiError, forgetGatewayProof } from './api.ts'

type StreamListener = {
  deliveries(rows: readonly DeliveryRow[]): void
  refusals(rows: readonly RefusalFields[]): void
  status(status: StatusFields): void
  /** Called if changes were missed: the list must be read again. */
  reset(): void
  connected(isConnected: boolean): void
}

const firstRetryMs = 500
const maxRetryMs = 10_000
/** The stream is cut after a longer silence. The gateway writes at least every 15 seconds. */
const maxSilenceMs = 40_000

/** Reads until `signal` is aborted, or until the key is no longer valid. Connects again after a cut or a silence. */
export async function followChanges(listener: StreamListener, signal: AbortSignal): Promise<void> {
  let lastId: string | undefined
  let retryMs = firstRetryMs
  while (!signal.aborted) {
    const cut = new AbortController()
    let timer = setTimeout(() => cut.abort(), maxSilenceMs)
    try {
      const answer = await callApi('/api/stream', {
        signal: AbortSignal.any([signal, cut.signal]),
        headers: lastId === undefined ? {} : { 'last-event-id': lastId },
      })
      listener.connected(true)
      retryMs = firstRetryMs
      // each chunk counts, even one with only a comment
      const restartTimer = (
        piece: Uint8Array<ArrayBuffer>,
        pieces: TransformStreamDefaultController<Uint8Array<ArrayBuffer>>,
      ) => {
        clearTimeout(timer)
        timer = setTimeout(() => cut.abort(), maxSilenceMs)
        pieces.enqueue(piece)
      }
      const events = answer.body
        ?.pipeThrough(new TransformStream({ transform: restartTimer }))
        .pipeThrough(new TextDecoderStream())
        .pipeThrough(new EventSourceParserStream())
      const reader = events?.getReader()
      for (let next = await reader?.read(); next?.value !== undefined; next = await reader?.read()) {
        const { id, event, data } = next.value
        lastId = id ?? lastId
        // as: the gateway that serves this page sends these types
        if (event === 'deliveries') listener.deliveries(JSON.parse(data) as DeliveryRow[])
        else if (event === 'refusals') listener.refusals(JSON.parse(data) as RefusalFields[])
        else if (event === 'status') listener.status(JSON.parse(data) as StatusFields)
        else if (event === 'reset') listener.reset()
      }
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return
    } finally {
      clearTimeout(timer)
    }
    if (signal.aborted) return
    forgetGatewayProof()
    listener.connected(false)
    await new Promise((done) => setTimeout(done, retryMs))
    retryMs = Math.min(2 * retryMs, maxRetryMs)
  }
}
