// Runs the parked deliveries of a module again after its code is fixed, in arrival order, one at a time. Deliveries that wait for a mapping run
// again when the mappings change.
import { formatQuantity } from '../../base/text.ts'
import { missingMappingModule } from '../../core/model/delivery.ts'
import type { Log } from '../../base/log.ts'
import type { Generation } from '../generation/generation.ts'
import type { OpenDelivery } from '../../store/records.ts'
import type { NamedLeases } from '../../store/named-leases.ts'
import type { Store } from '../../store/store.ts'
import { createParkedCalls, type DrainResult, type ParkedCalls } from './parked-calls.ts'
import type { Rerunner } from './rerun.ts'
import { walkWaiting } from './walk.ts'

export type DrainParts = {
  readonly store: Pick<Store, 'openDeliveries' | 'counts' | 'countInState' | 'drop' | 'countParkedFor' | 'waitedFor'>
  readonly rerunner: Pick<Rerunner, 'rerun' | 'resumePending' | 'waitForRun'>
  readonly generation: () => Generation
  /** With leases, only one gateway drains a module at a time, in order. Default: there is no other gateway. */
  readonly leases?: Pick<NamedLeases, 'take' | 'release'>
  readonly log: Log
}

const lookEveryMs = 5_000

type Drain = ParkedCalls & {
  /**
   * Runs the parked deliveries of these modules through the current generation, after the deliveries that wait for a mapping or for a module
   * that no mapping names now. Leaves out the deliveries that this generation parked; if `again` is set, those of these modules run too. Runs
   * nothing if `hooks.transforms.drain` is `"ask"`. A call during a drain adds its modules and starts the walk again. Resolves when all modules
   * are done. Deliveries that the drain does not reach, because the process stops or the store fails, stay parked. Never rejects.
   */
  drain(modules: readonly string[], options?: { readonly again?: boolean }): Promise<DrainResult>
  /**
   * Called when the gateway starts. Runs the deliveries that were pending at the last stop, then those that are parked for a module
   * that works now. Never rejects.
   */
  resume(): Promise<void>
  /**
   * Called when another gateway may have left waiting deliveries, because it died or has other code. Runs the pending deliveries, and those
   * that are parked for a module that works here, unless the same code parked them. Does so at most once every five seconds.
   */
  look(): void
  /** Stops after the current delivery. */
  stop(): Promise<void>
}

/**
 * ```
 *          drain()                   the walk ends
 *  idle ────────────▶ draining ─────────────────────▶ idle
 *   │ ▲                ▲    │ ▲
 *   │ │ the walk ends  │    └─┘ drain(): more modules; the walk starts again
 *   ▼ │                │
 *  looking ────────────┘
 *          drain(): starts when the delivery that runs now has ended
 *
 *  any ── stop() ──▶ stopped
 * ```
 * Before each delivery, a walk compares the state with its first state, and ends if the state has changed.
 */
type DrainState =
  | { readonly kind: 'idle' }
  /** `look()` runs parked deliveries that another gateway left. */
  | { readonly kind: 'looking'; readonly done: Promise<void> }
  /** `again`: the deliveries that this generation parked also run. */
  | {
      readonly kind: 'draining'
      readonly modules: ReadonlySet<string>
      readonly again: boolean
      readonly done: Promise<DrainResult>
    }
  /** `done`: the result of the drain that was running at the stop. */
  | { readonly kind: 'stopped'; readonly done: Promise<DrainResult> }

const nothingDrained: DrainResult = { settled: 0, stillParked: 0 }

export function createDrain(parts: DrainParts): Drain {
  const { store, rerunner, generation, log } = parts
  const leases = parts.leases ?? { take: async (names: readonly string[]) => [...names], release: async () => {} }
  /** Modules that another gateway was draining when this one tried to, each with its `again`. */
  const postponed = new Map<string, boolean>()
  const looks = createLookScheduler(lookOnce)
  let state: DrainState = { kind: 'idle' }

  function drain(modules: readonly string[], options?: { readonly again?: boolean }): Promise<DrainResult> {
    if (state.kind === 'stopped') return state.done
    if (isDrainManual()) {
      // a store that cannot be read is reported by the next request
      if (modules.length > 0) void logWaiting().catch(() => undefined)
      return Promise.resolve(nothingDrained)
    }
    const again = options?.again === true
    if (state.kind === 'draining') {
      state = { ...state, modules: new Set([...state.modules, ...modules]), again: state.again || again }
    } else {
      const done = run(state.kind === 'looking' ? state.done : undefined)
      state = { kind: 'draining', modules: new Set(modules), again, done }
    }
    return state.done
  }

  async function run(look: Promise<void> | undefined): Promise<DrainResult> {
    // `drainOthers` must release the lease of its module first. The await is needed even without it: `drain` sets the state meanwhile
    await look?.catch(() => undefined)
    const drained = { settled: 0, stillParked: 0 }
    try {
      for (;;) {
        const mine = state
        // each pass counts anew how many deliveries stay parked
        drained.stillParked = 0
        if (mine.kind !== 'draining') return drained
        await runPass(mine, drained)
        if (state !== mine && state.kind === 'draining') continue
        if (state === mine) state = { kind: 'idle' }
        if (drained.settled + drained.stillParked > 0) log.info({ ...drained }, 'parked deliveries ran again')
        return drained
      }
    } catch (error) {
      log.error({ err: error }, 'parked deliveries could not be read; they run again after the next reload')
      if (state.kind === 'draining') state = { kind: 'idle' }
      return drained
    }
  }

  /** One walk through the deliveries of each module, in arrival order. Counts in `drained`, also if the store fails on the way. */
  async function runPass(mine: Extract<DrainState, { kind: 'draining' }>, drained: Pass['drained']): Promise<void> {
    const { id } = generation()
    const isOver = () => state !== mine
    await drainOrphans({ isOver, drained })
    for (const module of mine.modules) {
      const isMine = await drainModule(module, { notFailedBy: mine.again ? [] : [id], isOver, drained })
      if (!isMine) postponed.set(module, mine.again || postponed.get(module) === true)
    }
  }

  /** Runs the deliveries that wait for a mapping, or for a module that no mapping names now. */
  async function drainOrphans({ isOver, drained }: Omit<Pass, 'notFailedBy'>): Promise<void> {
    const { id, transforms } = generation()
    const named = new Set([...transforms.values()].map(({ module }) => module))
    const orphans = (await store.waitedFor()).filter((name) => !named.has(name))
    // not `notFailedBy`, which leaves out all that a generation ever parked: after an edit is undone, the earlier generation runs them again
    const isSkipped = (open: OpenDelivery) => open.generation === id
    let hasParkedAgain = false
    for (const name of orphans) {
      const before = drained.stillParked
      if (!(await drainModule(name, { notFailedBy: [], isSkipped, isOver, drained }))) postponed.set(name, false)
      hasParkedAgain ||= drained.stillParked > before
    }
    const unmatched = hasParkedAgain ? await store.countParkedFor(missingMappingModule) : 0
    if (unmatched === 0) return
    const text =
      unmatched === 1
        ? '1 parked delivery waits for a mapping: none takes it.'
        : `${unmatched} parked deliveries wait for a mapping: none takes them.`
    log.warn({ unmatched }, `${text} "hookloom list --state parked" shows the parked deliveries.`)
  }

  type Pass = {
    readonly notFailedBy: readonly string[]
    readonly isSkipped?: (open: OpenDelivery) => boolean
    isOver(): boolean
    drained: { settled: number; stillParked: number }
  }

  /** Returns false if another gateway drains the module now. */
  async function drainModule(module: string, { notFailedBy, isSkipped, isOver, drained }: Pass): Promise<boolean> {
    const lease = `drain/${module}`
    if (isOver()) return true
    if ((await leases.take([lease])).length === 0) return false
    try {
      for await (const open of walkWaiting({ store, query: { state: 'parked', waitsFor: module, notFailedBy } })) {
        if (isOver()) return true
        if (isSkipped?.(open) === true) continue
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
    const working = [...generation().transforms.values()].filter(({ problem }) => problem === undefined)
    return new Map(working.map(({ module, hash }) => [module, hash]))
  }

  function isDrainManual(): boolean {
    return generation().config.hooks.transforms.drain === 'ask'
  }

  /** Logs how many deliveries are parked: if `hooks.transforms.drain` is `"ask"`, only the operator runs them. */
  async function logWaiting(): Promise<void> {
    const { parked } = (await store.counts()).deliveries
    if (parked === 0) return
    const what = formatQuantity(parked, 'parked delivery waits', 'parked deliveries wait')
    log.info({ parked }, `${what}. "hookloom retry --parked" runs ${parked === 1 ? 'it' : 'them'} again.`)
  }

  async function lookOnce(): Promise<void> {
    try {
      await rerunner.resumePending()
      if (isDrainManual()) return
      const [next] = postponed
      if (next !== undefined) {
        postponed.delete(next[0])
        return void drain([next[0]], { again: next[1] })
      }
      if (state.kind !== 'idle') return
      const looking = { kind: 'looking', done: drainOthers() } as const
      state = looking
      await looking.done.finally(() => {
        if (state === looking) state = { kind: 'idle' }
      })
    } catch (error) {
      log.debug({ err: error }, 'waiting deliveries could not be read; they are looked for again')
    }
  }

  /** Runs the deliveries that are parked for a module that works here, except those that this code parked. */
  async function drainOthers(): Promise<void> {
    const drained = { settled: 0, stillParked: 0 }
    const isOver = () => state.kind !== 'looking'
    // this await lets the caller set the state first
    await undefined
    for (const [module, hash] of [...findWorkingModules(), [missingMappingModule, undefined] as const]) {
      const notFailedBy = [generation().id, ...(hash === undefined ? [] : [hash])]
      await drainModule(module, { notFailedBy, isOver, drained })
    }
    if (drained.settled + drained.stillParked > 0) log.info(drained, 'parked deliveries ran again')
  }

  return {
    drain,
    look: looks.look,
    async resume() {
      try {
        await rerunner.resumePending()
        await drain([...findWorkingModules().keys()], { again: true })
      } catch (error) {
        log.error({ err: error }, 'waiting deliveries could not be read; they run again at the next start')
      }
    },
    ...createParkedCalls({ store, rerunner, isStopped: () => state.kind === 'stopped' }),
    async stop() {
      const done = 'done' in state && state.kind !== 'looking' ? state.done : Promise.resolve(nothingDrained)
      state = { kind: 'stopped', done }
      await Promise.all([done, looks.stop()])
    },
  }
}

/**
 * ```
 *        look()                at nextAt           it ends
 *  idle ────────▶ planned ─────────────────▶ looking ─────▶ idle
 *
 *  any ── stop() ──▶ stopped
 * ```
 * `nextAt`: the earliest time of the next call of `lookOnce`, `lookEveryMs` after the last one, in milliseconds of `performance.now`.
 */
type LookState =
  | { readonly kind: 'idle'; readonly nextAt: number }
  | { readonly kind: 'planned'; readonly timer: NodeJS.Timeout }
  | { readonly kind: 'looking'; readonly done: Promise<void> }
  | { readonly kind: 'stopped' }

/** Calls `lookOnce`, which never rejects, at most once every `lookEveryMs`. */
function createLookScheduler(lookOnce: () => Promise<void>): { look(): void; stop(): Promise<void> } {
  let state: LookState = { kind: 'idle', nextAt: Number.NEGATIVE_INFINITY }

  function begin(): void {
    const nextAt = performance.now() + lookEveryMs
    const done = lookOnce().finally(() => {
      if (state.kind === 'looking') state = { kind: 'idle', nextAt }
    })
    state = { kind: 'looking', done }
  }

  return {
    look() {
      if (state.kind !== 'idle') return
      const waitMs = Math.max(0, state.nextAt - performance.now())
      state = { kind: 'planned', timer: setTimeout(begin, waitMs).unref() }
    },
    async stop() {
      const last = state
      state = { kind: 'stopped' }
      if (last.kind === 'planned') clearTimeout(last.timer)
      if (last.kind === 'looking') await last.done
    },
  }
}
