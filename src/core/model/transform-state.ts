// The memory of integrators' code, and its limits.
import type { JsonValue } from '../../base/json.ts'

/** The memory of a module: it survives restarts, and all gateways on one store share it. */
export type TransformState = {
  /**
   * The value that was set last; undefined if there is none, or if its time is over. A delivery sees the values that it has set itself. In a
   * call with `replay`, the memory is empty at the beginning, except in a fixture that has `state`.
   */
  get<Value = JsonValue>(key: string): Promise<Value | undefined>
  /**
   * Sets a value, or deletes it if it is undefined. It is stored when the delivery is accepted or skipped, in the same transaction, and not if
   * it is parked or refused. If another delivery set a key that this delivery has read, this delivery runs again.
   */
  set(key: string, value: JsonValue | undefined, options?: StateOptions): void
}

export type StateOptions = {
  /** How long the value is kept after it is set, such as `1h`, `10m` or `2d`, at most 365 days. A plain number is minutes. Default: `30d`. */
  for?: string | number | undefined
}

/** The limits of `context.state`. Bytes are of UTF-8; the size of a module is that of its keys and of the JSON of its values. */
export const stateLimits = {
  keyLength: 200,
  valueBytes: 8 * 1024,
  keysOfCall: 100,
  keysOfModule: 5_000,
  bytesOfModule: 1024 * 1024,
  defaultMs: 30 * 86_400_000,
  longestMs: 365 * 86_400_000,
} as const

/** A value that a call set, as JSON; null deletes it. */
export type StateWrite = readonly [key: string, json: string | null, forMs: number]
