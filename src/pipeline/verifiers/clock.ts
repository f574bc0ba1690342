// The time of signing: read strictly, and held against the clock on both sides.
import type { TimestampUnit } from '../../model/verify.ts'

const zoned = /(?:Z|[+-]\d{2}:?\d{2})$/i

/** Milliseconds since the epoch, or undefined for anything but the whole text being a time: `1614265330abc` is none. */
export function parseTimestamp(text: string, unit: TimestampUnit): number | undefined {
  if (unit === 's') return /^\d{1,11}$/.test(text) ? Number(text) * 1000 : undefined
  if (unit === 'ms') return /^\d{1,14}$/.test(text) ? Number(text) : undefined
  if (!/^\d{4}-\d{2}-\d{2}T[\d:.]{5,20}(?:Z|[+-]\d{2}:?\d{2})?$/i.test(text)) return undefined
  // a time without a zone is UTC, and not the zone of this machine
  const time = Date.parse(zoned.test(text) ? text : `${text}Z`)
  return Number.isNaN(time) ? undefined : time
}

/** Why a time is not now enough, or undefined. The edge itself is inside. */
export function toClockFault(time: number, now: number, toleranceSeconds: number): string | undefined {
  const seconds = (now - time) / 1000
  if (Math.abs(seconds) <= toleranceSeconds) return undefined
  const side = seconds > 0 ? 'behind' : 'ahead of'
  return `The time of signing is ${Math.abs(Math.round(seconds))} s ${side} the clock; ${toleranceSeconds} s are allowed.`
}
