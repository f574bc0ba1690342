// The leases of this gateway: renewed while it lives, released when it stops. After a crash, another gateway gets them within 30 s.
import { toErrorName } from '../base/exceptions.ts'
import { attemptWithin, readClocks, measureElapsedMs, type Moment } from '../base/time.ts'
import type { Log } from '../base/log.ts'
import type { Lease } from './owners.ts'
import { storeUnavailable } from './rules.ts'
import type { Store } from './store.ts'

export type LeaseTimes = { readonly leaseMs: number; readonly everyMs: number }

/** The result of a call that takes longer is ignored, and the next call does not wait for it. */
const callMs = 5_000

/** A dead gateway is replaced at most `leaseMs` plus `everyMs` after its last renewal. */
const leaseTimes: LeaseTimes = { leaseMs: 20_000, everyMs: 5_000 }

/** Work that one gateway does for all gateways. */
export type Duty = {
  /** False: another gateway has the duty, or may have it by now. */
  isHeld(): boolean
}

export type NamedLeases = {
  /** From now on, this gateway takes the duty when it is free. `changed` is called each time that this gateway gets or loses the duty. */
  duty(name: string, changed: () => void): Duty
  /** Takes the leases that are free, and returns their names. This gateway renews them until `release`. */
  take(names: readonly string[]): Promise<string[]>
  /** Never rejects: a lease that cannot be ended expires. */
  release(names: readonly string[]): Promise<void>
  /** Releases all leases and stops the renewals. */
  stop(): Promise<void>
}

/** `sureAt`: the moment before the last successful call that took or renewed the lease. The lease lasts at least `leaseMs` from then. */
type HeldLease = { readonly lease: Lease; sureAt: Moment }

export function createNamedLeases(parts: {
  readonly store: Pick<Store, 'lease' | 'extendLeases' | 'endLeases'>
  readonly log: Log
  readonly times?: LeaseTimes | undefined
}): NamedLeases {
  const { store, log, times: { leaseMs, everyMs } = leaseTimes } = parts
  const held = new Map<string, HeldLease>()
  const duties = new Map<string, { readonly changed: () => void; wasHeld: boolean }>()
  let isStopped = false
  let running: Promise<void> | undefined
  const timer = setInterval(() => void tick(), everyMs).unref()

  const isHeld = (name: string): boolean => {
    const sureAt = held.get(name)?.sureAt
    if (sureAt === undefined || isStopped) return false
    return measureElapsedMs(sureAt, readClocks()) < leaseMs
  }

  function tick(): Promise<void> {
    running ??= renewAll().finally(() => (running = undefined))
    return running
  }

  /** Renews the leases that are held, and takes the duties that are free. */
  async function renewAll(): Promise<void> {
    // after a pause of the process, `isHeld` may have returned false for these duties, so their `changed` must be called even if they are held again
    const lapsed = new Set([...duties].flatMap(([name, { wasHeld }]) => (wasHeld && !isHeld(name) ? [name] : [])))
    try {
      await extend()
      const wanted = [...duties.keys()].filter((name) => !held.has(name))
      if (wanted.length > 0 && !isStopped) await take(wanted)
    } catch (thrown) {
      log.debug({ thrown: toErrorName(thrown) }, 'the leases of this gateway could not be extended; it tries again')
    }
    for (const [name, duty] of duties) {
      if (isHeld(name) === duty.wasHeld && !lapsed.has(name)) continue
      duty.wasHeld = isHeld(name)
      duty.changed()
    }
  }

  async function extend(): Promise<void> {
    const mine = [...held.values()]
    if (mine.length === 0) return
    const sureAt = readClocks()
    const leases = mine.map(({ lease }) => lease)
    const still = new Set(await withinCallLimit(store.extendLeases(leases, leaseMs)))
    for (const own of mine) {
      const { name } = own.lease
      if (still.has(name)) own.sureAt = sureAt
      else if (held.get(name) === own) held.delete(name)
    }
  }

  async function take(names: readonly string[]): Promise<string[]> {
    const sureAt = readClocks()
    const leases = await withinCallLimit(store.lease({ names, leaseMs }))
    for (const lease of leases) held.set(lease.name, { lease, sureAt })
    if (isStopped) await release(leases.map(({ name }) => name))
    return isStopped ? [] : leases.map(({ name }) => name)
  }

  async function release(names: readonly string[]): Promise<void> {
    const leases = names.flatMap((name) => held.get(name)?.lease ?? [])
    for (const name of names) held.delete(name)
    if (leases.length > 0) await withinCallLimit(store.endLeases(leases)).catch(() => undefined)
  }

  return {
    duty(name, changed) {
      duties.set(name, { changed, wasHeld: false })
      void (running ?? Promise.resolve()).then(tick)
      return { isHeld: () => isHeld(name) }
    },
    take,
    release,
    async stop() {
      isStopped = true
      clearInterval(timer)
      await running
      await release([...held.keys()])
    },
  }
}

async function withinCallLimit<Result>(call: Promise<Result>): Promise<Result> {
  const attempt = await attemptWithin(callMs, () => call)
  if (attempt.kind === 'ended') return attempt.value
  throw attempt.kind === 'threw' ? attempt.thrown : storeUnavailable('The store does not answer in time.', 5)
}
