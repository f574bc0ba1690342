// What an outcome without a message id means, once for all channels. Nothing here quotes an answer: it may hold the text.
import type { SendResult } from '../../model/channel.ts'
import { toRetryAfterMs, toWait } from '../../base/http.ts'
import type { HttpOutcome } from './http.ts'
import { cut, toPrintableLine } from '../../base/text.ts'

export type Failed = Exclude<SendResult, { kind: 'sent' }>

export type FailureContext = {
  /** As people call it: `Telegram`. */
  readonly provider: string
  /** The provider's own name for what went wrong, as `toCode` gave it. */
  readonly code?: string | undefined
  /** The next move, as a sentence. */
  readonly hint?: string | undefined
  /** Where the provider says it in its body; else the header counts. */
  readonly retryAfterMs?: number | undefined
}

/**
 * Besides 429: the request was not read to its end (408), was not begun (425, 503), or never got from the provider's edge
 * to its servers (Cloudflare's 521, 523, 525, 526). Other 5xx may come after the message was taken.
 */
const surelyRefused = new Set([408, 425, 503, 521, 523, 525, 526])

export function toFailure(outcome: HttpOutcome, { provider, code, hint, retryAfterMs }: FailureContext): Failed {
  if (outcome.kind !== 'answer') {
    return outcome.kind === 'unsent'
      ? {
          kind: 'transient',
          detail: `${provider} was not reached: ${outcome.detail}. Check baseUrl and the network of this machine.`,
        }
      : { kind: 'ambiguous', detail: `${provider}: ${outcome.detail}.` }
  }
  const { status, headers } = outcome
  const wait = toWait(retryAfterMs ?? toRetryAfterMs(headers))
  const detail = `${provider} answered ${status}${code === undefined ? '' : ` (${code})`}.${hint === undefined ? '' : ` ${hint}`}`
  if (status === 429) return { kind: 'rate-limited', detail, ...wait }
  if (surelyRefused.has(status)) return { kind: 'transient', detail, ...wait }
  if (status >= 500) return { kind: 'ambiguous', detail }
  if (status >= 400) return { kind: 'permanent', detail }
  if (status >= 300) {
    return {
      kind: 'permanent',
      detail: `${provider} answered ${status}, a redirect, which is not followed. Set baseUrl to the final address.`,
    }
  }
  if (code !== undefined) return { kind: 'ambiguous', detail }
  return { kind: 'ambiguous', detail: `${provider} answered ${status}, but not as documented. Check baseUrl.` }
}

/** An error code fit for a detail: a number or one short word. Anything else could be the message. */
export function toCode(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value)
  return typeof value === 'string' && /^[\w.-]{1,80}$/.test(value) ? value : undefined
}

export type ErrorMeaning = {
  readonly kind: Failed['kind']
  /** What it means and the next move, as sentences. */
  readonly hint: string
  readonly retryAfterMs?: number
}

/** The failure by its meaning; by its status where there is none. */
export function toCodedFailure(
  outcome: HttpOutcome,
  { meaning, ...context }: Pick<FailureContext, 'provider' | 'code'> & { meaning: ErrorMeaning | undefined },
): Failed {
  const failed = toFailure(outcome, { ...context, hint: meaning?.hint })
  if (meaning === undefined || outcome.kind !== 'answer') return failed
  const { kind, retryAfterMs = toRetryAfterMs(outcome.headers) } = meaning
  const { detail } = failed
  return kind === 'rate-limited' || kind === 'transient' ? { kind, detail, ...toWait(retryAfterMs) } : { kind, detail }
}

/** The failure of a request that could not have posted anything: an unknown fate does no harm there. */
export function toFailureBeforePost(failed: Failed): Failed {
  return failed.kind === 'ambiguous' ? { kind: 'transient', detail: failed.detail } : failed
}

/** `expected` names the forms that there are. What came may be outside text: it is shown folded and cut. */
export function refuseRecipient(channel: string, to: string | undefined, expected: string): string {
  if (to === undefined) {
    return `No recipient on ${channel}: set channels.${channel}.to, or "to" of the mapping or the request, to ${expected}.`
  }
  return `"${cut(toPrintableLine(to), 80)}" is no recipient on ${channel}: expected ${expected}.`
}
