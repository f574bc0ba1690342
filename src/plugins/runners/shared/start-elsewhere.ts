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

type Start = {
  /** Who performs the turn, for people: `The workspace agent (runners.gpt)`. */
  readonly who: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: JsonObject
  readonly timeoutMs: number
  /** The status of an accepted turn. */
  readonly accepted: number
  /** The advice after a refusal, by status. */
  readonly remedies: Readonly<Record<number, string>>
  /** Further statuses of a service that did not accept the turn, and may accept it later. */
  readonly waitsFor: readonly number[]
}

/** The JSON object in the answer; none if it has no such body. */
type Accepted = { readonly status: 'accepted'; readonly body: JsonObject }

/** No failure quotes the answer, because services repeat in it what they were sent. */
export async function startElsewhere(
  start: Start,
  { fetch, signal }: { fetch: RunnerHost['fetch']; signal: AbortSignal },
): Promise<Accepted | RunFailure> {
  try {
    const response = await fetch(start.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...start.headers },
      body: JSON.stringify(start.body),
      // a redirect would send the token to another place, or drop the body
      redirect: 'manual',
      signal: abortAfter(start.timeoutMs, signal),
    })
    const answer = tryParseJson((await readLimitedBody(response.body, maxAnswerBytes)) ?? '')
    const body = isJsonObject(answer) ? answer : {}
    return response.status === start.accepted
      ? { status: 'accepted', body }
      : toRefusal(start, { status: response.status, headers: response.headers, body })
  } catch (thrown) {
    const { who, timeoutMs } = start
    return toNetworkFailure(thrown, {
      who,
      timeoutMs,
      isStopped: signal.aborted,
      ifLate: 'Raise timeoutMs, if this continues.',
    })
  }
}

function toRefusal(
  { who, remedies, waitsFor }: Start,
  { status, headers, body }: { status: number; headers: Headers; body: JsonObject },
): RunFailure {
  const type = isJsonObject(body['error']) ? body['error']['type'] : undefined
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
