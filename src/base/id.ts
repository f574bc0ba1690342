import { randomFillSync } from 'node:crypto'
import { v7 } from 'uuid'

// one draw from the kernel for many ids: sixteen bytes at a time are most of the cost of an id
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

/** A UUIDv7 (RFC 9562): ids sort by their millisecond, so that rows that come together lie together. */
export function newId(): string {
  return v7({ rng })
}
