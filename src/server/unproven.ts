// Memory for bodies that are read before anything proves who sent them: a signature can only be checked when all of its body is here.
import { Problem } from '../model/problem.ts'

const mebibyte = 1024 * 1024

/**
 * - `perClient`: 8 MiB, which is 32 bodies of the default limit, or some hundreds of usual size. They are held for as long as
 *   they arrive and are checked, so that a sender in good order never comes near.
 * - `clients`: so many shares are there, 64 MiB in all, which a small machine has. Without a limit, a thousand forged senders
 *   held 306 MB.
 *
 * A share is never less than two bodies of the largest size: one as it was sent, and one inflated from it.
 */
export const unprovenLimits = { perClient: 8 * mebibyte, clients: 8 }

const retryAfterSeconds = 5

/** What one request holds. */
export type UnprovenHold = {
  /**
   * Counts bytes for a client; a negative number gives some back. `limit` is the largest body that the hook takes. Throws
   * `overloaded` when the client's share or all of the memory is used up: a sender repeats what was answered 503.
   */
  take(client: string, bytes: number, limit: number): void
  /** Gives back all that it took: something was proved, or the request is over. */
  release(): void
}

export type UnprovenBodies = {
  open(): UnprovenHold
  /** Clients that hold something. */
  readonly size: number
}

export function createUnprovenBodies(): UnprovenBodies {
  const held = new Map<string, number>()
  let total = 0

  function add(client: string, bytes: number): void {
    total += bytes
    const mine = (held.get(client) ?? 0) + bytes
    if (mine === 0) held.delete(client)
    else held.set(client, mine)
  }

  return {
    open() {
      let owner: string | undefined
      let mine = 0
      return {
        take(client, bytes, limit) {
          const share = Math.max(unprovenLimits.perClient, 2 * limit)
          const isOver = (held.get(client) ?? 0) + bytes > share || total + bytes > share * unprovenLimits.clients
          if (bytes > 0 && isOver) {
            throw new Problem('overloaded', 'Too many unproved deliveries arrive at once. Send it again later.', {
              retryAfterSeconds,
            })
          }
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
      return held.size
    },
  }
}
