// What signal-cli's errors mean: first what became of the recipient, then the code of the call. Nothing here quotes its sentences.
import { z } from 'zod'
import { toWait } from '../../base/http.ts'
import { type Failed, toFailure } from './failure.ts'
import { type HttpOutcome, readAccepted } from './http.ts'
import type { ErrorMeaning } from './error-codes.ts'

const provider = 'signal-cli'

const RecipientResult = z.object({ type: z.string(), retryAfterSeconds: z.number().nonnegative().nullish() })
/** With status 200. */
const Refused = z.object({
  error: z.object({
    code: z.number(),
    data: z
      .object({ response: z.object({ results: z.array(RecipientResult) }) })
      .optional()
      .catch(undefined),
  }),
})

const pause: ErrorMeaning = {
  kind: 'rate-limited',
  hint: 'Signal asks for a pause. signal-cli submitRateLimitChallenge ends it at once.',
}
const untrusted: ErrorMeaning = {
  kind: 'permanent',
  hint: 'The safety number of the recipient has changed. Compare it, then run signal-cli trust.',
}
/** One that broke while the message was going out is told as this, too. */
const disconnected: ErrorMeaning = { kind: 'ambiguous', hint: 'The connection to Signal failed.' }

const recipientErrors = new Map<string, ErrorMeaning>([
  ['RATE_LIMIT_FAILURE', pause],
  ['IDENTITY_FAILURE', untrusted],
  ['NETWORK_FAILURE', disconnected],
  [
    'UNREGISTERED_FAILURE',
    { kind: 'permanent', hint: 'The recipient is not registered with Signal. Check the number.' },
  ],
  ['INVALID_PRE_KEY_FAILURE', { kind: 'permanent', hint: 'The keys of the recipient are not valid.' }],
])

const callErrors = new Map<number, ErrorMeaning>([
  [
    -1,
    {
      kind: 'permanent',
      hint: 'It does not know the recipient, or may not write to the group. Check "to", and that the account is a member.',
    },
  ],
  [-3, disconnected],
  [-4, untrusted],
  [-5, pause],
  [-32_600, { kind: 'permanent', hint: 'It did not understand the request. It may be too old: update it.' }],
  [-32_601, { kind: 'permanent', hint: 'It does not know the method. It may be too old: update it.' }],
  [-32_602, { kind: 'permanent', hint: 'It has no such account. Set channels.signal.account to one of its accounts.' }],
])

const unexpected: ErrorMeaning = { kind: 'ambiguous', hint: 'Its own log says more.' }

export function toSignalFailure(outcome: HttpOutcome): Failed {
  const refused = readAccepted(outcome, Refused)
  if (refused === undefined) return toFailure(outcome, { provider })
  const { code, data } = refused.error
  const result = data?.response.results.find(({ type }) => recipientErrors.has(type))
  const { kind, hint } =
    (result === undefined ? undefined : recipientErrors.get(result.type)) ?? callErrors.get(code) ?? unexpected
  const detail = `${provider} answered with the error ${code}. ${hint}`
  if (kind !== 'rate-limited') return { kind, detail }
  const seconds = result?.retryAfterSeconds ?? undefined
  return { kind, detail, ...toWait(seconds === undefined ? undefined : seconds * 1_000) }
}
