// Finds the secrets in a configuration, which must not appear in a fixture or a message.
import type { Config } from './config.ts'

const secretWords: ReadonlySet<string> = new Set(
  'token secret password passwd pwd passphrase passcode authorization credential cookie signature jwt hmac apikey'.split(
    ' ',
  ),
)
const secretKeys: ReadonlySet<string> = new Set(['api', 'private', 'access', 'secret', 'signing', 'auth', 'encryption'])

/**
 * Whether a value is a secret, by the last one or two words of its key: `access_token`, `clientSecret` and `api-key` are secrets, `token_type`
 * is not. A plural such as `tokens` may also name a count.
 */
export function classifySecretName(key: string): 'yes' | 'plural' | 'no' {
  const words = key
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z\d]+/)
    .filter((word) => word !== '')
  const last = words.at(-1) ?? ''
  if (secretWords.has(last)) return 'yes'
  if (last === 'key' && secretKeys.has(words.at(-2) ?? '')) return 'yes'
  return last.endsWith('s') && secretWords.has(last.slice(0, -1)) ? 'plural' : 'no'
}

/** The values that each configuration got from `${NAME}` and `${file:…}`. */
const substituted = new WeakMap<object, readonly string[]>()

/** Remembers the values of variables and files that became part of a configuration. */
export function noteSubstitutedValues(config: Config, values: readonly string[]): void {
  substituted.set(config, values)
}

/**
 * Every secret of a configuration, or of its parsed text, and of `verify` in its mappings: values whose key names a secret, values of headers,
 * URLs that may contain a secret, and all values from a variable or a file.
 */
export function listConfigSecrets(config: object, mappings: readonly { readonly verify?: unknown }[]): string[] {
  const leaves = findLeaves({ config, verify: mappings.map(({ verify }) => verify) }, [])
  const found = leaves.flatMap(({ path, text }) => findSecretsAt(path, text))
  const listed = new Set([...found, ...(substituted.get(config) ?? [])])
  // an empty text is part of every text, and is no secret: a URL may have an empty password
  listed.delete('')
  return [...listed]
}

type Leaf = { readonly path: readonly string[]; readonly text: string }

/** `path`: the names of the keys, without list indexes. */
function findLeaves(value: unknown, path: readonly string[]): Leaf[] {
  if (typeof value === 'string') return [{ path, text: value }]
  if (Array.isArray(value)) return value.flatMap((item) => findLeaves(item, path))
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, item]) => findLeaves(item, [...path, key]))
}

function findSecretsAt(path: readonly string[], text: string): string[] {
  const name = path.at(-1) ?? ''
  if (/^[a-z][a-z\d+.-]*:\/\//i.test(text)) return findSecretsOfUrl(name, text)
  const header = findConditionHeader(path)
  if (header !== undefined) return isOpenCondition(header, text) ? [] : [text]
  // headers of a model's API: each may be its key
  if (path.at(-2) === 'headers') return [text, text.replace(/^\w+ +/, '')]
  // `user:password`, `whsec_…`: the text after the colon or the prefix is a secret too
  return classifySecretName(name) === 'no' ? [] : [text, text.replace(/^[^:]*:|^whsec_/, '')]
}

/** The header that a condition of a mapping compares, in `match` or in `flow.cancelOn`. */
function findConditionHeader(path: readonly string[]): string | undefined {
  const start = path.findIndex((key) => key === 'match' || key === 'cancelOn')
  const at = start < 0 ? -1 : path.indexOf('headers', start)
  return at < 0 ? undefined : path[at + 1]
}

/** Header names that show a secret. `x-event-key` is not one of them: Bitbucket sends the name of the event in it. */
const secretHeaderName = /auth|token|secret|cookie|\bsig|pass|pwd|credential|hmac|jwt|(?<!event[-_])key/i
const maxOpenChars = 80
/** The maximum number of parts of one word. A word is split before its capital letters: `pullRequest` has two parts. */
const maxHumps = 4

/**
 * Whether a condition compares a header with plain words, such as the name of an event. Such words also occur in payloads, so they must not count
 * as secrets. A condition may also compare a shared secret, which is not a plain word, or has a header whose name shows that it is a secret.
 */
function isOpenCondition(header: string, text: string): boolean {
  if (secretHeaderName.test(header) || text.length > maxOpenChars) return false
  return text.split(/[^\p{L}\p{N}]+/u).every((word) => {
    if (/^v?\d{0,4}$/i.test(word)) return true
    const humps = word.split(/(?<=\p{Ll})(?=\p{Lu})/u)
    return humps.length <= maxHumps && humps.every((hump) => /^\p{L}{1,16}$/u.test(hump))
  })
}

/** A URL named `url` may have a token in its path. Any other URL is a secret if it has a user, a password or parameters. */
function findSecretsOfUrl(name: string, text: string): string[] {
  const [, password] = /^[^/]*:\/\/[^/?#:@]*:([^/?#]*)@/.exec(text) ?? []
  if (password !== undefined) return [text, password, decode(password)]
  return name === 'url' || /[?#]|^[^/]*:\/\/[^/]*@/.test(text) ? [text] : []
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
