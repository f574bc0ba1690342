import { randomUUID } from 'node:crypto'

let newest = 0
let prefix = ''

/** A UUIDv7 (RFC 9562, 5.7). Ids sort by time, so rows that are inserted together are stored together. */
export function newId(): string {
  const now = Date.now()
  if (now !== newest) {
    const time = now.toString(16).padStart(12, '0')
    prefix = `${time.slice(0, 8)}-${time.slice(8)}-7`
    newest = now
  }
  // the rest of a UUIDv4 is random too, and has the variant bits in the same place
  return prefix + randomUUID().slice(15)
}
