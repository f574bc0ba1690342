// Starts a turn at a service that performs it on its own: one POST, whose answer says only that the turn was accepted.
import {
  abortAfter,
  isJsonObject,
  type JsonObject,
  permanentFailure,
  readLimitedBody,
  readRetryAfterMs,
  retryableFailure,
  type RunFailure,
  toRetryWait,
  tryParseJson,
  unavailableFailure,
} from './kit.ts'
import { toNetworkFailure } from './network-failure.ts'
import type { RunnerHost } from '../../../define.ts'

/** The maximum number of bytes of an answer, which is an id and a URL, or a sentence. */
const maxAnswerBytes = 65_536

export type ServiceCall = {
  /** Who performs the turn, for people: `The workspace agent (runners.gpt)`. */
  readonly who: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Undefined: a GET. */
  readonly body?: JsonObject
  readonly timeoutMs: number
  readonly maxBytes?: number
  /** The advice if there was no answer in time. */
  readonly ifLate?: string
  /** The advice if the service cannot be reached. */
  readonly ifUnreachable?: string
}

type Refusable = Pick<ServiceCall, 'who'> & {
  /** The advice after a refusal, by status. */
  readonly remedies: Readonly<Record<number, string>>
  /** Further statuses of a service that did not accept the turn, and may accept it later. */
  readonly waitsFor: readonly number[]
}

type Start = ServiceCall &
  Refusable & {
    /** The status of an accepted turn. */
    readonly accepted: number
  }

/** `body`: undefined if it is too long, or no JSON object. */
export type ServiceAnswer = {
  readonly status: 'answered'
  readonly code: number
  readonly headers: Headers
  readonly body: JsonObject | undefined
}
/** The JSON object in the answer; none if it has no such body. */
type Accepted = { readonly status: 'accepted'; readonly body: JsonObject }

type Line = { readonly fetch: RunnerHost['fetch']; readonly signal: AbortSignal }

/** No failure quotes the answer, because services repeat in it what they were sent. */
export async function startElsewhere(start: Start, line: Line): Promise<Accepted | RunFailure> {
  const answer = await callElsewhere({ ifLate: 'Raise timeoutMs, if this continues.', ...start }, line)
  if (answer.status !== 'answered') return answer
  return answer.code === start.accepted ? { status: 'accepted', body: answer.body ?? {} } : toRefusal(start, answer)
}

/** One request, and its answer; a failure if there was none. */
export async function callElsewhere(call: ServiceCall, { fetch, signal }: Line): Promise<ServiceAnswer | RunFailure> {
  const { url, headers, body, timeoutMs, maxBytes = maxAnswerBytes } = call
  try {
    const response = await fetch(url, {
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
      headers: { ...(body && { 'content-type': 'application/json' }), ...headers },
      // a redirect would send the token to another place, or drop the body
      redirect: 'manual',
      signal: abortAfter(timeoutMs, signal),
    })
    const answer = tryParseJson((await readLimitedBody(response.body, maxBytes)) ?? '')
    return {
      status: 'answered',
      code: response.status,
      headers: response.headers,
      body: isJsonObject(answer) ? answer : undefined,
    }
  } catch (thrown) {
    return toNetworkFailure(thrown, { ifLate: '', ...call, isStopped: signal.aborted })
  }
}

/** The failure of a call that was refused, or answered as its documentation does not describe. */
export function toRefusal(
  { who, remedies, waitsFor }: Refusable,
  { code: status, headers, body }: ServiceAnswer,
): RunFailure {
  const type = isJsonObject(body?.['error']) ? body['error']['type'] : undefined
  const kind = typeof type === 'string' && /^[a-z_]{1,40}$/.test(type) ? `, ${type}` : ''
  const answered = `${who} answered ${status}${kind}`
  const wait = toRetryWait(readRetryAfterMs(headers))
  const remedy = remedies[status]
  if (status === 429 || status === 503 || waitsFor.includes(status))
    return unavailableFailure(`${answered}. The run waits. ${remedy ?? ''}`.trimEnd(), wait)
  if (status >= 500 || status === 408) return retryableFailure(`${answered}.`, wait)
  if (status >= 200 && status < 400)
    return permanentFailure(`${answered}, which its documentation does not describe. Check its URL.`)
  const detail = `${answered}. ${remedy ?? 'Check its section.'}`
  return status === 413 ? { status: 'too-long', detail } : permanentFailure(detail)
}

/** A link in an answer, for people. Empty if it is none. */
export function toLink(value: unknown): string {
  const isLink = typeof value === 'string' && value.length <= 300 && /^https:\/\/[\w.-]+\/[\w./-]*$/.test(value)
  return isLink ? ` ${value}` : ''
}
