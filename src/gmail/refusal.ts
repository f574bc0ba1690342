// What Google refuses, as a sentence with the next move. Only words of Google's own vocabulary are shown.
import { Problem } from '../model/problem.ts'
import type { Credentials } from './credentials.ts'
import { type GoogleAnswer, type GoogleRequest, toReasons } from './answer.ts'

const keyMove = 'A new key goes into the file of hooks.gmail.serviceAccountKey.'
const delegationMove =
  'The service account has no domain-wide delegation for this scope: add its client id and the scope in the Google Workspace Admin console.'

/** `kind`: what Google was shown. A person consents again; of a service account, somebody has to mend the key or its rights. */
export function toRefusal(
  { method, url }: Pick<GoogleRequest, 'method' | 'url'>,
  { status, body }: GoogleAnswer,
  kind: Credentials['kind'],
): Problem {
  const { host, pathname } = new URL(url)
  const reasons = toReasons(body)
  const has = (...words: string[]) => words.some((word) => reasons.includes(word))
  const what = `${method} ${host}${pathname}: Google answered ${status}${reasons[0] === undefined ? '' : ` (${reasons[0]})`}.`
  const isAccount = kind === 'service-account'
  if (has('invalid_grant')) {
    return new Problem(
      'gmail-consent-missing',
      isAccount
        ? `reauth-required: Google does not take the key of the service account. Check that the key and the account exist, that the mailbox is of their domain, and the clock of this machine. ${keyMove}`
        : 'reauth-required: Google no longer takes the consent; it was revoked or has expired. Run "hookloom gmail auth".',
    )
  }
  if (has('invalid_client', 'unauthorized_client')) {
    return new Problem(
      'gmail-consent-missing',
      isAccount
        ? `reauth-required: ${what} ${delegationMove}`
        : `reauth-required: ${what} The OAuth client is not known. Download it again, and run "hookloom gmail auth --credentials <file>".`,
    )
  }
  if (has('insufficientPermissions', 'ACCESS_TOKEN_SCOPE_INSUFFICIENT')) {
    return new Problem(
      'gmail-unavailable',
      `${what} ${isAccount ? delegationMove : 'The consent does not reach this far: run "hookloom gmail auth" again.'}`,
    )
  }
  if (has('accessNotConfigured', 'SERVICE_DISABLED')) {
    const library = `https://console.cloud.google.com/apis/library/${host}`
    return new Problem('gmail-unavailable', `${what} Turn this API on for the project: ${library}`)
  }
  if (status === 401) {
    return new Problem(
      'gmail-consent-missing',
      `reauth-required: ${what} ${isAccount ? keyMove : 'Run "hookloom gmail auth".'}`,
    )
  }
  const next = status === 403 ? ` The ${isAccount ? 'service' : 'signed-in'} account lacks a right on it.` : ''
  return new Problem('gmail-unavailable', `${what}${next}`)
}
