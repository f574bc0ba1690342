import { randomUUID } from 'node:crypto'

/** A UUIDv7 (RFC 9562, 5.7). Ids sort by time, so rows that are inserted together are stored together. */
export function newId(): string {
  const time = Date.now().toString(16).padStart(12, '0')
  // the rest of a UUIDv4 is random too, and has the variant at the same place
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}
