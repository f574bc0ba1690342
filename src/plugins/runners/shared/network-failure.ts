// The failure of a request to a service that performs turns on its own, if there was no answer.
import { findErrorCode, retryableFailure, type RunFailure, unavailableFailure } from './kit.ts'

/** The errors of a request that certainly never arrived. Such a request may be repeated at any time, also if its key is forgotten. */
const notConnectedCodes: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])

type Unanswered = {
  /** The service, for people. */
  readonly who: string
  readonly timeoutMs: number
  readonly isStopped: boolean
  /** The advice if there was no answer in time. */
  readonly ifLate: string
  /** The advice if the service cannot be reached. */
  readonly ifUnreachable?: string
}

export function toNetworkFailure(
  thrown: unknown,
  { who, timeoutMs, isStopped, ifLate, ifUnreachable = '' }: Unanswered,
): RunFailure {
  if (isStopped) return { status: 'timeout', detail: `The run was stopped before ${who} accepted it.` }
  if (thrown instanceof Error && thrown.name === 'TimeoutError')
    return retryableFailure(`${who} did not answer in ${timeoutMs / 1_000} s. ${ifLate}`)
  const code = findErrorCode(thrown)
  const failed = code !== undefined && notConnectedCodes.has(code) ? unavailableFailure : retryableFailure
  return failed(`${who} cannot be reached${code === undefined ? '' : ` (${code})`}. ${ifUnreachable}`.trimEnd())
}
