// Slows down guessing: twenty failures within a minute lock a client out for the next minute. Memory is bounded.
import type { Clock } from '../../store/store.ts'

export const lockRule = { failures: 20, windowMs: 60_000, lockMs: 60_000 }

type ThrottleOptions = {
  clock: Clock
  /** The number of failures within `windowMs` after which a client is locked out. */
  failures?: number
  windowMs?: number
  /** The length of a lock, from the failure that began it. Further attempts do not prolong it. */
  lockMs?: number
  /** The maximum number of clients that are remembered, locked or not. */
  maxClients?: number
}

/**
 * ```
 * unknown ──fail──▶ counting ──20th failure in 60 s──▶ locked ──60 s──▶ unknown
 * ```
 */
export type Throttle = {
  /** Seconds until the lock ends, for Retry-After, at least 1; undefined for a client that is not locked. */
  readLockSeconds(client: string): number | undefined
  fail(client: string): void
  readonly size: number
}

/**
 * When `maxClients` is reached, the gateway forgets the client that has been quiet for longest and is not locked. If all clients are locked,
 * the lock that ends first is removed. So to free one address early, an attacker must get 10,000 networks locked within a minute, 20 failures
 * each, and could guess from those instead.
 */
export function createThrottle(options: ThrottleOptions): Throttle {
  const { clock, failures = lockRule.failures, windowMs = lockRule.windowMs, lockMs = lockRule.lockMs } = options
  const { maxClients = 10_000 } = options
  // Both maps are in the order of their last write, so the first entry is the one to remove.
  const counting = new Map<string, number[]>()
  const lockedAt = new Map<string, number>()
  // a clock that was set back must not extend the span
  const isWithin = (span: number, at: number, now: number) => at <= now && now - at < span

  const evict = (now: number) => {
    for (const [client, at] of lockedAt) {
      if (isWithin(lockMs, at, now)) break
      lockedAt.delete(client)
    }
    while (counting.size + lockedAt.size >= maxClients) {
      const among = counting.size > 0 ? counting : lockedAt
      for (const client of among.keys()) {
        among.delete(client)
        break
      }
    }
  }

  const readLockSeconds = (client: string): number | undefined => {
    const at = lockedAt.get(client)
    if (at === undefined) return undefined
    const now = clock()
    if (isWithin(lockMs, at, now)) return Math.max(1, Math.ceil((at + lockMs - now) / 1_000))
    lockedAt.delete(client)
    return undefined
  }

  return {
    readLockSeconds,
    fail(client) {
      if (readLockSeconds(client) !== undefined) return
      const now = clock()
      const recent = (counting.get(client) ?? []).filter((at) => isWithin(windowMs, at, now))
      counting.delete(client)
      evict(now)
      if (recent.length + 1 >= failures) lockedAt.set(client, now)
      else counting.set(client, [...recent, now])
    },
    get size() {
      return counting.size + lockedAt.size
    },
  }
}
