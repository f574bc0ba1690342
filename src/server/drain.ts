// What was parked for a module runs again once the module is mended: oldest first, one at a time, once per generation.
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
   * Runs what is parked for these modules through the current generation, and steps over what it has parked itself, unless
   * `again` is set. Asked while it is at work, it begins anew with all that was asked for. Resolves when all of it is done;
   * what is not reached, since the process ends or the store cannot be written, is parked as before. Never rejects.
   */
  drain(modules: readonly string[], options?: { readonly again?: boolean }): Promise<Drained>
  /**
   * At the start of the gateway: runs deliveries that were pending at the last stop, then those that are parked for a module that
   * works now. Never rejects.
   */
  resume(): Promise<void>
  /** Ends after the delivery that it is at. */
  stop(): Promise<void>
}

export function createDrain({ store, rerunner, generation, log }: DrainParts): Drain {
  const wanted = new Set<string>()
  /** Those that this generation parked, and that shall run nevertheless. */
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

  /** One walk through each module from the oldest to the newest, left at once where `isOver`. */
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
