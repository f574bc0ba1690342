// The stream of changes, over fetch: an EventSource cannot send the key.
import type { DeliveryRow, RefusalFields, StatusFields } from '../model/api-types.ts'
import { callApi, ApiError } from './api.ts'

type StreamListener = {
  deliveries(rows: readonly DeliveryRow[]): void
  refusals(rows: readonly RefusalFields[]): void
  status(status: StatusFields): void
  /** Changes were missed: read the list again. */
  reset(): void
  connected(isConnected: boolean): void
}

const firstRetryMs = 500
const mostRetryMs = 10_000

/** Reads until `signal` ends, and connects again after a cut. */
export async function followChanges(listener: StreamListener, signal: AbortSignal): Promise<void> {
  let lastId: string | undefined
  let retryMs = firstRetryMs
  while (!signal.aborted) {
    try {
      const answer = await callApi('/api/stream', {
        signal,
        headers: lastId === undefined ? {} : { 'last-event-id': lastId },
      })
      listener.connected(true)
      retryMs = firstRetryMs
      for await (const { id, event, data } of parseFrames(answer.body)) {
        lastId = id ?? lastId
        // as: see types.ts
        if (event === 'deliveries') listener.deliveries(JSON.parse(data) as DeliveryRow[])
        else if (event === 'refusals') listener.refusals(JSON.parse(data) as RefusalFields[])
        else if (event === 'status') listener.status(JSON.parse(data) as StatusFields)
        else if (event === 'reset') listener.reset()
      }
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return
    }
    if (signal.aborted) return
    listener.connected(false)
    await new Promise((done) => setTimeout(done, retryMs))
    retryMs = Math.min(2 * retryMs, mostRetryMs)
  }
}

type Frame = { readonly id: string | undefined; readonly event: string | undefined; readonly data: string }

async function* parseFrames(body: ReadableStream<Uint8Array> | null): AsyncGenerator<Frame> {
  if (body === null) return
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let text = ''
  for (;;) {
    const { value, done } = await reader.read()
    if (done) return
    text += decoder.decode(value, { stream: true })
    const frames = text.split('\n\n')
    text = frames.pop() ?? ''
    for (const frame of frames) {
      const field = (name: string) =>
        frame
          .split('\n')
          .find((line) => line.startsWith(`${name}: `))
          ?.slice(name.length + 2)
      const data = field('data')
      if (data !== undefined) yield { id: field('id'), event: field('event'), data }
    }
  }
}
