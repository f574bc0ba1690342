// What Google refuses, as a sentence with the next move. Only words of Google's own vocabulary are shown.
import { Problem } from '../model/problem.ts'
import { type GoogleAnswer, type GoogleRequest, toReasons } from './answer.ts'

export function toRefusal(
  { method, url }: Pick<GoogleRequest, 'method' | 'url'>,
  { status, body }: GoogleAnswer,
): Problem {
  const { host, pathname } = new URL(url)
  const reasons = toReasons(body)
  const has = (...words: string[]) => words.some((word) => reasons.includes(word))
  const what = `${method} ${host}${pathname}: Google answered ${status}${reasons[0] === undefined ? '' : ` (${reasons[0]})`}.`
  if (has('invalid_grant')) {
    return new Problem(
      'gmail-consent-missing',
      'reauth-required: Google no longer takes the consent; it was revoked or has expired. Run "hookloom gmail auth".',
    )
  }
  if (has('invalid_client', 'unauthorized_client')) {
    return new Problem(
      'gmail-consent-missing',
      `${what} The OAuth client is not known, or the service account has no domain-wide delegation for this scope.`,
    )
  }
  if (has('insufficientPermissions', 'ACCESS_TOKEN_SCOPE_INSUFFICIENT')) {
    return new Problem(
      'gmail-unavailable',
      `${what} The consent does not reach this far: run "hookloom gmail auth" again.`,
    )
  }
  if (has('accessNotConfigured', 'SERVICE_DISABLED')) {
    const library = `https://console.cloud.google.com/apis/library/${host}`
    return new Problem('gmail-unavailable', `${what} Turn this API on for the project: ${library}`)
  }
  if (status === 401) {
    return new Problem('gmail-consent-missing', `reauth-required: ${what} Run "hookloom gmail auth".`)
  }
  const next = status === 403 ? ' The signed-in account lacks a right on it.' : ''
  return new Problem('gmail-unavailable', `${what}${next}`)
}
