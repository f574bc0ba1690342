// Headers of requests to GitHub's REST API, and the reasons of its refusals.
// https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
import { z } from 'zod'
import { readRateLimitMs } from '../../../base/http.ts'
import { createFailureReader } from './http.ts'

export function toGitHubHeaders(token: string): Readonly<Record<string, string>> {
  return {
    authorization: `Bearer ${token}`,
    accept: 'application/vnd.github+json',
    'x-github-api-version': '2022-11-28',
  }
}

const ErrorAnswer = z.object({ message: z.string() })

const hints = new Map([
  [401, 'GitHub does not accept the credential. Check channels.github: its token, or appId and privateKey.'],
  [
    403,
    'The credential may not write there. Give it the permissions Issues, Pull requests and Commit statuses (write). The conversation may also be locked.',
  ],
  [404, 'It does not exist, or the credential may not see it. Check "to", and install the App in the repository.'],
  [410, 'Issues are turned off in the repository. Turn them on in its settings.'],
  [422, 'GitHub rejects the comment or the status. Check that the commit is in the repository.'],
])

/** GitHub answers 403 or 429 at a limit. A header says when the primary limit ends. At a secondary limit this header may be missing. */
export const readGitHubFailure = createFailureReader({
  provider: 'GitHub',
  schema: ErrorAnswer,
  explain({ status, headers, body }) {
    const date = Date.parse(headers.get('date') ?? '')
    const now = Number.isNaN(date) ? Date.now() : date
    const isLimit = status === 403 || status === 429
    const waitMs = isLimit ? readRateLimitMs({ status, headers, text: body?.message ?? '', now }) : undefined
    if (waitMs !== undefined) return { kind: 'rate-limited', retryAfterMs: waitMs, hint: 'Its rate limit is used up.' }
    return { hint: hints.get(status) }
  },
})
