// Where a link in a reply may lead: to http, https and mailto. An address never names one host and leads to another.

const schemes = new Set(['http:', 'https:', 'mailto:'])
/** A name or an IP address, and a port. Anything else is no host, and could read as something else where it is decoded. */
const plainHost = /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d+)?$/i

/** The address, normalised and safe inside quotes and angle brackets; undefined where a link may not lead. */
export function toAddress(href: string): string | undefined {
  const url = toUrl(href)
  // https://bank.example@evil.example leads to evil.example
  if (url === undefined || url.username !== '' || url.password !== '') return undefined
  return toText(url)
}

/** The address without the name before its host; undefined where there is none, or where a link may not lead. */
export function toAddressWithoutUser(href: string): string | undefined {
  const url = toUrl(href)
  if (url === undefined || (url.username === '' && url.password === '')) return undefined
  url.username = ''
  url.password = ''
  return toText(url)
}

function toUrl(href: string): URL | undefined {
  const url = URL.canParse(href) ? new URL(href) : undefined
  if (url === undefined || !schemes.has(url.protocol)) return undefined
  return url.protocol === 'mailto:' || plainHost.test(url.host) ? url : undefined
}

function toText(url: URL): string {
  return (
    url.href
      .replace(/[\s<>"`|\\^{}]/g, encodeURIComponent)
      // "&copy;" is an entity for a reader of Markdown
      .replace(/(?<=&#?\w{1,40});/g, '%3B')
  )
}
