// Where a link in a reply may lead: http, https and mailto, and nowhere by way of a name that looks like another host's.

const schemes = new Set(['http:', 'https:', 'mailto:'])

/** The address, normalised and safe inside quotes and angle brackets; undefined where a link may not lead. */
export function toAddress(href: string): string | undefined {
  const url = URL.canParse(href) ? new URL(href) : undefined
  // https://bank.example@evil.example leads to evil.example
  if (url === undefined || !schemes.has(url.protocol) || url.username !== '' || url.password !== '') return undefined
  return url.href.replace(/[\s<>"`|\\^{}]/g, encodeURIComponent)
}

/** Whether `text` reads like the address of another host. */
export function isDisguised(text: string, address: string): boolean {
  const shown = /^\s*(?:https?:\/\/|www\.)\S+/i.exec(text)?.[0].trim()
  if (shown === undefined) return false
  const read = toAddress(shown.toLowerCase().startsWith('www.') ? `http://${shown}` : shown)
  return read === undefined || new URL(read).host !== new URL(address).host
}
