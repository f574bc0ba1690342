// Why OpenClaw did not take a run, as a sentence that says what to change, and whether another try may help.
import type { OpenClawRunnerConfig } from '../../model/agents-config.ts'
import type { JsonObject } from '../../base/json.ts'
import { cut, toPrintableLine } from '../../base/text.ts'
import { toRetryAfterMs, toWait } from '../../base/http.ts'
import { toErrorCode } from '../exceptions.ts'
import { type Failed, retryable, permanent } from './failed.ts'

export type Answered = {
  readonly status: number
  readonly headers: Headers
  /** Undefined: it was no JSON object. */
  readonly body: JsonObject | undefined
}

const maxWords = 300

/** What to change at a status that another try will not mend. */
const remedies: Readonly<Record<number, string>> = {
  400: 'Change what the mapping or the request asks for, or what OpenClaw allows.',
  401: 'Set its token to the hook token of OpenClaw (hooks.token there).',
  403: 'Check what stands before OpenClaw: it does not let this gateway through.',
  404: 'Set its baseUrl to the gateway with its hooks path, and hooks.enabled to true in OpenClaw.',
  405: 'Set its baseUrl to the gateway with its hooks path.',
  409: 'Another configuration or another session took its place meanwhile. Retry the job by hand when OpenClaw is settled.',
  413: 'The prompt is longer than OpenClaw takes. Shorten the message of the mapping.',
}

export function toRefused(id: string, { token }: OpenClawRunnerConfig, { status, headers, body }: Answered): Failed {
  const said = typeof body?.['error'] === 'string' ? body['error'].replaceAll(token, '[hidden]') : ''
  const words = said === '' ? '' : `: ${cut(toPrintableLine(said), maxWords)}`
  const answered = `OpenClaw (runners.${id}) answered ${status}${words}`
  return { ...toFailed(id, answered, { status, headers }), quotes: words !== '' }
}

function toFailed(id: string, answered: string, { status, headers }: Pick<Answered, 'status' | 'headers'>): Failed {
  const wait = toWait(toRetryAfterMs(headers))
  if (status === 429) return { status: 'rate-limited', detail: `${answered}. The run waits for it.`, ...wait }
  if (status >= 500 || status === 408)
    return retryable(`${answered}. If it stays so, look at the log of OpenClaw.`, wait)
  if (status === 200 || status === 202) {
    return permanent(
      `${answered}, but not as OpenClaw does. Set runners.${id}.baseUrl to the gateway with its hooks path.`,
    )
  }
  if (status >= 300 && status < 400) {
    return permanent(`${answered}, a redirect. Set runners.${id}.baseUrl to where it leads.`)
  }
  const detail = `${answered}. ${remedies[status] ?? 'Check its version and its configuration.'}`
  return status === 413 ? { status: 'too-long', detail } : permanent(detail)
}

/** Nothing answered. A repeat is safe: the key makes it the same run. */
export function toUnreached(
  id: string,
  { baseUrl, timeoutMs }: OpenClawRunnerConfig,
  { thrown, isStopped }: { thrown: unknown; isStopped: boolean },
): Failed {
  const gateway = `OpenClaw at ${toOrigin(baseUrl)} (runners.${id})`
  if (isStopped) return { status: 'timeout', detail: `The run was stopped before ${gateway} had taken it.` }
  const isLate = thrown instanceof Error && thrown.name === 'TimeoutError'
  if (isLate)
    return retryable(
      `${gateway} did not answer in ${timeoutMs / 1_000} s. Look at its log, or raise runners.${id}.timeoutMs.`,
    )
  const code = toErrorCode(thrown)
  return retryable(`${gateway} cannot be reached${code === undefined ? '' : ` (${code})`}. Is it running?`)
}

/** Without what a URL may carry of a credential. */
function toOrigin(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : 'its baseUrl'
}
