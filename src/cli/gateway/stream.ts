// Reads the stream of the running gateway: server-sent events over fetch, with the place to continue from after a cut.
import { setTimeout as sleep } from 'node:timers/promises'
import { Problem } from '../../model/problem.ts'
import { openAdmin } from './gateway.ts'
import type { Context } from '../terminal/context.ts'

type StreamEvent = { readonly event: string; readonly data: string }

const retryMs = 1_000

/** The events until `signal` ends or the gateway stops. Throws `gateway-unreachable` if it does not answer at first. */
export async function* followStream(context: Context, signal: AbortSignal): AsyncGenerator<StreamEvent> {
  let lastId: string | undefined
  let isKnown = false
  while (!signal.aborted) {
    try {
      const headers = lastId === undefined ? {} : { 'last-event-id': lastId }
      const response = await openAdmin(context, { path: '/api/stream', headers, signal })
      isKnown = true
      for await (const { id, ...event } of parseEvents(response)) {
        lastId = id ?? lastId
        yield event
      }
    } catch (error) {
      if (signal.aborted) return
      // a gateway that answered once may be restarting
      const isAway = error instanceof Problem ? error.code === 'gateway-unreachable' : error instanceof TypeError
      if (!isKnown || !isAway) throw error
    }
    await sleep(retryMs, undefined, { signal }).catch(() => undefined)
  }
}

/** https://html.spec.whatwg.org/multipage/server-sent-events.html, as far as the gateway uses it. */
async function* parseEvents(
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<StreamEvent & { id: string | undefined }> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of chunks) {
    const blocks = (text + decoder.decode(chunk, { stream: true })).split('\n\n')
    text = blocks.pop() ?? ''
    for (const block of blocks) {
      const fields = new Map(block.split('\n').map((line) => parseField(line)))
      const data = fields.get('data')
      if (data !== undefined) yield { event: fields.get('event') ?? 'message', data, id: fields.get('id') }
    }
  }
}

function parseField(line: string): [name: string, value: string] {
  const colon = line.indexOf(': ')
  return colon < 0 ? [line, ''] : [line.slice(0, colon), line.slice(colon + 2)]
}
