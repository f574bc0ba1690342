import { randomFillSync } from 'node:crypto'
import { v7 } from 'uuid'

// random bytes for many ids are read from the kernel at once: reading sixteen at a time is most of the cost of an id
const pool = new Uint8Array(4096)
let at = pool.length

function rng(): Uint8Array {
  if (at === pool.length) {
    randomFillSync(pool)
    at = 0
  }
  at += 16
  return pool.subarray(at - 16, at)
}

/** A UUIDv7 (RFC 9562). Ids sort by time, so rows that are inserted together are stored together. */
export function newId(): string {
  return v7({ rng })
}
