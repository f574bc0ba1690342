// Checks the links of a reply: only http, https and mailto are allowed, and the text of a link must not name another host than its target.
import { decodeEntities } from './entities.ts'

/** Characters that look like the signs of an address, and that NFKC does not change. */
const lookalikes: readonly (readonly [RegExp, string])[] = [
  [/[\u2044\u2215\u29F8]/g, '/'],
  [/[\u29F5\u2216]/g, '\\'],
  [/[\u02D0\u0589\u05C3\u2236\uA789]/g, ':'],
  [/[\u3002\u06D4\u0701\u0702]/g, '.'],
]

/** File endings that are not top-level domains: `index.ts` is not a host. */
const fileEnding =
  /\.(?:[cm]?[jt]sx?|jsonc?|ya?ml|toml|txt|html?|s?css|xml|csv|svg|png|jpe?g|gif|pdf|log|lock|java|cpp|hpp|go|sql|php|rb|swift|kt)$/

/** A text in the form in which people read it: decoded, in lower case, without invisible characters, and with ASCII instead of lookalikes. */
export function foldForReading(text: string): string {
  const decoded = decodeEntities(text)
    .normalize('NFKC')
    .replace(/[\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\u2800]/gu, '')
  const plain = lookalikes.reduce((read, [sign, ascii]) => read.replace(sign, ascii), decoded)
  return decodePercent(plain).toLowerCase()
}

/** Decodes percent-encoding, but only of visible ASCII characters. */
function decodePercent(text: string): string {
  return text.replace(/%(2[1-9a-f]|[3-6][\da-f]|7[\da-e])/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
}

/** Whether the text of a link names another host than its address. `address` is a result of `toSafeHref`. */
export function isMisleading(text: string, address: string): boolean {
  const read = foldForReading(text)
  // an unknown entity may be any character
  if (/&\w+;/.test(read)) return true
  const { host, mailbox, protocol } = toTarget(new URL(address))
  const named = read
    .split(/[^\p{L}\p{N}\p{M}.\-_~:/\\?#@%&=+[\]]+/u)
    // a host name in another alphabet always counts as another host, because it may look like a well-known name
    .filter((word) => word !== mailbox && !(/^[!-~]*$/.test(word) && toSafeHref(word) === address))
    .flatMap(findHosts)
  return named.some((name) => name !== host && name !== `${host}${defaultPorts[protocol] ?? ''}`)
}

/** `mailbox`: the address of a mail link with one recipient. A link with several recipients has no mailbox and no host. */
function toTarget({ protocol, host, pathname, search }: URL) {
  if (protocol !== 'mailto:') return { protocol, host, mailbox: undefined }
  const others = /[?&](?:to|b?cc)=/i.test(decodePercent(search))
  const [mailbox, mailHost = ''] = /^[^@,;]*@([^@,;]*)$/.exec(decodePercent(pathname).toLowerCase()) ?? []
  return others ? { protocol, host: '', mailbox: undefined } : { protocol, host: mailHost, mailbox }
}

const defaultPorts: Readonly<Record<string, string>> = { 'http:': ':80', 'https:': ':443' }

/** The hosts that a reader sees in a word: in an authority, or as a bare name with a dot. The path does not count. */
function findHosts(word: string): string[] {
  const [scheme = ''] = /^(?:.*:[/\\]+|.*\b(?:https?|ftp):|[/\\]{2,})/.exec(word) ?? []
  const [authority = ''] = word.slice(scheme.length).split(/[/\\?#]/, 1)
  return authority
    .split(/[@=&+%~]/)
    .map((name) => name.replace(/^[.:_-]+|(?<![.:_-])[.:_-]+$/g, ''))
    .filter((name) => (scheme === '' ? looksLikeHost(name) : name !== ''))
}

function looksLikeHost(name: string): boolean {
  const [bare = '', ...rest] = name.split(':')
  // such as "login:bank.com"
  if (rest.some((part) => looksLikeHost(part))) return true
  if (/^\d{1,3}(?:\.\d{1,3}){3}$/.test(bare)) return true
  return /\.\p{L}[\p{L}\p{N}\p{M}-]+$/u.test(bare) && !fileEnding.test(bare)
}

const schemes = new Set(['http:', 'https:', 'mailto:'])
/** A name or an IP address, with or without a port. Any other text is not a host, and could mean something else after decoding. */
const plainHost = /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d+)?$/i

/** The address in its normal form, safe inside quotes and angle brackets; undefined if a link must not lead there. */
export function toSafeHref(href: string): string | undefined {
  const url = readUrl(href)
  // https://bank.example@evil.example leads to evil.example
  if (url === undefined || url.username !== '' || url.password !== '') return undefined
  return toText(url)
}

/** The address without the user name before its host; undefined if it has none, or if a link must not lead there. */
export function toAddressWithoutUser(href: string): string | undefined {
  const url = readUrl(href)
  if (url === undefined || (url.username === '' && url.password === '')) return undefined
  url.username = ''
  url.password = ''
  return toText(url)
}

function readUrl(href: string): URL | undefined {
  const url = URL.canParse(href) ? new URL(href) : undefined
  if (url === undefined || !schemes.has(url.protocol)) return undefined
  return url.protocol === 'mailto:' || plainHost.test(url.host) ? url : undefined
}

function toText(url: URL): string {
  return (
    url.href
      .replace(/[\s<>"`|\\^{}]/g, encodeURIComponent)
      // a Markdown parser reads "&copy;" in an address as an entity
      .replace(/(?<=&#?\w{1,40});/g, '%3B')
  )
}
