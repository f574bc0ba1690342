// fetch, without its own limits of time: it gives up after five minutes without a byte, and a model on a small machine may
// read a long prompt for longer. The signal alone ends a call. Redirects are answers: a key goes nowhere else.
import { type IncomingMessage, request as overHttp } from 'node:http'
import { request as overHttps } from 'node:https'
import { Readable } from 'node:stream'

export type Fetch = typeof globalThis.fetch

/** Statuses that have no body; a Response refuses to be made with one. */
const bodiless: ReadonlySet<number> = new Set([204, 205, 304])

/** Takes text as a body and nothing else. */
export const patientFetch: Fetch = async (input, init = {}) => {
  const answer = await ask(new URL(input instanceof Request ? input.url : input), init)
  const { statusCode: status = 0, statusMessage = '' } = answer
  const headers = Object.entries(answer.headersDistinct).flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value]),
  )
  if (bodiless.has(status)) answer.resume()
  return new Response(bodiless.has(status) ? null : toWeb(answer), { status, statusText: statusMessage, headers })
}

function ask(url: URL, { method = 'GET', headers, body, signal }: RequestInit): Promise<IncomingMessage> {
  if (body !== undefined && body !== null && typeof body !== 'string') throw new TypeError('The body must be text.')
  const over = url.protocol === 'https:' ? overHttps : overHttp
  return new Promise((resolve, reject) => {
    const request = over(url, {
      method,
      headers: Object.fromEntries(new Headers(headers)),
      ...(signal ? { signal } : {}),
    })
    request.on('error', reject)
    request.on('response', resolve)
    request.end(body ?? undefined)
  })
}

function toWeb(answer: IncomingMessage): ReadableStream<Uint8Array> {
  // node's own declaration of the same class
  return Readable.toWeb(answer) as ReadableStream<Uint8Array>
}
