// One request to the API of a sender: it is authorised, goes only to the configured origin, and is limited in time and size. Waits if the API asks
// for it, and tries again after a temporary failure.
import { abortAfter } from '../../../base/time.ts'
import type { z } from 'zod'
import { readLimitedBody, readRateLimitMs } from '../../../base/http.ts'
import { tryParseJson } from '../../../base/json.ts'
import { toBackoffMs } from '../../../base/retry.ts'
import { type ApiAnswer, type ApiCall, ApiDenial, type ApiAccess, type ApiRequest } from '../../../model/outbox.ts'
import { Problem } from '../../../core/model/problem.ts'

export type ApiTools = {
  readonly clock: () => number
  /** Rejects when the signal is aborted. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>
  readonly signal: AbortSignal
  /** Called before a long wait that the API asked for. */
  readonly onWait: (host: string, ms: number) => void
}

const timeoutMs = 30_000
/** The maximum size of an answer: a page of 100 events of Stripe. */
const maxBytes = 64 * 1024 * 1024
const tries = 4
const minSkewMs = 30_000
const maxLimits = 20
const backoff = { firstMs: 1_000, capMs: 10_000 }
/** The longest wait for an API: GitHub resets its limit every hour. */
const maxWaitMs = 3_900_000
const reportedWaitMs = 10_000

export function createApiCall({ baseUrl, authorize }: ApiAccess, tools: ApiTools): ApiCall {
  const { clock, pause, signal, onWait } = tools
  const { host } = new URL(baseUrl)
  /** The time until which the API takes no further request. */
  let blockedUntil = 0
  /** The time by which the clock of the API is ahead. A signed token has a time, which the API checks with its own clock. */
  let aheadMs = 0

  async function waitForTurn(): Promise<void> {
    const ms = Math.min(maxWaitMs, blockedUntil - clock())
    if (ms <= 0) return
    if (ms >= reportedWaitMs) onWait(host, ms)
    await pause(ms, signal)
  }

  return async function call(request) {
    let limits = 0
    for (let failures = 0; ;) {
      await waitForTurn()
      const answer = await sendOnce(request)
      signal.throwIfAborted()
      if (answer === 'too large') throw toSizeProblem(host)
      if (answer instanceof Error) {
        failures += 1
        if (failures >= tries) throw toConnectionProblem(host, answer)
        await pause(toBackoffMs(failures - 1, backoff), signal)
        continue
      }
      const learntMs = Math.abs(answer.now - clock() - aheadMs)
      aheadMs = answer.now - clock()
      // perhaps refused because of the clock of this machine: the request is signed again with the time of the API
      if (answer.status === 401 && learntMs > minSkewMs && failures === 0) {
        failures += 1
        continue
      }
      const limitMs = readRateLimitMs(answer)
      if (limitMs !== undefined) blockedUntil = clock() + limitMs
      if (isSuccessOf(answer, request)) return answer
      // a limit does not count as a failure: after it, the same request succeeds
      if (isLimited(answer) && limitMs !== undefined && limits < maxLimits) {
        limits += 1
        continue
      }
      failures += 1
      if (answer.status < 500 && answer.status !== 429 && answer.status !== 408) throw toRefusalProblem(host, answer)
      if (failures >= tries) throw toRefusalProblem(host, answer)
      await pause(toBackoffMs(failures - 1, backoff), signal)
    }
  }

  async function sendOnce({ method = 'GET', path, body }: ApiRequest): Promise<ApiAnswer | Error | 'too large'> {
    const isForm = body instanceof URLSearchParams
    const credential = await authorize(clock() + aheadMs)
    try {
      const response = await fetch(`${baseUrl}${path}`, {
        method,
        headers: {
          accept: 'application/json',
          'user-agent': 'hookloom',
          ...(body === undefined || isForm ? {} : { 'content-type': 'application/json' }),
          ...credential,
        },
        // a redirect could take the credential to another host
        redirect: 'manual',
        signal: abortAfter(timeoutMs, signal),
        ...(body === undefined ? {} : { body: isForm ? body : JSON.stringify(body) }),
      })
      const text = await readLimitedBody(response.body, maxBytes)
      if (text === undefined) return 'too large'
      const date = Date.parse(response.headers.get('date') ?? '')
      const { status, headers } = response
      return { status, headers, text, now: Number.isNaN(date) ? clock() : date }
    } catch (error) {
      return error instanceof Error ? error : new Error('the request failed')
    }
  }
}

function isSuccessOf({ status }: ApiAnswer, { allow = [] }: ApiRequest): boolean {
  return (status >= 200 && status < 300) || allow.includes(status)
}

/** Whether the status may mean that a limit is reached. GitHub answers 403 or 429: https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api */
function isLimited({ status }: ApiAnswer): boolean {
  return status === 429 || status === 403 || status === 503
}

function toConnectionProblem(host: string, cause: Error): Problem {
  const code = cause.cause instanceof Error && 'code' in cause.cause ? ` (${String(cause.cause.code)})` : ''
  return new Problem('recover-unavailable', `${host} does not answer${code}. It is asked again.`, { cause })
}

function toSizeProblem(host: string): Problem {
  return new Problem(
    'recover-unavailable',
    `The answer of ${host} is over ${maxBytes / 1024 / 1024} MiB, so it was not read.`,
  )
}

/** The problem of a refusal. It does not quote the body, because the body may have data of customers. */
function toRefusalProblem(host: string, { status }: ApiAnswer): Problem {
  const moves: Readonly<Record<number, string>> = {
    401: 'The credential in recover has expired, was revoked, or is wrong. Make a new one, and put it into .env in place of the old one.',
    403: 'The credential in recover has no permission for this webhook. The page "Recover" names the permissions.',
    404: 'It has no such webhook, or the credential may not see it. Check which webhook "recover" names, and what it belongs to.',
  }
  const isRedirect = status >= 300 && status < 400
  const move = isRedirect ? 'It redirects to another address. Set recover.baseUrl to that one.' : moves[status]
  if (move !== undefined) return new ApiDenial(`${host} answers ${status}. ${move}`)
  return new Problem('recover-unavailable', `${host} answers ${status}. It is asked again.`)
}

/** Parses an answer by its schema. Throws `recover-unavailable` if it does not match. */
export function parseApiAnswer<T>(schema: z.ZodType<T>, answer: Pick<ApiAnswer, 'text'>, name: string): T {
  const parsed = schema.safeParse(tryParseJson(answer.text))
  if (parsed.success) return parsed.data
  const where = parsed.error.issues[0]?.path.join('.') || 'form'
  throw new Problem('recover-unavailable', `The answer of ${name} has no valid ${where}.`)
}
