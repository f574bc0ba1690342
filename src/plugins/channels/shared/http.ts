// Sends one HTTP request to a provider and classifies the outcome. Never repeats a request or follows a redirect. No detail quotes more of an
// answer than its error code, because an answer may contain the text of the message.
import type { z } from 'zod'
import { tryParseJson } from '../../../base/json.ts'
import { readLimitedBody, readRetryAfterMs, toRetryWait } from '../../../base/http.ts'
import type { SendResult } from '../../../model/channel.ts'
export { readRateLimitMs } from '../../../base/http.ts'
export { hopsHeader } from '../../../core/model/hops.ts'
import { cut, toPrintableLine, toWellFormed } from '../../../base/text.ts'

/** The dependencies of a channel. */
export type ChannelTools = { readonly fetch?: typeof fetch | undefined }

export type HttpRequest = {
  readonly method?: 'GET' | 'POST' | 'PUT'
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  /** A string is sent unchanged, anything else as JSON. */
  readonly body?: unknown
  readonly timeoutMs: number
  readonly signal: AbortSignal
  readonly fetch?: typeof fetch | undefined
}

/**
 * - `answer`: the provider answered; `body` is its JSON, undefined if it is not JSON.
 * - `unsent`: the request certainly never arrived.
 * - `unknown`: a timeout, a stop or a broken connection; the request may have arrived.
 *
 * A `detail` continues a sentence that begins with "Telegram: ". It has no URL, because a URL can contain a token.
 */
export type HttpOutcome =
  | {
      readonly kind: 'answer'
      readonly status: number
      readonly headers: Headers
      readonly body: unknown
    }
  | { readonly kind: 'unsent' | 'unknown'; readonly detail: string }

/** The maximum number of bytes of an answer. Slack repeats the message in its answer, twice and escaped. */
const maxAnswerBytes = 262_144

export async function sendJson(request: HttpRequest): Promise<HttpOutcome> {
  const { method = 'POST', timeoutMs, signal, fetch = globalThis.fetch } = request
  const prepared = buildRequest(request)
  if (prepared === undefined) return { kind: 'unsent', detail: 'the URL or the token has characters that HTTP forbids' }
  const timeout = AbortSignal.timeout(timeoutMs)
  const { body } = prepared
  try {
    const response = await fetch(prepared.url, {
      method,
      headers: prepared.headers,
      ...(body === undefined ? {} : { body }),
      // a credential must not follow a redirect
      redirect: 'manual',
      signal: AbortSignal.any([signal, timeout]),
    })
    return await readOutcome(response)
  } catch (thrown) {
    if (timeout.aborted) return { kind: 'unknown', detail: `no answer in ${timeoutMs / 1_000} s` }
    if (signal.aborted) return { kind: 'unknown', detail: 'stopped before the answer came' }
    const why = explainUnsent(thrown)
    if (why !== undefined) return { kind: 'unsent', detail: why }
    return { kind: 'unknown', detail: 'the connection was cut before the answer' }
  }
}

/** The body of a successful answer; undefined if it does not match the schema. */
export function readSuccess<T>(outcome: HttpOutcome, schema: z.ZodType<T>): T | undefined {
  return outcome.kind === 'answer' && isAccepted(outcome.status) ? schema.safeParse(outcome.body).data : undefined
}

/** The body of an error answer; undefined if it does not match the schema. */
export function readError<T>(outcome: HttpOutcome, schema: z.ZodType<T>): T | undefined {
  return outcome.kind === 'answer' && outcome.status >= 300 ? schema.safeParse(outcome.body).data : undefined
}

function isAccepted(status: number): boolean {
  return status >= 200 && status < 300
}

/** Builds the request. Its headers are checked before the send: the error of fetch for a bad header quotes the header, which contains the token. */
function buildRequest({ url, headers, body }: HttpRequest) {
  try {
    return {
      url: new URL(url),
      headers: new Headers({
        // an idle connection that the provider closes would make the next message ambiguous
        connection: 'close',
        'user-agent': 'hookloom',
        ...(body === undefined ? {} : { 'content-type': 'application/json; charset=utf-8' }),
        ...headers,
      }),
      body: body === undefined || typeof body === 'string' ? body : JSON.stringify(toWellFormed(body)),
    }
  } catch {
    return undefined
  }
}

async function readOutcome(response: Response): Promise<HttpOutcome> {
  const { status, headers } = response
  try {
    const text = await readLimitedBody(response.body, maxAnswerBytes)
    return { kind: 'answer', status, headers, body: text === undefined ? undefined : tryParseJson(text) }
  } catch (thrown) {
    // an error answer needs no body; a success needs one, because its body could still report a failure
    if (status < 400) throw thrown
    return { kind: 'answer', status, headers, body: undefined }
  }
}

const certificate = /^(CERT_|ERR_TLS_CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH|ERR_SSL_WRONG_VERSION)/

/** The reason why the request certainly never arrived, from the error of undici; undefined if it may have arrived. */
export function explainUnsent(thrown: unknown): string | undefined {
  const { code = '', syscall, message } = readFault(thrown instanceof Error ? thrown.cause : undefined)
  if (syscall === 'getaddrinfo') return `the name of its host could not be resolved (${code})`
  if (syscall === 'connect') return `no connection to its host (${code})`
  if (code === 'UND_ERR_CONNECT_TIMEOUT') return 'no connection to its host in time'
  if (certificate.test(code)) return `its certificate was not accepted (${code})`
  if (message === 'bad port') return 'Node’s fetch blocks this port; use another one'
  return undefined
}

type Fault = { readonly code?: string; readonly syscall?: string; readonly message?: string }

function readFault(cause: unknown): Fault {
  // a host with several addresses has one error for each; all of them are connection failures
  if (cause instanceof AggregateError) return readFault(cause.errors[0])
  // Node's errors have more fields than Error declares; each field is only compared or shown
  return cause instanceof Error ? (cause as Fault) : {}
}

export type SendFailure = Exclude<SendResult, { kind: 'sent' }>

/** No message can be sent, because no access token could be fetched. */
export type NoToken = { readonly kind: 'failed'; readonly failed: SendFailure }

/** The meaning of a provider's error. An undefined field is derived from the status and the headers. */
export type ErrorMeaning = {
  readonly kind?: SendFailure['kind'] | undefined
  /** The cause, and what the operator can do, as sentences. */
  readonly hint?: string | undefined
  readonly retryAfterMs?: number | undefined
}

type Refusal<Body> = {
  readonly status: number
  readonly headers: Headers
  /** The body, or undefined if it does not match `schema`. */
  readonly body: Body | undefined
  /** The provider's error code, if it is safe in a detail. */
  readonly code: string | undefined
}

/** How a provider refuses a request. */
type Refusals<Body> = {
  /** The name for people, such as `Telegram`. */
  readonly provider: string
  /** The part of the configuration that has the address. Default: `baseUrl`. */
  readonly address?: string
  readonly schema?: z.ZodType<Body>
  /** Whether `schema` describes the errors that the provider sends with 2xx. By default, it describes those with 300 or higher. */
  readonly refusesWith200?: boolean
  readCode?(body: Body): unknown
  explain?(refusal: Refusal<Body>): ErrorMeaning | undefined
}

type FailureReader = (outcome: HttpOutcome) => SendFailure

/**
 * Statuses for a retry, besides 429: the request was not read to its end (408), was not started (425, 503), or did not reach the servers of the
 * provider (Cloudflare's 521, 523, 525, 526). Any other 5xx may mean that the message was accepted.
 */
const notAcceptedStatuses = new Set([408, 425, 503, 521, 523, 525, 526])

/** Makes the function that reads why a provider did not accept a request. No detail quotes the answer, except for a code. */
export function createFailureReader<Body = never>(refusals: Refusals<Body>): FailureReader {
  const { provider, address = 'baseUrl', schema, refusesWith200 = false, readCode, explain } = refusals
  return (outcome) => {
    if (outcome.kind !== 'answer') {
      if (outcome.kind === 'unknown') return { kind: 'ambiguous', detail: `${provider}: ${outcome.detail}.` }
      const detail = `${provider} was not reached: ${outcome.detail}. Check ${address} and the network of this machine.`
      return { kind: 'transient', detail }
    }
    const { status, headers } = outcome
    const isRefusal = refusesWith200 ? isAccepted(status) : status >= 300
    const body = isRefusal ? schema?.safeParse(outcome.body).data : undefined
    const code = body === undefined ? undefined : toCode(readCode?.(body))
    const { kind = chooseKind(status), hint, retryAfterMs } = explain?.({ status, headers, body, code }) ?? {}
    const detail = `${provider} answered ${status}${describeAnswer(status, { address, code, hint })}`
    return kind === 'rate-limited' || kind === 'transient'
      ? { kind, detail, ...toRetryWait(retryAfterMs ?? readRetryAfterMs(headers)) }
      : { kind, detail }
  }
}

function chooseKind(status: number): SendFailure['kind'] {
  if (status === 429) return 'rate-limited'
  if (notAcceptedStatuses.has(status)) return 'transient'
  return status >= 300 && status < 500 ? 'permanent' : 'ambiguous'
}

function describeAnswer(
  status: number,
  { address, code, hint }: { address: string; code: string | undefined; hint: string | undefined },
): string {
  if (status >= 300 && status < 400) {
    return `, a redirect, which is not followed. Change ${address} to the final address.`
  }
  if (status < 300 && code === undefined) return `, but not in the documented format. Check ${address}.`
  return `${code === undefined ? '' : ` (${code})`}.${hint === undefined ? '' : ` ${hint}`}`
}

/** An error code that is safe in a detail: a number or one short word. Anything else could be the message. */
function toCode(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value)
  return typeof value === 'string' && /^[\w.-]{1,80}$/.test(value) ? value : undefined
}

/** The failure of a request that cannot post anything: it is never ambiguous. */
export function toFailureBeforePost(failed: SendFailure): SendFailure {
  return failed.kind === 'ambiguous' ? { kind: 'transient', detail: failed.detail } : failed
}

/**
 * Describes a recipient of the wrong form. `expected` names the valid forms. The recipient may come from outside, so it is shown on one line
 * and cut.
 */
export function describeWrongRecipient(channel: string, to: string | undefined, expected: string): string {
  if (to === undefined) {
    return `No recipient on ${channel}: set channels.${channel}.to, or "to" of the mapping or the request, to ${expected}.`
  }
  return `"${cut(toPrintableLine(to), 80)}" is not a recipient on ${channel}: expected ${expected}.`
}

export type DirectMessage = { readonly kind: 'open'; readonly id: string } | SendFailure

const maxCached = 1_000

/** Opens a direct message once per person and caches its id in memory; the oldest id is dropped first. A failure is not cached. */
export function createDirectMessages(
  open: (person: string, signal: AbortSignal) => Promise<DirectMessage>,
): (person: string, signal: AbortSignal) => Promise<DirectMessage> {
  const cache = new Map<string, DirectMessage>()
  return async (person, signal) => {
    const known = cache.get(person)
    if (known !== undefined) return known
    const opened = await open(person, signal)
    if (opened.kind === 'open') cache.set(person, opened)
    const [oldest] = cache.keys()
    if (cache.size > maxCached && oldest !== undefined) cache.delete(oldest)
    return opened
  }
}
