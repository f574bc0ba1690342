// Makes a request safe for a repository: secrets, and headers of the connection, are removed. Everything else stays unchanged.
import { isNumber } from '../../base/sent-number.ts'
import { isJsonObject, type SentValue } from '../../base/json.ts'
import { stringify } from '../../base/sent-json.ts'
import { classifySecretName, listSecretForms } from '../../model/config/secrets.ts'
import type { Delivery } from '../../core/model/delivery.ts'
import type { SenderTable } from '../proofs/senders.ts'
import { replaceTokens } from '../../base/token-forms.ts'

export const removedMark = '[removed]'

/** `verifiedBy`: the sender, if a verifier confirmed it. No header is then needed to recognise it. */
type KeepableRequest = Pick<Delivery, 'headers' | 'query'> & {
  readonly payload: SentValue
  readonly verifiedBy?: string | undefined
}

export type RedactedRequest = Pick<KeepableRequest, 'headers' | 'query' | 'payload'> & {
  /** The places of the removed values, such as `headers.x-hub-signature-256`. */
  readonly removed: readonly string[]
}

const proofName =
  /signature|token|secret|cookie|authorization|api-?key|password|credential|hmac|jwt|-sig$|-verification$/i
// headers of the connection, of proxies and of the gateway: they have no information about the event, and may contain a person's address
const connectionHeader =
  /^(host|connection|content-length|transfer-encoding|content-encoding|accept-encoding|expect|via|forwarded|x-forwarded-.*|x-real-ip|cf-(?!webhook-auth$).*|true-client-ip|x-request-id|:.*)$/i

const urlInText = /\b[a-z][a-z\d+.-]{0,20}:\/\/[^\s"'<>]+/gi
/** The depth up to which URLs in parameters of URLs are searched. The value of a parameter with a deeper URL is removed. */
const maxUrlDepth = 2
/** The URLs of incoming webhooks and bots, whose token is in the path. */
const secretPaths: readonly RegExp[] = [
  /^(https:\/\/hooks\.slack\.com\/(?:services|workflows|triggers)\/)[^?#]+/i,
  /^(https:\/\/(?:\w+\.)?discord(?:app)?\.com\/api\/(?:v\d+\/)?webhooks\/)[^?#]+/i,
  /^(https:\/\/api\.telegram\.org\/bot)[^/?#]+/i,
]
/** `secrets`: known secrets, which are removed everywhere. */
export function redactRequest(
  request: KeepableRequest,
  secrets: readonly string[],
  senders: SenderTable,
): RedactedRequest {
  const isProof = (name: string) => senders.proofHeaders.has(name) || proofName.test(name)
  // most forms of most secrets occur nowhere, and need not be searched in each text
  const whole = stringify([request.headers, request.query, request.payload])
  const known = listSecretForms(secrets).filter((form) => whole.includes(JSON.stringify(form).slice(1, -1)))
  const removed: string[] = []
  const removeSecrets = (text: string) => {
    const rest = redactUrls(known.reduce((left, form) => left.replaceAll(form, removedMark), text))
    return redactHeaderLines(replaceTokens(rest, removedMark), isProof)
  }
  const redactText = (text: string, path: string): string => {
    const redacted = removeSecrets(text)
    if (redacted !== text) removed.push(path)
    return redacted
  }
  const redactValue = (value: SentValue, path: string): SentValue => {
    if (typeof value === 'string') return redactText(value, path)
    if (Array.isArray(value)) return value.map((item, index) => redactValue(item, `${path}[${index}]`))
    if (!isJsonObject(value)) return value
    const entries = Object.entries(value).map(([key, item]): [string, SentValue] => {
      const name = removeSecrets(key)
      const at = `${path}.${name}`
      if (name !== key) removed.push(at)
      if (!isSecret(key, item)) return [name, redactValue(item, at)]
      removed.push(at)
      return [name, removedMark]
    })
    // fromEntries defines its keys: `__proto__` stays data
    return Object.fromEntries(entries)
  }
  const headers = redactHeaders(request, removed, { isProof, senders })
  const named = Object.entries(request.query).map(([key, value]): [string, string] => {
    const name = removeSecrets(key)
    if (name !== key) removed.push(`query.${name}`)
    if (!isSecret(key, value)) return [name, redactText(value, `query.${name}`)]
    removed.push(`query.${name}`)
    return [name, removedMark]
  })
  return {
    headers: Object.fromEntries(headers.map(([name, value]) => [name, redactText(value, `headers.${name}`)])),
    query: Object.fromEntries(named),
    payload: redactValue(request.payload, 'payload'),
    removed,
  }
}

/** Removes user and password, the values of parameters that are secrets, and a token in the path. */
function redactUrl(url: string, depth: number): string {
  return secretPaths
    .reduce((rest, pattern) => rest.replace(pattern, `$1${removedMark}`), url)
    .replace(/^((?:https?|wss?):\/\/)[^/?#]*@/i, `$1${removedMark}@`)
    .replace(/^([^/]*:\/\/)[^/?#:]*:[^/?#]*@/, `$1${removedMark}@`)
    .replace(/(?<=[?&#;])([^?=&#;]+)=([^&#;]+)/g, (pair: string, name: string, value: string) => {
      const isOpen = !isSecretParameter(decodeText(name)) && !hasSecretUrl(decodeText(value), depth + 1)
      return isOpen ? pair : `${name}=${removedMark}`
    })
}

function isSecretParameter(name: string): boolean {
  return isSecret(name, 'any text') || /(^|[^a-z])(key|sig|auth|pass)$/i.test(name)
}

/** Whether a URL in a parameter of another URL contains a secret, as in `?redirect=https%3A%2F%2F…`. */
function hasSecretUrl(value: string, depth: number): boolean {
  if (!value.includes('://')) return false
  // a sender may nest URLs as deep as a body is long
  return depth > maxUrlDepth || redactUrls(value, depth) !== value
}

function redactUrls(text: string, depth = 0): string {
  return text.replace(urlInText, (url) => redactUrl(url, depth))
}

function decodeText(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Removes the headers of the connection and those with secrets. The latter keep their names if the sender is not recognised without them. */
function redactHeaders(
  { headers, verifiedBy }: KeepableRequest,
  removed: string[],
  { isProof, senders }: { readonly isProof: IsProof; readonly senders: SenderTable },
): [string, string][] {
  const findSource = (list: readonly (readonly [string, string])[]) =>
    senders.recognise({ headers: Object.fromEntries(list) })?.facts.name
  const all = Object.entries(headers).filter(([name]) => !connectionHeader.test(name))
  const bare = all.filter(([name]) => !isProof(name))
  removed.push(...all.flatMap(([name]) => (isProof(name) ? [`headers.${name}`] : [])))
  const isKnown = verifiedBy !== undefined || findSource(bare) === findSource(all)
  return isKnown ? bare : all.map(([name, value]) => [name, isProof(name) ? removedMark : value])
}

/** A line such as `X-Api-Key: …` in a text, also quoted as in a command or in JSON. The value ends with its line or quote. */
const headerLine =
  /(?<![\w-])([A-Za-z][\w-]{2,60})([*"'`\\]{0,3}[ \t]{0,4}:[ \t]{0,4}[*"'`\\]{0,3}(?:(?:Bearer|Basic|Token|Digest) {1,4})?)([^\s*"'`\\][^\r\n"'`\\]*)/gi

/** Whether a header has a proof or a secret. */
type IsProof = (name: string) => boolean

function redactHeaderLines(text: string, isProof: IsProof): string {
  return text.replace(headerLine, (line: string, name: string, between: string, value: string) =>
    isHeaderOfProof(name.toLowerCase(), value, isProof) ? `${name}${between}${removedMark}` : line,
  )
}

/** A name of one word also begins sentences, so its value must have a digit or a "=". */
function isHeaderOfProof(name: string, value: string, isProof: IsProof): boolean {
  return name.includes('-') ? isProof(name) : /^(?:authorization|cookie)$/.test(name) && /[\d=]/.test(value)
}

/** Whether a value is a secret, by its key. A number under a plural key, such as a count of tokens, is no secret. */
function isSecret(key: string, value: SentValue): boolean {
  if (value === null || typeof value === 'boolean' || value === '') return false
  const named = classifySecretName(key)
  return named === 'yes' || (named === 'plural' && !isNumber(value))
}
