// Requests that a page of another site makes in somebody's browser: senders of webhooks are no browsers.
import type { IncomingHttpHeaders } from 'node:http'

/**
 * True for a request that a browser sends on behalf of another site: it says `Sec-Fetch-Site: cross-site`, or its `Origin` is
 * not the host that it was sent to. An opaque origin (`null`) is foreign. The scheme may differ, since a proxy may end TLS.
 * Pages cannot change either header (Fetch, "forbidden request-header"). Callers refuse such a request before they count
 * failures: otherwise any page could lock out the person who reads it.
 */
export function isCrossSite(headers: IncomingHttpHeaders): boolean {
  if (saysCrossSite(headers)) return true
  const { origin, host = '' } = headers
  return origin !== undefined && toOriginHost(origin) !== host.replace(/:(80|443)$/, '').toLowerCase()
}

/** The browser's own word: it comes with links and images too, which have no `Origin`. */
export function saysCrossSite(headers: IncomingHttpHeaders): boolean {
  return String(headers['sec-fetch-site']).toLowerCase() === 'cross-site'
}

/** Host and port of a web origin, without the port of HTTP or HTTPS; undefined for any other text. */
function toOriginHost(origin: string): string | undefined {
  return /^https?:\/\/([^/?#@,\s]+?)(?::(?:80|443))?$/i.exec(origin)?.[1]?.toLowerCase()
}
