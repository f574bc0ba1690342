// Reads HTTP messages of other programs: bodies up to a limit, the time that a server asks its callers to wait, and the site that a browser's
// request comes from. Builds the URLs of local servers.
import type { IncomingHttpHeaders } from 'node:http'

/** RFC 1952, 2.3.1: gzip begins with 1f 8b, and no text in UTF-8 does. */
export function isGzip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b
}

/** The body; undefined if it exceeds the limit. In that case, the rest is not read. Throws if the connection breaks. */
export async function readLimitedBody(
  body: AsyncIterable<Uint8Array> | null,
  maxBytes: number,
): Promise<string | undefined> {
  return (await readBytes(body, maxBytes))?.toString()
}

/** As `readLimitedBody`. */
export async function readBytes(body: AsyncIterable<Uint8Array> | null, maxBytes: number): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body ?? []) {
    size += chunk.length
    if (size > maxBytes) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/**
 * Reads `Retry-After`, in seconds or as a date (RFC 9110, 10.2.3), or OpenAI's `retry-after-ms`, which is more exact. Returns milliseconds from
 * `now`; undefined if neither header is valid.
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

/** GitHub's documentation says to wait a minute if no header says how long. */
const defaultRateLimitMs = 60_000

/**
 * The time until the API accepts requests again, in milliseconds. `Retry-After` takes precedence. Otherwise, if the limit is used up, the time is
 * in `X-RateLimit-Reset` (GitHub) or `RateLimit-Reset` (GitLab), in seconds since the epoch by the clock of the API. If no header has the time: a
 * minute for the refusal of a rate limit, undefined for any other answer. `now`: the clock of the API. `text`: the body of the answer.
 */
export function readRateLimitMs({ headers, now, status, text }: ApiAnswer): number | undefined {
  const isRateLimited = status === 429 || (status === 403 && /rate limit/i.test(text))
  const asked = status >= 300 ? readRetryAfterMs(headers, now) : undefined
  if (asked !== undefined) return asked
  const read = (name: string) => headers.get(`x-ratelimit-${name}`) ?? headers.get(`ratelimit-${name}`)
  const [left, reset] = [read('remaining'), read('reset')]
  if (left !== '0' || reset === null || !/^\d{9,11}$/.test(reset)) return isRateLimited ? defaultRateLimitMs : undefined
  // the reset is in whole seconds, so it may be up to a second too early
  return Math.max(0, Number(reset) * 1_000 - now) + 1_000
}

type ApiAnswer = {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly now: number
}

/** An empty object if the wait is unknown, because an optional field must not be set to undefined. */
export function toRetryWait(retryAfterMs: number | undefined): { readonly retryAfterMs?: number } {
  return retryAfterMs === undefined ? {} : { retryAfterMs }
}

/** Whether only this machine can connect to a server that listens on this address or name. */
export function isLoopbackHost(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/i.test(host.trim())
}

/** The URL at which this machine reaches a server that listens on `host`. 0.0.0.0 and :: are addresses to listen on, not to call. */
export function toLocalUrl(host: string, port: number): string {
  const bare = host.trim().replace(/^\[(.*)\]$/, '$1')
  const called = bare === '0.0.0.0' ? '127.0.0.1' : bare === '::' ? '::1' : bare
  return `http://${called.includes(':') ? `[${called}]` : called}:${port}`
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
  return origin !== undefined && readOriginHost(origin) !== host.replace(/:(80|443)$/, '').toLowerCase()
}

/** Only the browser can set this header. Requests for links and images have it too, although they have no `Origin`. */
export function isMarkedCrossSite(headers: IncomingHttpHeaders): boolean {
  return String(headers['sec-fetch-site']).toLowerCase() === 'cross-site'
}

/** Host and port of a web origin, without the port of HTTP or HTTPS; undefined for any other text. */
function readOriginHost(origin: string): string | undefined {
  return /^https?:\/\/([^/?#@,\s]+?)(?::(?:80|443))?$/i.exec(origin)?.[1]?.toLowerCase()
}

/** The URL of a local server, with an address that can be called: 0.0.0.0 and :: are only addresses to listen on. */
export function toCallableUrl(url: string): string {
  return url.replace(/^http:\/\/0\.0\.0\.0(?=[:/])/, 'http://127.0.0.1').replace('http://[::]', 'http://[::1]')
}
