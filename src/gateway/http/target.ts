// The target of a request, in the one form that all others read: a path with a query, and without the secret that a sender without headers has in it.
import type { IncomingMessage } from 'node:http'
import { trimSlashes } from '../../base/text.ts'
import { isRunPath, maxHookChars, normalizeEscapes, urlSecretHeader } from '../../core/model/delivery.ts'
import { findServedSection } from '../../model/runner.ts'
import type { Generation } from '../generation/generation.ts'

const absolute = /^https?:\/\/([^/?#]*)(.*)$/is

/** The absolute form is the same request (RFC 9112, 3.2.2). Undefined for one with a user, which clients must not send (RFC 9110, 4.2.4). */
export function toOriginForm(target: string): string | undefined {
  const [, authority, rest = ''] = absolute.exec(target) ?? []
  if (authority === undefined) return target
  if (authority === '' || authority.includes('@')) return undefined
  return rest.startsWith('/') ? rest : `/${rest}`
}

/** The URL that the client sent. Express removes the path at which it mounts from `url`. */
export function readRequestUrl(req: IncomingMessage): string {
  return 'originalUrl' in req && typeof req.originalUrl === 'string' ? req.originalUrl : (req.url ?? '/')
}

/** The URL without its query. */
export function toUrlPath(url: string): string {
  const mark = url.indexOf('?')
  return mark < 0 ? url : url.slice(0, mark)
}

/**
 * The name of the hook after the prefix, without leading or trailing slashes, with the escapes of RFC 3986, 6.2.2: `%77ake` is `wake`, `%c3` is `%C3`, and
 * `%2F` is no slash. Undefined for a path outside the prefix.
 */
export function readHookName(url: string, prefix: string): string | undefined {
  const path = normalizeEscapes(toUrlPath(url))
  if (path !== prefix && !path.startsWith(`${prefix}/`)) return undefined
  return trimSlashes(path.slice(prefix.length))
}

/** The length of the shortest secret that a mapping may have. */
const minSecretChars = 22

/** A text that somebody made at random: hexadecimal digits, or letters of both cases with digits. */
const random = /^(?:[\da-f]{32,}|(?=.*\d)(?=.*[a-z])(?=.*[A-Z])[\w~-]{22,})$/

/**
 * Moves the secret of `/hooks/<name>/<secret>`, or of `/hooks/runners/<name>/<secret>`, from the URL of a request into a header that no client can send. Call it before anything else reads the request: then no list, log,
 * delivery, span or kept request has the secret, because each shows the URL, and none shows this header. A random last part is dropped from the URL of an unknown hook too: its mapping may have
 * been removed or renamed.
 */
export function takeUrlSecret(
  req: Pick<IncomingMessage, 'method' | 'url' | 'rawHeaders'>,
  { config, findHook }: Pick<Generation, 'config' | 'findHook'>,
): void {
  const url = req.url ?? '/'
  const prefix = config.hooks.path
  const name = readHookName(url, prefix) ?? ''
  if (!name.includes('/') || (isRunPath(name) && req.method !== 'POST')) return
  const hook = findHook(name)
  if (hook.isNamed) return
  const query = url.slice(toUrlPath(url).length)
  const served = findServedSection(name, config.runners)
  if (served !== undefined && served.rest !== '') {
    const secret = trimSlashes(served.rest)
    req.url = `${prefix}/${served.hook}${query}`
    hideInHeaders(req, secret)
    req.rawHeaders.push(urlSecretHeader, secret)
    return
  }
  for (let at = name.indexOf('/'); at >= 0 && at <= maxHookChars; at = name.indexOf('/', at + 1)) {
    const owner = findHook(name.slice(0, at))
    if (!owner.isNamed || !owner.secretHeaders.has(urlSecretHeader)) continue
    const secret = trimSlashes(name.slice(at))
    req.url = `${prefix}/${name.slice(0, at)}${query}`
    hideInHeaders(req, secret)
    req.rawHeaders.push(urlSecretHeader, secret)
    return
  }
  const last = name.lastIndexOf('/')
  if (hook.kind !== 'unknown' || !random.test(name.slice(last + 1))) return
  req.url = `${prefix}/${name.slice(0, last)}${query}`
  hideInHeaders(req, name.slice(last + 1))
}

/** Proxies repeat the URL in headers of their own, such as X-Original-URL and X-Forwarded-Uri. */
function hideInHeaders({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>, secret: string): void {
  // a shorter text is no secret, and may be a part of any header
  if (secret.length < minSecretChars) return
  for (const [index, text] of rawHeaders.entries()) {
    const value = normalizeEscapes(text)
    if (index % 2 === 1 && value.includes(secret)) rawHeaders[index] = value.replaceAll(secret, '[secret]')
  }
}
