// How long to wait before the next try.

export type Backoff = {
  /** Milliseconds after the first failure, doubled after each further one. */
  readonly firstMs: number
  readonly capMs: number
}

/** Milliseconds to wait; `failures` counts those before this one. */
export function toBackoffMs(failures: number, { firstMs, capMs }: Backoff): number {
  return Math.min(capMs, firstMs * 2 ** failures)
}
