// The watch of a mailbox ends by itself after seven days: it is renewed long before, and whoever looks is told when that fails.
import { leastRenewMinutes, type WatchedGmail } from '../model/gmail-config.ts'
import type { GmailApi } from './api.ts'
import { type Pause, untilDone } from './pace.ts'
import { toTopic } from './pubsub.ts'

const minute = 60_000
const day = 24 * 60 * minute
/** A timer of twelve hours sleeps through a suspended machine; one of these does not for long. */
const lookMs = leastRenewMinutes * minute
const retryMs = [minute, 5 * minute, 15 * minute]

export type RenewalParts = {
  readonly api: GmailApi
  readonly gmail: WatchedGmail
  readonly clock: () => number
  readonly pause: Pause
  readonly signal: AbortSignal
  readonly onRenewed: (expiresAt: number) => void
  readonly onFailure: (error: unknown) => void
}

/** Watches at once, and renews until the signal ends. Rejects then, or when the consent is gone. */
export async function keepWatching({ api, gmail, clock, onRenewed, ...patience }: RenewalParts): Promise<never> {
  const { pause, signal } = patience
  for (;;) {
    const { expiration } = await untilDone(() => api.watch(toTopic(gmail), gmail.labels), {
      ...patience,
      waits: retryMs,
    })
    const renewedAt = clock()
    onRenewed(expiration)
    while (!isDue({ now: clock(), renewedAt, expiresAt: expiration, renewMinutes: gmail.renewMinutes })) {
      await pause(lookMs, signal)
    }
  }
}

/** After `renewMinutes`, and in any case when less than a day remains, though not at every look. */
export function isDue({
  now,
  renewedAt,
  expiresAt,
  renewMinutes,
}: {
  now: number
  renewedAt: number
  expiresAt: number
  renewMinutes: number
}): boolean {
  const age = now - renewedAt
  if (age >= renewMinutes * minute) return true
  return expiresAt - now < day && age >= lookMs
}
