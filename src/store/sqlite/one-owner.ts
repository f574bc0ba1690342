// The calls that several owners need, for an engine with one owner.
import { randomInt } from 'node:crypto'
import type { Lease } from '../owners.ts'
import type { Clock, Store } from '../store.ts'

type SingleOwnerCalls = Pick<Store, 'lease' | 'extendLeases' | 'endLeases' | 'subscribe' | 'noteFailures' | 'lockouts'>

/** The lock of the engine proves that no other owner is alive, so memory is enough. */
export function createSingleOwnerCalls(clock: Clock): SingleOwnerCalls {
  const leases = new Map<string, { readonly fence: number; until: number }>()
  const isHeld = ({ name, fence }: Lease) => leases.get(name)?.fence === fence

  return {
    async lease({ names, leaseMs }) {
      const now = clock()
      const free = [...new Set(names)].filter((name) => (leases.get(name)?.until ?? 0) <= now)
      return free.map((name) => {
        const fence = 1 + randomInt(2 ** 47)
        leases.set(name, { fence, until: now + leaseMs })
        return { name, fence }
      })
    },
    async extendLeases(held, leaseMs) {
      const until = clock() + leaseMs
      const still = held.filter(isHeld)
      for (const { name, fence } of still) leases.set(name, { fence, until })
      return still.map(({ name }) => name)
    },
    async endLeases(held) {
      for (const lease of held) if (isHeld(lease)) leases.delete(lease.name)
    },
    noteFailures: async () => {},
    lockouts: async () => [],
    subscribe: () => () => {},
  }
}
