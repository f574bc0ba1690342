// Code that had to be stopped three times within a minute gets no calls for a minute, then one: a worker costs 100 ms to start.
// ```
// closed ──3 strikes within a minute──▶ open ──a minute──▶ half-open: one call
//   ▲                                    ▲                    │
//   └───────── a new build ──────────────┼────◀── it ended ───┤
//                                        └────── a strike ────┘
// ```
import { Problem } from '../../model/problem.ts'
import { toModuleLabel } from '../root.ts'

const strikesToOpen = 3
const minuteMs = 60_000

type State = {
  /** Moments of the last strikes, while closed. */
  strikes: number[]
  /** Undefined: closed. */
  openUntil: number | undefined
  /** True while the one call of a half-open breaker runs. */
  isTrying: boolean
  timer: NodeJS.Timeout | undefined
}

/** `trial`: the one call of a half-open breaker. */
export type Admission = 'free' | 'trial' | Problem

export type Breakers = {
  /** Whether a call of the module may begin; else the Problem that it fails with. */
  admit(module: string): Admission
  /** Of each call that was admitted. `stopped`: its worker had to be ended because of it. */
  ended(module: string, call: { stopped: boolean; isTrial: boolean }): void
  /** The module's code is new. */
  reset(module: string): void
  close(): void
}

export type BreakerEvents = {
  /** The minute is over: the next call will be tried. Somebody may want to make one. */
  onHalfOpen(module: string): void
  /** A call was tried and ended by itself: all may come again. */
  onRecovered(module: string): void
}

export function createBreakers({ clock, onHalfOpen, onRecovered }: { clock: () => number } & BreakerEvents): Breakers {
  const states = new Map<string, State>()
  const forget = (module: string) => {
    clearTimeout(states.get(module)?.timer)
    states.delete(module)
  }
  const open = (module: string, state: State) => {
    clearTimeout(state.timer)
    state.openUntil = clock() + minuteMs
    state.isTrying = false
    state.timer = setTimeout(onHalfOpen, minuteMs, module).unref()
  }
  const strike = (module: string, isTrial: boolean) => {
    const now = clock()
    const state = states.get(module) ?? { strikes: [], openUntil: undefined, isTrying: false, timer: undefined }
    states.set(module, state)
    if (state.openUntil !== undefined) {
      // a call that was in flight when it opened says nothing new
      if (isTrial) open(module, state)
      return
    }
    state.strikes = [...state.strikes.filter((at) => now - at < minuteMs), now]
    if (state.strikes.length >= strikesToOpen) open(module, state)
  }
  return {
    admit: (module) => {
      const state = states.get(module)
      if (state?.openUntil === undefined) return 'free'
      if (clock() >= state.openUntil && !state.isTrying) {
        state.isTrying = true
        return 'trial'
      }
      return toProblem(module, Math.max(clock(), state.openUntil))
    },
    ended: (module, { stopped, isTrial }) => {
      if (stopped) strike(module, isTrial)
      else if (isTrial) recover(module)
    },
    reset: forget,
    close: () => {
      for (const module of states.keys()) forget(module)
    },
  }

  function recover(module: string): void {
    // a new build may have come while the call ran
    if (states.get(module)?.isTrying !== true) return
    forget(module)
    onRecovered(module)
  }
}

function toProblem(module: string, until: number): Problem {
  const label = toModuleLabel(module)
  const time = new Date(until).toTimeString().slice(0, 8)
  const detail = `${label} was stopped three times within a minute. Its deliveries are parked until ${time}, or until you save it.`
  return new Problem('transform-failed', detail)
}
