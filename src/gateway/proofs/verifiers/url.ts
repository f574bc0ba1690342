// The URL that the sender called. Behind a proxy, the request does not show it.

/**
 * The URL of the sender. A public URL without a path gets the path of the request. The query is that of the request, if it has one. Without a
 * public URL, the text is empty.
 */
export function toPublicUrl(publicUrl: string | undefined, requestUrl: string): string {
  if (publicUrl === undefined) return ''
  const [base = '', ownQuery] = splitQuery(publicUrl)
  const [path = '', query] = splitQuery(requestUrl)
  const whole = /^https?:\/\/[^/]+$/i.test(base) ? base + path : base
  const search = query ?? ownQuery
  return search === undefined ? whole : `${whole}?${search}`
}

/** The same URL with and without the port of its protocol: some senders sign the URL with the port, others without it. */
export function toPortVariants(url: string): readonly string[] {
  const found = /^(https?):\/\/([^/?#:]+)(?::(\d+))?(.*)$/is.exec(url)
  if (found === null) return [url]
  const [, protocol = '', host = '', port, rest = ''] = found
  const usual = protocol.toLowerCase() === 'https' ? '443' : '80'
  if (port === undefined) return [url, `${protocol}://${host}:${usual}${rest}`]
  return [url, `${protocol}://${host}${rest}`]
}

/** The only codes that HubSpot decodes in a URL before it signs. */
const decoded = new Map(
  Object.entries({
    '%3A': ':',
    '%2F': '/',
    '%3F': '?',
    '%40': '@',
    '%21': '!',
    '%24': '$',
    '%27': "'",
    '%28': '(',
    '%29': ')',
    '%2A': '*',
    '%2C': ',',
    '%3B': ';',
  }),
)

export function toDecodedUrl(url: string): string {
  return url.replace(/%[\da-f]{2}/gi, (code) => decoded.get(code.toUpperCase()) ?? code)
}

export function readQuery(url: string): URLSearchParams {
  return new URLSearchParams(splitQuery(url)[1] ?? '')
}

function splitQuery(url: string): [string, string | undefined] {
  const at = url.indexOf('?')
  return at < 0 ? [url, undefined] : [url.slice(0, at), url.slice(at + 1)]
}
