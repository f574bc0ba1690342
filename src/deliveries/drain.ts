// Runs the parked deliveries of a module again after its code is fixed: in arrival order, one at a time, once for each generation.
// Those that no mapping took run again when the mappings change.
import { missingMappingModule } from '../model/delivery.ts'
import type { Log } from '../model/log.ts'
import type { Generation } from '../pipeline/generation.ts'
import type { OpenDelivery } from '../store/records.ts'
import type { NamedLeases } from '../store/named-leases.ts'
import type { Store } from '../store/store.ts'
import { createParkedCalls, type DrainResult, type ParkedCalls } from './parked-calls.ts'
import { type Rerunner, walkWaiting } from './rerun.ts'

export type DrainParts = {
  readonly store: Pick<Store, 'open' | 'counts' | 'inState' | 'drop' | 'parkedFor' | 'waitedFor'>
  readonly rerunner: Pick<Rerunner, 'rerun' | 'resumePending'>
  readonly generation: () => Generation
  /** So that one gateway drains a module at a time, in order. Default: no other gateway can. */
  readonly leases?: Pick<NamedLeases, 'take' | 'release'>
  readonly log: Log
}

const lookEveryMs = 5_000

type Drain = ParkedCalls & {
  /**
   * Runs the parked deliveries of these modules through the current generation, after those that wait for a mapping, or for a module
   * that no mapping names any more. Deliveries that this generation parked itself are left out, unless `again` is set. A call while it runs adds its modules, and begins again. Resolves when all of them are done.
   * Deliveries that it does not reach, because the process stops or the store fails, stay parked. Never rejects.
   */
  drain(modules: readonly string[], options?: { readonly again?: boolean }): Promise<DrainResult>
  /**
   * At the start of the gateway: runs deliveries that were pending at the last stop, then those that are parked for a module that
   * works now. Never rejects.
   */
  resume(): Promise<void>
  /**
   * Another gateway left deliveries that wait: it died, or it has other code. Runs those that are pending, and those that are parked for a
   * module that works here and whose code did not park them before. Looks at most every five seconds, even if it is called more often.
   */
  look(): void
  /** Stops after the current delivery. */
  stop(): Promise<void>
}

export function createDrain(parts: DrainParts): Drain {
  const { store, rerunner, generation, log } = parts
  const leases = parts.leases ?? { take: async (names: readonly string[]) => [...names], release: async () => {} }
  const wanted = new Set<string>()
  /** Whether deliveries that this generation parked run too. */
  let again = false
  let calls = 0
  let stopped = false
  let running: Promise<DrainResult> | undefined
  /** Modules that another gateway drained when this one wanted to, and whether deliveries that this generation parked run too. */
  const postponed = new Map<string, boolean>()
  let looking: Promise<void> | undefined
  /** The part of a look that runs parked deliveries. */
  let draining: Promise<void> | undefined
  let nextLook: NodeJS.Timeout | undefined
  let lookedAt = Number.NEGATIVE_INFINITY

  async function run(): Promise<DrainResult> {
    // it ends after its current delivery, and gives the lease of the module back
    await draining?.catch(() => undefined)
    let settled = 0
    for (;;) {
      const mine = calls
      const pass = await runPass(() => calls !== mine || stopped)
      settled += pass.settled
      if (calls !== mine && !stopped) continue
      if (settled + pass.stillParked > 0) {
        log.info({ settled, stillParked: pass.stillParked }, 'parked deliveries ran again')
      }
      return { settled, stillParked: pass.stillParked }
    }
  }

  /** One walk through the modules, each in arrival order. It ends early when `isOver`. */
  async function runPass(isOver: () => boolean): Promise<DrainResult> {
    const { id } = generation()
    const drained = { settled: 0, stillParked: 0 }
    await drainOrphans({ isOver, drained })
    for (const module of wanted) {
      const isMine = await drainModule(module, { notFailedBy: again ? [] : [id], isOver, drained })
      if (!isMine) postponed.set(module, again || postponed.get(module) === true)
    }
    return drained
  }

  /** What waits for a mapping, or for a module that the mappings do not name any more. */
  async function drainOrphans({ isOver, drained }: Omit<Pass, 'notFailedBy'>): Promise<void> {
    const { id, transforms } = generation()
    const named = new Set([...transforms.values()].map(({ module }) => module))
    const orphans = (await store.waitedFor()).filter((name) => !named.has(name))
    // not `notFailedBy`: a generation that is back, because an edit was undone, runs what it parked before
    const skips = (open: OpenDelivery) => open.generation === id
    let isNews = false
    for (const name of orphans) {
      const before = drained.stillParked
      if (!(await drainModule(name, { notFailedBy: [], skips, isOver, drained }))) postponed.set(name, false)
      isNews ||= drained.stillParked > before
    }
    const untaken = isNews ? await store.parkedFor(missingMappingModule) : 0
    if (untaken === 0) return
    const what = untaken === 1 ? 'parked delivery waits' : 'parked deliveries wait'
    log.warn(
      { untaken },
      `${untaken} ${what} for a mapping: none takes them. "hookloom list --state parked" shows them.`,
    )
  }

  type Pass = {
    readonly notFailedBy: readonly string[]
    readonly skips?: (open: OpenDelivery) => boolean
    isOver(): boolean
    drained: { settled: number; stillParked: number }
  }

  /** False: another gateway drains the module now. */
  async function drainModule(module: string, { notFailedBy, skips, isOver, drained }: Pass): Promise<boolean> {
    const lease = `drain/${module}`
    if (isOver()) return true
    if ((await leases.take([lease])).length === 0) return false
    try {
      for await (const open of walkWaiting({ store, query: { state: 'parked', waitsFor: module, notFailedBy } })) {
        if (isOver()) return true
        if (skips?.(open) === true) continue
        const state = await rerunner.rerun(open)
        if (state === 'parked' || state === 'waiting') drained.stillParked += 1
        else drained.settled += 1
      }
      return true
    } finally {
      await leases.release([lease])
    }
  }

  function findWorkingModules(): Map<string, string | undefined> {
    const sound = [...generation().transforms.values()].filter(({ problem }) => problem === undefined)
    return new Map(sound.map(({ module, hash }) => [module, hash]))
  }

  async function lookOnce(): Promise<void> {
    try {
      await rerunner.resumePending()
      if (generation().config.hooks.transforms.drain === 'ask') return
      const [next] = postponed
      if (next !== undefined) {
        postponed.delete(next[0])
        return void drain([next[0]], { again: next[1] })
      }
      draining = drainOthers().finally(() => (draining = undefined))
      await draining
    } catch (error) {
      log.debug({ err: error }, 'waiting deliveries could not be read; they are looked for again')
    }
  }

  /** What is parked for a module that works here, and was not parked by this code. */
  async function drainOthers(): Promise<void> {
    const drained = { settled: 0, stillParked: 0 }
    for (const [module, hash] of [...findWorkingModules(), [missingMappingModule, undefined] as const]) {
      const notFailedBy = [generation().id, ...(hash === undefined ? [] : [hash])]
      await drainModule(module, { notFailedBy, isOver: () => stopped || running !== undefined, drained })
    }
    if (drained.settled + drained.stillParked > 0) log.info(drained, 'parked deliveries ran again')
  }

  function look(): void {
    if (stopped || looking !== undefined || nextLook !== undefined) return
    const waitMs = Math.max(0, lookedAt + lookEveryMs - performance.now())
    nextLook = setTimeout(() => {
      nextLook = undefined
      lookedAt = performance.now()
      looking = lookOnce().finally(() => (looking = undefined))
    }, waitMs).unref()
  }

  /** For `hooks.transforms.drain: "ask"`. */
  async function logWaiting(): Promise<void> {
    const { parked } = (await store.counts()).deliveries
    if (parked === 0) return
    const what = parked === 1 ? '1 parked delivery waits' : `${parked} parked deliveries wait`
    log.info({ parked }, `${what}. "hookloom retry --parked" runs ${parked === 1 ? 'it' : 'them'} again.`)
  }

  function drain(modules: readonly string[], options?: { readonly again?: boolean }): Promise<DrainResult> {
    if (stopped) return running ?? Promise.resolve({ settled: 0, stillParked: 0 })
    if (generation().config.hooks.transforms.drain === 'ask') {
      // a store that cannot be read is reported by the next request
      if (modules.length > 0) void logWaiting().catch(() => undefined)
      return Promise.resolve({ settled: 0, stillParked: 0 })
    }
    for (const module of modules) wanted.add(module)
    again ||= options?.again === true
    calls += 1
    running ??= run()
      .catch((error: unknown) => {
        log.error({ err: error }, 'parked deliveries could not be read; they run again after the next reload')
        return { settled: 0, stillParked: 0 }
      })
      .finally(() => {
        running = undefined
        wanted.clear()
        again = false
      })
    return running
  }

  return {
    drain,
    look,
    async resume() {
      try {
        await rerunner.resumePending()
        await drain([...findWorkingModules().keys()], { again: true })
      } catch (error) {
        log.error({ err: error }, 'waiting deliveries could not be read; they run again at the next start')
      }
    },
    ...createParkedCalls({ store, rerunner, isStopped: () => stopped }),
    async stop() {
      stopped = true
      clearTimeout(nextLook)
      await Promise.all([running, looking])
    },
  }
}
