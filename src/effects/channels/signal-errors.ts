// What signal-cli's errors mean: first what became of the recipient, then the code of the call. Nothing here quotes its sentences.
import { z } from 'zod'
import { toWait } from '../../base/http.ts'
import { type Failed, toFailure } from './failure.ts'
import { type HttpOutcome, readAccepted } from './http.ts'
import type { Ruling } from './ruling.ts'

const provider = 'signal-cli'

const Fate = z.object({ type: z.string(), retryAfterSeconds: z.number().nonnegative().nullish() })
/** With status 200. */
const Refused = z.object({
  error: z.object({
    code: z.number(),
    data: z
      .object({ response: z.object({ results: z.array(Fate) }) })
      .optional()
      .catch(undefined),
  }),
})

const pause: Ruling = {
  kind: 'rate-limited',
  hint: 'Signal asks for a pause. signal-cli submitRateLimitChallenge ends it at once.',
}
const untrusted: Ruling = {
  kind: 'permanent',
  hint: 'The safety number of the recipient has changed. Compare it, then run signal-cli trust.',
}
/** One that broke while the message was going out is told as this, too. */
const disconnected: Ruling = { kind: 'ambiguous', hint: 'The connection to Signal failed.' }

const fates = new Map<string, Ruling>([
  ['RATE_LIMIT_FAILURE', pause],
  ['IDENTITY_FAILURE', untrusted],
  ['NETWORK_FAILURE', disconnected],
  [
    'UNREGISTERED_FAILURE',
    { kind: 'permanent', hint: 'The recipient is not registered with Signal. Check the number.' },
  ],
  ['INVALID_PRE_KEY_FAILURE', { kind: 'permanent', hint: 'The keys of the recipient are not valid.' }],
])

const codes = new Map<number, Ruling>([
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

const unexpected: Ruling = { kind: 'ambiguous', hint: 'Its own log says more.' }

export function toSignalFailure(outcome: HttpOutcome): Failed {
  const refused = readAccepted(outcome, Refused)
  if (refused === undefined) return toFailure(outcome, { provider })
  const { code, data } = refused.error
  const fate = data?.response.results.find(({ type }) => fates.has(type))
  const { kind, hint } = (fate === undefined ? undefined : fates.get(fate.type)) ?? codes.get(code) ?? unexpected
  const detail = `${provider} answered with the error ${code}. ${hint}`
  if (kind !== 'rate-limited') return { kind, detail }
  const seconds = fate?.retryAfterSeconds ?? undefined
  return { kind, detail, ...toWait(seconds === undefined ? undefined : seconds * 1_000) }
}
