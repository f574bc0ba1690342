// What a relay keeps: a folder with the envelopes of each home. Nothing in it can be opened by the relay.
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createHome, type Home, type HomeLimits, openHome } from './home.ts'
import { isAddress, type PublicKeys } from './keys.ts'

/** `unseenMs`: a home that did not connect for so long is forgotten, with its envelopes. */
export type RelayLimits = HomeLimits & { readonly homes: number; readonly unseenMs: number }

const dayMs = 86_400_000
export const relayLimits: RelayLimits = {
  bytes: 64 * 1024 ** 2,
  envelopes: 10_000,
  ageMs: 7 * dayMs,
  homes: 20,
  unseenMs: 30 * dayMs,
}

export type RelayStore = {
  find(address: string): Home | undefined
  /** The home with these keys, which is made if it is new. Undefined if there are too many homes. */
  open(keys: PublicKeys): Promise<Home | undefined>
  /** Removes envelopes and homes that are too old. */
  removeOld(): Promise<void>
}

type StoreParts = { readonly dir: string; readonly limits: RelayLimits; readonly clock: () => number }

export async function openRelayStore({ dir, limits, clock }: StoreParts): Promise<RelayStore> {
  await mkdir(dir, { recursive: true, mode: 0o700 })
  const homes = new Map<string, Home>()
  const toParts = (address: string) => ({ folder: join(dir, address), limits, clock })
  for (const address of (await readdir(dir)).filter(isAddress)) {
    const home = await openHome(toParts(address))
    if (home !== undefined) homes.set(address, home)
  }
  const creating = new Map<string, Promise<Home>>()

  async function create(keys: PublicKeys): Promise<Home> {
    const home = await createHome(keys, toParts(keys.address))
    homes.set(keys.address, home)
    return home
  }

  return {
    find: (address) => homes.get(address),
    async open(keys) {
      const { address } = keys
      const known = homes.get(address) ?? creating.get(address)
      if (known !== undefined) return known
      if (homes.size + creating.size >= limits.homes) return undefined
      const made = create(keys).finally(() => creating.delete(address))
      creating.set(address, made)
      return made
    },
    async removeOld() {
      for (const [address, home] of homes) {
        if (clock() - home.seenAt() <= limits.unseenMs) await home.removeOld()
        else {
          homes.delete(address)
          await rm(join(dir, address), { recursive: true })
        }
      }
    },
  }
}
