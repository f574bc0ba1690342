// The fetch for models, and its limits. The built-in fetch gives up after five minutes without a byte, and a slow machine may need longer for a
// long prompt. Follows no redirect, because a key must reach one host only.
import { type IncomingMessage, request as overHttp } from 'node:http'
import { type RequestOptions, request as overHttps } from 'node:https'
import { isIP } from 'node:net'
import { Readable } from 'node:stream'
import { isPrivateAddress, lookupPublic } from '../../../../base/public-address.ts'

export type Fetch = typeof globalThis.fetch

/** Statuses without a body: the constructor of Response throws if they have one. */
const bodiless: ReadonlySet<number> = new Set([204, 205, 304])

/** Sends a request. Its body must be text. */
export const fetchWithoutTimeout: Fetch = async (input, init = {}) =>
  toResponse(await sendRequest(new URL(input instanceof Request ? input.url : input), init))

/**
 * The same for a URL that an outsider chose: `RunnerHost.fetchPublic`. Each call makes its own connection, because one of the usual pool may lead to an
 * address that nobody checked.
 */
export const fetchPublic: Fetch = async (input, init = {}) => {
  const url = new URL(input instanceof Request ? input.url : input)
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (url.protocol !== 'https:' || (isIP(host) !== 0 && isPrivateAddress(host)))
    throw new TypeError('The URL is not https, or its address is not public.')
  return toResponse(await sendRequest(url, init, { lookup: lookupPublic, agent: false }))
}

function toResponse(answer: IncomingMessage): Response {
  const { statusCode: status = 0, statusMessage = '' } = answer
  const headers = Object.entries(answer.headersDistinct).flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value]),
  )
  if (bodiless.has(status)) answer.resume()
  return new Response(bodiless.has(status) ? null : toWebStream(answer), { status, statusText: statusMessage, headers })
}

function sendRequest(
  url: URL,
  { method = 'GET', headers, body, signal }: RequestInit,
  options: RequestOptions = {},
): Promise<IncomingMessage> {
  if (body !== undefined && body !== null && typeof body !== 'string') throw new TypeError('The body must be text.')
  const over = url.protocol === 'https:' ? overHttps : overHttp
  return new Promise((resolve, reject) => {
    const request = over(url, {
      ...options,
      method,
      headers: Object.fromEntries(new Headers(headers)),
      ...(signal ? { signal } : {}),
    })
    request.on('error', reject)
    request.on('response', resolve)
    request.end(body ?? undefined)
  })
}

function toWebStream(answer: IncomingMessage): ReadableStream<Uint8Array> {
  // as: Node's declaration of the same class
  return Readable.toWeb(answer) as ReadableStream<Uint8Array>
}

type BoundedFetch = {
  readonly fetch: Fetch
  /** Whether an answer exceeded the limit and was cut off. */
  readonly isOver: () => boolean
}

/** Limits the body of the answer of one call to `maxBytes`. */
export function limitFetch(fetch: Fetch, maxBytes: number): BoundedFetch {
  let isOver = false
  return {
    isOver: () => isOver,
    fetch: async (input, init) => {
      const answer = await fetch(input, init)
      if (answer.body === null) return answer
      let left = maxBytes
      const counted = answer.body.pipeThrough(
        new TransformStream<Uint8Array, Uint8Array>({
          transform(chunk, controller) {
            left -= chunk.length
            isOver ||= left < 0
            if (left < 0) controller.error(new Error('The answer is over its limit.'))
            else controller.enqueue(chunk)
          },
        }),
      )
      const { status, statusText, headers } = answer
      return new Response(counted, { status, statusText, headers })
    },
  }
}

type WatchedFetch = {
  readonly fetch: Fetch
  /** `no answer`: the first byte did not come in time. `stopped`: a later byte did not come in time. Undefined if all came in time. */
  readonly silence: () => 'no answer' | 'stopped' | undefined
}

/** Ends a call whose answer does not begin within `firstMs`, or that then sends nothing for `betweenMs`. */
export function limitSilence(
  fetch: Fetch,
  { firstMs, betweenMs }: { firstMs: number; betweenMs: number },
): WatchedFetch {
  let silence: ReturnType<WatchedFetch['silence']>
  return {
    silence: () => silence,
    fetch: async (input, init = {}) => {
      const silent = new AbortController()
      let kind: typeof silence = 'no answer'
      const end = () => {
        silence = kind
        silent.abort(new Error('The server sent nothing for too long.'))
      }
      let timer = setTimeout(end, firstMs)
      const restart = () => {
        kind = 'stopped'
        clearTimeout(timer)
        timer = setTimeout(end, betweenMs)
      }
      const stop = () => clearTimeout(timer)
      init.signal?.addEventListener('abort', stop, { once: true })
      const signal = AbortSignal.any([silent.signal, ...(init.signal ? [init.signal] : [])])
      try {
        const answer = await fetch(input, { ...init, signal })
        if (answer.body === null) {
          stop()
          return answer
        }
        // the head may come long before the first byte of the body
        const watched = answer.body.pipeThrough(
          new TransformStream<Uint8Array, Uint8Array>({
            transform(chunk, controller) {
              restart()
              controller.enqueue(chunk)
            },
            flush: stop,
          }),
        )
        const { status, statusText, headers } = answer
        return new Response(watched, { status, statusText, headers })
      } catch (thrown) {
        stop()
        throw thrown
      }
    },
  }
}

type RepeatableFetch = {
  readonly fetch: Fetch
  /** A fetch that answers every request with the JSON that came instead of a stream; undefined if none came. */
  readonly repeat: () => Fetch | undefined
}

/** A fetch for one streamed call. If the server does not stream, it answers with JSON, which is kept, so that the model is called only once. */
export function keepPlainAnswer(fetch: Fetch): RepeatableFetch {
  let kept: { readonly text: string; readonly init: ResponseInit } | undefined
  const toResponse = ({ text, init }: NonNullable<typeof kept>) => new Response(text, init)
  return {
    fetch: async (input, init) => {
      const answer = await fetch(input, init)
      const { ok, status, headers } = answer
      if (!ok || !/^application\/json\b/i.test(headers.get('content-type') ?? '')) return answer
      kept = { text: await answer.text(), init: { status, headers: { 'content-type': 'application/json' } } }
      return toResponse(kept)
    },
    repeat: () => {
      const answer = kept
      return answer && (async () => toResponse(answer))
    },
  }
}
