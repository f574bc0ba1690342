// The route of the stream, and the limit of open streams.
import { Readable } from 'node:stream'
import { Problem } from '../../../core/model/problem.ts'
import type { ApiParts } from './parts.ts'
import { toRefusalFields } from '../refusals.ts'
import type { OperatorCheck } from '../operator.ts'
import type { Handlers } from './handlers.ts'
import { streamFrames, toStatusFields } from './stream.ts'

/** Each open stream reads the store five times a second while deliveries come in. */
const maxStreams = 20

type StreamRouteParts = Pick<
  ApiParts,
  'store' | 'changes' | 'refusals' | 'status' | 'generation' | 'clock' | 'others'
> & {
  readonly operators: Pick<OperatorCheck, 'find'>
}

export function handleStream(parts: StreamRouteParts) {
  const { store, changes, refusals, status, generation, clock, others, operators } = parts
  let open = 0

  return {
    'GET /api/stream': ({ ctx }) => {
      // the client left while the first request loaded its call: no `close` would free the stream
      if (ctx.res.destroyed) return undefined
      if (open >= maxStreams) {
        throw new Problem('rate-limited', `More than ${maxStreams} streams are open. Close a page.`, {
          retryAfterSeconds: 30,
        })
      }
      const ended = new AbortController()
      open += 1
      const { socket } = ctx.req
      const end = () => {
        ctx.res.off('close', end)
        socket.off('close', end)
        open -= 1
        ended.abort()
      }
      ctx.res.once('close', end)
      // one connection may ask for all streams at once
      socket.setMaxListeners(2 * maxStreams)
      // a response that waits behind another one on its connection gets no `close` when the connection ends
      socket.once('close', end)
      const frames = streamFrames(
        {
          changes,
          store,
          generation,
          clock,
          others,
          status: () => toStatusFields(status()),
          refusals: {
            count: () => refusals.count(),
            newest: (max) =>
              refusals
                .list()
                .slice(-max)
                .map((refusal) => toRefusalFields(refusal, generation())),
          },
        },
        {
          lastId: ctx.get('last-event-id') || undefined,
          signal: ended.signal,
          isAllowed: () => operators.find(ctx.req, 'read') !== undefined,
        },
      )
      ctx.set({ 'cache-control': 'no-store', 'content-type': 'text/event-stream; charset=utf-8' })
      // a small buffer: a slow reader gets newer rows, not older ones
      ctx.body = Readable.from(frames, { objectMode: false, highWaterMark: 64 * 1024 })
      return undefined
    },
  } satisfies Partial<Handlers>
}
