// HTTP messages from other programs: reads bodies up to a limit, and how long the sender asks us to wait.
import type { IncomingHttpHeaders } from 'node:http'

/** Undefined for a body over the limit; the rest of it is not read. Throws if the connection breaks. */
export async function readLimitedBody(
  body: AsyncIterable<Uint8Array> | null,
  maxBytes: number,
): Promise<string | undefined> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body ?? []) {
    size += chunk.length
    if (size > maxBytes) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

/**
 * `Retry-After` in seconds or as a date (RFC 9110, 10.2.3), or OpenAI's `retry-after-ms`, which is more exact; in
 * milliseconds from `now`.
 */
export function readRetryAfterMs(headers: Headers, now: number = Date.now()): number | undefined {
  const exact = headers.get('retry-after-ms')?.trim() ?? ''
  if (isNumber(exact)) return Math.ceil(Number(exact))
  const value = headers.get('retry-after')?.trim() ?? ''
  if (isNumber(value)) return Math.ceil(Number(value) * 1_000)
  // Date.parse reads -5 as a month
  const until = /^[a-z]{3}/i.test(value) ? Date.parse(value) : Number.NaN
  if (Number.isNaN(until)) return undefined
  // compared with the clock of the server that wrote the date, if the response has a `Date` header
  const written = Date.parse(headers.get('date') ?? '')
  return Math.max(0, until - (Number.isNaN(written) ? now : written))
}

/** An empty object if the wait is unknown, because an optional field must not be set to undefined. */
export function toRetryWait(retryAfterMs: number | undefined): { readonly retryAfterMs?: number } {
  return retryAfterMs === undefined ? {} : { retryAfterMs }
}

function isNumber(text: string): boolean {
  return /^\d+(\.\d+)?$/.test(text)
}

/**
 * True for a request that a browser sends on behalf of another site: `Sec-Fetch-Site` is `cross-site`, or the `Origin` is not the host that
 * received the request. An opaque origin (`null`) is foreign. The scheme may differ, since a proxy may end TLS. Pages cannot change either
 * header (Fetch, "forbidden request-header"). Callers refuse such a request before they count failures: otherwise any page could lock out
 * the person who reads it.
 */
export function isCrossSite(headers: IncomingHttpHeaders): boolean {
  if (isMarkedCrossSite(headers)) return true
  const { origin, host = '' } = headers
  return origin !== undefined && parseOriginHost(origin) !== host.replace(/:(80|443)$/, '').toLowerCase()
}

/** The browser sets this header itself. It sends it with links and images too, which have no `Origin`. */
export function isMarkedCrossSite(headers: IncomingHttpHeaders): boolean {
  return String(headers['sec-fetch-site']).toLowerCase() === 'cross-site'
}

/** Host and port of a web origin, without the port of HTTP or HTTPS; undefined for any other text. */
function parseOriginHost(origin: string): string | undefined {
  return /^https?:\/\/([^/?#@,\s]+?)(?::(?:80|443))?$/i.exec(origin)?.[1]?.toLowerCase()
}
