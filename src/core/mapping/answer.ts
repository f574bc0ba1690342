// The answer to a sender.
import type { Problem } from '../model/problem.ts'

export type Answer = {
  readonly status: number
  /** The media type of the answer that a mapping or a transform set. It is stored with the body. */
  readonly contentType?: string | undefined
  /** The body: JSON text, unless the headers have a content type; undefined if the status has no body. */
  readonly body: string | undefined
  readonly headers?: Readonly<Record<string, string>>
}

/** The refusals after which the connection is closed, so that a client cannot guess again and again on an open connection. */
const closingStatuses: ReadonlySet<number> = new Set([401, 403, 429])

/** `development`: the answer also has the code frame of the problem. */
export function toRefusalAnswer(problem: Problem, development = false): Answer {
  const { status } = problem
  const frame = development && problem.frame !== undefined ? { frame: problem.frame } : {}
  return {
    status,
    body: JSON.stringify({ ok: false, error: problem.message, code: problem.code, ...frame }),
    headers: {
      ...(closingStatuses.has(status) ? { connection: 'close' } : {}),
      ...(problem.code === 'method-not-allowed' ? { allow: problem.allow ?? 'POST' } : {}),
      ...(problem.retryAfterSeconds === undefined ? {} : { 'retry-after': String(problem.retryAfterSeconds) }),
    },
  }
}
