// A signature can be checked only after the whole body arrived. So bodies without a proof take memory, which is limited here.
import { Problem } from '../../core/model/problem.ts'

/**
 * Memory for the bodies of requests that have proved nothing yet.
 *
 * - `perClient`: 8 MiB. That is 32 bodies of the default limit, or several hundred of usual size.
 * - `clients`: the number of such shares, 64 MiB in all. Without a limit, a thousand forged requests used 306 MB.
 *
 * A share is at least two bodies of the largest size: the body that was sent, and its inflated form.
 */
const unprovenLimits = { perClient: 8 * 1024 * 1024, clients: 8 }

const tooMany = 'Too many unverified request bodies arrive at the same time. Send the request again later.'

/** The memory of one request. */
export type BodyMemory = {
  /**
   * Counts bytes for a client; a negative number gives some back. `limit` is the maximum size of a body for the hook. Throws `overloaded` (503,
   * so that the sender repeats the request) if the share of the client or all of the memory is used up.
   */
  take(client: string, bytes: number, limit: number): void
  /** Gives back everything that this request took. */
  release(): void
}

/** `open` begins a request. `size` is the number of clients that use memory now. */
export function createUnprovenBodies(): { open(): BodyMemory; readonly size: number } {
  const used = new Map<string, number>()
  let total = 0

  function add(client: string, bytes: number): void {
    total += bytes
    const mine = (used.get(client) ?? 0) + bytes
    if (mine === 0) used.delete(client)
    else used.set(client, mine)
  }

  return {
    open() {
      let owner: string | undefined
      let mine = 0
      return {
        take(client, bytes, limit) {
          const share = Math.max(unprovenLimits.perClient, 2 * limit)
          const isOver = (used.get(client) ?? 0) + bytes > share || total + bytes > share * unprovenLimits.clients
          if (bytes > 0 && isOver) throw new Problem('overloaded', tooMany, { retryAfterSeconds: 5 })
          owner = client
          mine += bytes
          add(client, bytes)
        },
        release() {
          if (owner !== undefined) add(owner, -mine)
          owner = undefined
          mine = 0
        },
      }
    },
    get size() {
      return used.size
    },
  }
}
