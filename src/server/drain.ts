// Runs the parked deliveries of a module again after its code is fixed: oldest first, one at a time, once for each generation.
import type { Log } from '../model/log.ts'
import type { Generation } from '../pipeline/generation.ts'
import type { Store } from '../store/store.ts'
import { type Rerunner, walkWaiting } from './rerun.ts'

export type DrainParts = {
  readonly store: Pick<Store, 'open' | 'counts'>
  readonly rerunner: Pick<Rerunner, 'rerun' | 'resumePending'>
  readonly generation: () => Generation
  readonly log: Log
}

export type Drained = { readonly settled: number; readonly stillParked: number }

export type Drain = {
  /**
   * Runs the parked deliveries of these modules through the current generation. Deliveries that this generation parked itself are
   * left out, unless `again` is set. A call while it runs adds its modules, and begins again. Resolves when all of them are done.
   * Deliveries that it does not reach, because the process stops or the store fails, stay parked. Never rejects.
   */
  drain(modules: readonly string[], options?: { readonly again?: boolean }): Promise<Drained>
  /**
   * At the start of the gateway: runs deliveries that were pending at the last stop, then those that are parked for a module that
   * works now. Never rejects.
   */
  resume(): Promise<void>
  /** Stops after the current delivery. */
  stop(): Promise<void>
}

export function createDrain({ store, rerunner, generation, log }: DrainParts): Drain {
  const wanted = new Set<string>()
  /** Whether deliveries that this generation parked run too. */
  let again = false
  let asked = 0
  let stopped = false
  let running: Promise<Drained> | undefined

  async function run(): Promise<Drained> {
    let settled = 0
    for (;;) {
      const mine = asked
      const pass = await runPass(() => asked !== mine || stopped)
      settled += pass.settled
      if (asked !== mine && !stopped) continue
      if (settled + pass.stillParked > 0) {
        log.info({ settled, stillParked: pass.stillParked }, 'parked deliveries ran again')
      }
      return { settled, stillParked: pass.stillParked }
    }
  }

  /** One walk through the modules, oldest delivery first. It ends early when `isOver`. */
  async function runPass(isOver: () => boolean): Promise<Drained> {
    const { id } = generation()
    let settled = 0
    let stillParked = 0
    for (const module of wanted) {
      for await (const open of walkWaiting({ store, query: { state: 'parked', waitsFor: module } })) {
        if (isOver()) return { settled, stillParked }
        if (!again && open.generation === id) continue
        const state = await rerunner.rerun(open)
        if (state === 'parked' || state === 'waiting') stillParked += 1
        else settled += 1
      }
    }
    return { settled, stillParked }
  }

  function drain(modules: readonly string[], options?: { readonly again?: boolean }): Promise<Drained> {
    if (modules.length === 0 || stopped) return running ?? Promise.resolve({ settled: 0, stillParked: 0 })
    for (const module of modules) wanted.add(module)
    again ||= options?.again === true
    asked += 1
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
    async resume() {
      try {
        await rerunner.resumePending()
        const sound = [...generation().transforms.values()].filter(({ problem }) => problem === undefined)
        const modules = sound.map(({ module }) => module)
        await drain(modules, { again: true })
      } catch (error) {
        log.error({ err: error }, 'waiting deliveries could not be read; they run again at the next start')
      }
    },
    async stop() {
      stopped = true
      await running
    },
  }
}
