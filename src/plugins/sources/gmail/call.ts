// One request to a Google API, limited in time and size. A failure that may pass is retried after the wait that Google asks for, at most a
// minute. Of Google's answer, a message for the operator quotes only error codes.
import {
  abortAfter,
  Problem,
  readLimitedBody,
  readRetryAfterMs,
  type Sleep,
  toBackoffMs,
  type TokenCache,
  tryParseJson,
} from '../shared/kit.ts'
import type { Credentials } from './credentials.ts'

export type GoogleCall = (request: GoogleRequest) => Promise<GoogleAnswer>

/** `kind`: the kind of credentials that the tokens come from. */
export type AccessTokens = TokenCache & { readonly kind: Credentials['kind'] }

export type CallTools = { readonly pause: Sleep; readonly random: () => number; readonly signal: AbortSignal }

/** The time limit of a request. It is longer than the long poll of a pull, which Google ends after about 90 s. */
const timeoutMs = 120_000
const maxBytes = 32 * 1024 * 1024
/** The maximum number of tries of one call. The retry with a fresh token may be one more. */
const tries = 5
const maxWaitMs = 60_000
const backoff = { firstMs: 1_000, capMs: maxWaitMs }
const throttles = new Set(['rateLimitExceeded', 'userRateLimitExceeded', 'RATE_LIMIT_EXCEEDED', 'RESOURCE_EXHAUSTED'])

/** Without `tokens`, requests are not authorised. A call throws `gmail-unavailable` or `gmail-consent-missing`, or is aborted by the signal. */
export function createCall({ tokens, pause, random, signal }: CallTools & { tokens?: AccessTokens }): GoogleCall {
  return async function call(request) {
    let hasRenewed = false
    for (let attempt = 1; ; attempt++) {
      const access = await tokens?.get()
      const answer = await sendOnce(request, access?.token, signal)
      if (answer.kind === 'answer' && isAccepted(answer.status, request)) return answer
      if (answer.kind === 'answer' && answer.status === 401 && access !== undefined && !hasRenewed) {
        hasRenewed = true
        tokens?.drop(access.token)
        continue
      }
      if (answer.kind === 'answer' && !isTransient(answer))
        throw toGoogleProblem(request, answer, tokens?.kind ?? chooseCredentialKind(request))
      // not `===`: the refused token may have taken the last attempt
      if (attempt >= tries) {
        throw answer.kind === 'answer'
          ? toGoogleProblem(request, answer, tokens?.kind ?? chooseCredentialKind(request))
          : toNetworkProblem(request, answer.cause)
      }
      const asked = answer.kind === 'answer' ? answer.retryAfterMs : undefined
      // a random wait, so that clients that were refused together do not retry together
      await pause(Math.min(maxWaitMs, asked ?? toBackoffMs(attempt - 1, backoff) * (0.5 + random())), signal)
    }
  }
}

type CallResult =
  | (GoogleAnswer & { readonly kind: 'answer'; readonly retryAfterMs: number | undefined })
  | { readonly kind: 'unreachable'; readonly cause: unknown }

async function sendOnce(request: GoogleRequest, token: string | undefined, signal: AbortSignal): Promise<CallResult> {
  const { method, url, body } = request
  const isForm = body instanceof URLSearchParams
  try {
    const response = await fetch(url, {
      method,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined || isForm ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: isForm ? body : JSON.stringify(body) }),
      redirect: 'error',
      signal: abortAfter(timeoutMs, signal),
    })
    const retryAfterMs = readRetryAfterMs(response.headers)
    const text = await readLimitedBody(response.body, maxBytes)
    if (text === undefined) return { kind: 'answer', status: 413, body: undefined, retryAfterMs }
    return { kind: 'answer', status: response.status, body: tryParseJson(text), retryAfterMs }
  } catch (cause) {
    signal.throwIfAborted()
    return { kind: 'unreachable', cause }
  }
}

/** The kind of credentials of a request that asks for a token. Only a service account sends an assertion. */
function chooseCredentialKind({ body }: GoogleRequest): Credentials['kind'] {
  return body instanceof URLSearchParams && body.has('assertion') ? 'service-account' : 'consent'
}

function isAccepted(status: number, { allow }: GoogleRequest): boolean {
  return (status >= 200 && status < 300) || allow?.includes(status) === true
}

/** Whether a retry may succeed. Gmail answers "too many requests" with 429 or 403. */
function isTransient({ status, body }: GoogleAnswer): boolean {
  if (status === 429 || status >= 500) return true
  return status === 403 && readReasons(body).some((reason) => throttles.has(reason))
}

function toNetworkProblem({ url }: GoogleRequest, cause: unknown): Problem {
  return new Problem('gmail-unavailable', `${new URL(url).host} does not answer. The call is tried again.`, {
    cause,
  })
}

export type GoogleRequest = {
  readonly method: 'GET' | 'POST' | 'PUT'
  readonly url: string
  readonly body?: object | URLSearchParams
  /** The statuses besides 2xx that the caller handles. */
  readonly allow?: readonly number[]
}
export type GoogleAnswer = { readonly status: number; readonly body: unknown }

/** Reads the reasons in an answer of the token endpoint or of any Google API, in its old or new format. */
function readReasons(body: unknown): string[] {
  const error = readKey(body, 'error')
  const listed = [readKey(error, 'errors'), readKey(error, 'details')].flat().map((entry) => readKey(entry, 'reason'))
  // a reason is a word; anything else may quote the request
  return [error, ...listed, readKey(error, 'status')].filter(
    (reason): reason is string => typeof reason === 'string' && /^[\w.-]{1,60}$/.test(reason),
  )
}

function readKey(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined
}

const keyAdvice = 'Put a new key into the file of hooks.gmail.serviceAccountKey.'
const delegationAdvice =
  'The service account has no domain-wide delegation for this scope: add its client id and the scope in the Google Workspace Admin console.'

/** `kind`: the kind of credentials. For a consent, the advice is to consent again; for a service account, to fix its key or its rights. */
export function toGoogleProblem(
  { method, url }: Pick<GoogleRequest, 'method' | 'url'>,
  { status, body }: GoogleAnswer,
  kind: Credentials['kind'],
): Problem {
  const { host, pathname } = new URL(url)
  const reasons = readReasons(body)
  const has = (...words: string[]) => words.some((word) => reasons.includes(word))
  const what = `${method} ${host}${pathname}: Google answered ${status}${reasons[0] === undefined ? '' : ` (${reasons[0]})`}.`
  const isAccount = kind === 'service-account'
  if (has('invalid_grant')) {
    return new Problem(
      'gmail-consent-missing',
      isAccount
        ? `reauth-required: Google does not accept the key of the service account. Check that the key and the account exist, that the mailbox is of their domain, and the clock of this machine. ${keyAdvice}`
        : 'reauth-required: Google no longer accepts the consent; it was revoked or has expired. Run "hookloom gmail auth".',
    )
  }
  if (has('invalid_client', 'unauthorized_client')) {
    return new Problem(
      'gmail-consent-missing',
      isAccount
        ? `reauth-required: ${what} ${delegationAdvice}`
        : `reauth-required: ${what} The OAuth client is unknown. Download it again, and run "hookloom gmail auth --credentials <file>".`,
    )
  }
  if (has('insufficientPermissions', 'ACCESS_TOKEN_SCOPE_INSUFFICIENT')) {
    return new Problem(
      'gmail-unavailable',
      `${what} ${isAccount ? delegationAdvice : 'The consent does not include this scope: run "hookloom gmail auth" again.'}`,
    )
  }
  if (has('accessNotConfigured', 'SERVICE_DISABLED')) {
    const library = `https://console.cloud.google.com/apis/library/${host}`
    return new Problem('gmail-unavailable', `${what} Enable this API for the project: ${library}`)
  }
  if (status === 401) {
    return new Problem(
      'gmail-consent-missing',
      `reauth-required: ${what} ${isAccount ? keyAdvice : 'Run "hookloom gmail auth".'}`,
    )
  }
  const next = status === 403 ? ` The ${isAccount ? 'service' : 'signed-in'} account has no permission for it.` : ''
  return new Problem('gmail-unavailable', `${what}${next}`)
}
