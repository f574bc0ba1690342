// The limit on the bytes that wait in a store. New deliveries are refused before it is exceeded, and the operator is warned well before that.
import type { Log } from '../base/log.ts'
import { Problem } from '../core/model/problem.ts'

/**
 * Shares: a warning begins at the share `warn` of the limit. A full store is reported until the waiting bytes are below the share `reopen` of the bytes
 * that waited when it became full, so that the report does not come and go.
 */
const shares = { warn: 0.8, reopen: 0.95 }

const retryAfterSeconds = 60

export type Capacity = {
  /** Sets the bytes that wait in the store, and logs when new deliveries are, may soon be, or are no longer refused. */
  update(bytes: number): void
  /**
   * A `store-full` problem if new deliveries would exceed the limit. `bytes`: how many of their bytes would wait; deliveries that do not wait are
   * never refused. `uncounted`: the bytes of earlier calls that the last `update` did not include.
   */
  checkAppend(bytes: number, uncounted: number): Problem | undefined
  /** Why deliveries are refused; undefined while they are not. */
  trouble(): string | undefined
  /** A warning for the operator before deliveries are refused. */
  warning(): string | undefined
}

/** `maxBytes` is read each time, so that a new limit applies at once. */
export function createCapacity({ maxBytes, log }: { maxBytes: () => number; log: Log }): Capacity {
  let bytes = 0
  let isTight = false
  /** The bytes that waited when the store became full, and the limit at that time. */
  let full: { readonly bytes: number; readonly limit: number } | undefined

  const isFull = () => full !== undefined && full.limit === maxBytes() && bytes >= shares.reopen * full.bytes
  const setFull = () => {
    if (isFull()) return
    full = { bytes, limit: maxBytes() }
    log.error({ waitingBytes: bytes }, describeFullStore(maxBytes()))
  }

  return {
    update(now) {
      bytes = now
      if (bytes >= maxBytes()) return setFull()
      if (isFull()) return
      if (full !== undefined) log.info({ waitingBytes: bytes }, 'The store takes deliveries again.')
      const warning = describeFillLevel(bytes, maxBytes())
      if (warning !== undefined && !isTight && full === undefined) log.warn({ waitingBytes: bytes }, warning)
      isTight = warning !== undefined
      full = undefined
    },
    checkAppend(more, uncounted) {
      if (more === 0 || bytes + uncounted + more <= maxBytes()) return undefined
      // a delivery that is too large for an almost empty store does not make it full
      if (bytes >= shares.warn * maxBytes()) setFull()
      return new Problem('store-full', 'The store is full. Send the request again later.', { retryAfterSeconds })
    },
    trouble: () => (isFull() ? describeFullStore(maxBytes()) : undefined),
    warning: () => (isFull() ? undefined : describeFillLevel(bytes, maxBytes())),
  }
}

/** The warning for this many bytes; undefined while there is enough room. */
export function describeFillLevel(bytes: number, maxBytes: number): string | undefined {
  const share = bytes / maxBytes
  if (share < shares.warn) return undefined
  return (
    `Parked deliveries and queued jobs use ${Math.floor(share * 100)} % of store.maxWaitingBytes. ` +
    'At 100 % new deliveries are answered 503. "hookloom list --state parked" shows the parked ones.'
  )
}

function describeFullStore(maxBytes: number): string {
  return (
    `The store is full: parked deliveries and queued jobs use all of store.maxWaitingBytes (${maxBytes}). New deliveries ` +
    'are answered 503. "hookloom list --state parked" shows the parked ones, "hookloom drop" cancels one.'
  )
}
