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

/** The values that each configuration got from `${NAME}` and `${file:…}`, and those that it passes on to transforms. */
const outsideValues = new WeakMap<object, readonly string[]>()

/**
 * Remembers the values of variables and files that became part of a configuration, and the variables that it passes on to transforms. Of the
 * latter, plain words such as `production`, and URLs without a secret, are not secrets.
 */
export function noteOutsideValues(
  config: Config,
  { substituted, passedOn }: { substituted: readonly string[]; passedOn: Readonly<Record<string, string>> },
): void {
  const secrets = Object.entries(passedOn).flatMap(([name, text]) => {
    if (urlStart.test(text)) return findSecretsOfUrl(name, text)
    return isPlain(name, text) ? [] : [text]
  })
  outsideValues.set(config, [...substituted, ...secrets])
}

/**
 * Every secret of a configuration, or of its parsed text, and of `verify` in its mappings: values whose key names a secret, values of headers,
 * URLs that may contain a secret, all values from a variable or a file, and those of `hooks.transforms.env`.
 */
export function listConfigSecrets(config: object, mappings: readonly { readonly verify?: unknown }[]): string[] {
  const leaves = findLeaves({ config, verify: mappings.map(({ verify }) => verify) }, [])
  const found = leaves.flatMap(({ path, text }) => findSecretsAt(path, text))
  const listed = new Set([...found, ...(outsideValues.get(config) ?? [])])
  // an empty text is part of every text, and is no secret: a URL may have an empty password
  listed.delete('')
  return [...listed]
}

const urlStart = /^[a-z][a-z\d+.-]*:\/\//i

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
  if (urlStart.test(text)) return findSecretsOfUrl(name, text)
  const header = findConditionHeader(path)
  if (header !== undefined) return isPlain(header, text) ? [] : [text]
  // headers of a model's API: each may be its key
  if (path.at(-2) === 'headers') return [text, text.replace(/^\w+ +/, '')]
  // `user:password`, `whsec_…`: the text after the colon or the prefix is a secret too
  return classifySecretName(name) === 'no' ? [] : [text, text.replace(/^[^:]*:|^whsec_/, '')]
}

/**
 * The headers that a mapping compares with a secret, in lower case, each with a text that it may have. A kept request is shown without their
 * values.
 */
export function listSecretConditions(mapping: {
  readonly match?: unknown
  readonly flow?: unknown
}): Map<string, string> {
  const { match, flow } = mapping
  const found = findLeaves({ match, flow }, []).flatMap(({ path, text }): [string, string][] => {
    const header = findConditionHeader(path)
    return header === undefined || isPlain(header, text) ? [] : [[header.toLowerCase(), text]]
  })
  return new Map(found)
}

/** The header that a condition of a mapping compares, in `match` or in `flow.cancelOn`. */
function findConditionHeader(path: readonly string[]): string | undefined {
  const start = path.findIndex((key) => key === 'match' || key === 'cancelOn')
  const at = start < 0 ? -1 : path.indexOf('headers', start)
  return at < 0 ? undefined : path[at + 1]
}

/** Names of headers and variables that show a secret. `x-event-key` is not one of them: Bitbucket sends the name of the event in it. */
const secretName = /auth|token|secret|cookie|\bsig|pass|pwd|credential|hmac|jwt|(?<!event[-_])key/i
const maxPlainChars = 80
/** The maximum number of parts of one word. A word is split before its capital letters: `pullRequest` has two parts. */
const maxHumps = 4

/**
 * Whether a condition compares a header with plain words, such as the name of an event, or a variable has such words. They also occur in payloads,
 * so they must not count as secrets. A shared secret is not a plain word, or the name of its header or variable shows that it is a secret.
 */
function isPlain(name: string, text: string): boolean {
  if (secretName.test(name) || text.length > maxPlainChars) return false
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

// a shorter secret may occur in any text
export const minSecretChars = 6

/**
 * The forms in which a text may have one of the secrets: unchanged, in JSON, in a URL, and in base64 or base64url, also as a part of a longer text
 * such as `user:secret`. The longest form is first, because a secret may begin with another one. Short secrets are left out.
 */
export function listSecretForms(secrets: readonly string[]): string[] {
  const forms = secrets.filter((secret) => secret.length >= minSecretChars).flatMap(listForms)
  return [...new Set(forms)].toSorted((one, other) => other.length - one.length)
}

/** Replaces secrets, in each of their forms, by a mark. The text may be JSON. */
export function createSecretMask(secrets: readonly string[], mark: string): (text: string) => string {
  const forms = listSecretForms(secrets)
  return (text) => forms.reduce((rest, form) => rest.replaceAll(form, mark), text)
}

function listForms(secret: string): string[] {
  const bytes = Buffer.from(secret)
  const whole = bytes.toString('base64')
  const parts = [0, 1, 2].map((before) => encodePart(bytes, before))
  const coded = [whole, whole.replace(/=+$/, ''), ...parts]
  const urlCoded = coded.map((text) => text.replaceAll('+', '-').replaceAll('/', '_'))
  return [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(bytes.toString()), ...coded, ...urlCoded]
}

/** The characters that base64 has for these bytes after some other bytes, without those that depend on the bytes around them. */
function encodePart(bytes: Buffer, before: number): string {
  const all = Buffer.concat([Buffer.alloc(before), bytes])
  return all.toString('base64').slice(Math.ceil((before * 8) / 6), Math.floor((all.byteLength * 8) / 6))
}
