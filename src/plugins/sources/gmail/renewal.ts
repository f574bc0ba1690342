// Renews the watch of a mailbox, which expires after seven days. A failure to renew is shown in the status.
import { minRenewMinutes, type Sleep, type WatchedGmail } from '../shared/kit.ts'
import type { GmailApi } from './api.ts'
import { retryUntilDone } from './pace.ts'
import { toTopic } from './pubsub.ts'

const minute = 60_000
const day = 24 * 60 * minute
/** The interval of the checks: short, because a long timer is late after the machine was suspended. */
const checkMs = minRenewMinutes * minute
const retryMs = [minute, 5 * minute, 15 * minute]

type RenewalParts = {
  readonly api: GmailApi
  readonly gmail: WatchedGmail
  readonly clock: () => number
  readonly pause: Sleep
  readonly signal: AbortSignal
  readonly onRenewed: (expiresAt: number) => void
  readonly onFailure: (error: unknown) => void
}

/** Starts the watch now, and renews it until the signal is aborted. Rejects then, or when the consent is missing. */
export async function keepWatching({ api, gmail, clock, onRenewed, ...retry }: RenewalParts): Promise<never> {
  const { pause, signal } = retry
  for (;;) {
    const { expiration } = await retryUntilDone(() => api.watch(toTopic(gmail), gmail.labels), {
      ...retry,
      waits: retryMs,
    })
    const renewedAt = clock()
    onRenewed(expiration)
    while (!isRenewalDue({ now: clock(), renewedAt, expiresAt: expiration, renewMinutes: gmail.renewMinutes })) {
      await pause(checkMs, signal)
    }
  }
}

/** Whether `renewMinutes` have passed since the last renewal. A watch that expires within a day is renewed after `checkMs`. */
export function isRenewalDue({
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
  return expiresAt - now < day && age >= checkMs
}
