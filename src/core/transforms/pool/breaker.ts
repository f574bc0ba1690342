// Limits how often code costs a worker, because a worker takes 100 ms to start. Code that was stopped three times within a minute gets no calls for
// a minute, and then one trial call. Each version of a module begins with a closed breaker. Only the newest version that was called has a breaker.
// ```
// closed ──3 stops within a minute──▶ open ──a minute──▶ half-open: one call
//   ▲                                    ▲                    │
//   └──── a new version, or a save ──────┼────◀── it ended ───┤
//                                        └─ stopped or unrun ─┘
// ```
import { Problem } from '../../model/problem.ts'
import { toModuleLabel } from '../root.ts'
import type { CallEnd } from './calls-in-flight.ts'

const stopsToOpen = 3
const minuteMs = 60_000

type State = {
  /** The times of the last stopped calls, while the breaker is closed. */
  stops: number[]
  /** Undefined while the breaker is closed. */
  openUntil: number | undefined
  /** True while the single call of a half-open breaker runs. */
  isTrying: boolean
  timer: NodeJS.Timeout | undefined
}

/** Whether a call may begin; otherwise the Problem with which it fails. `trial`: the only call of a half-open breaker. */
type Admission = 'free' | 'trial' | Problem

/** A built module. Newer code has a higher `version`. */
type Versioned = { readonly module: string; readonly version: number }

type Breakers = {
  admit(code: Versioned): Admission
  /** Reports the end of an admitted call. */
  recordEnd(code: Versioned, call: { end: CallEnd; isTrial: boolean }): void
  /** Call it when the same version was saved again. */
  reset(code: Versioned): void
  close(): void
}

type BreakerEvents = {
  /** Called when the minute is over: the next call is a trial. */
  onHalfOpen(module: string): void
  /** Called when the trial call ended by itself, which closes the breaker. */
  onRecovered(module: string): void
}

export function createBreakers({ clock, onHalfOpen, onRecovered }: { clock: () => number } & BreakerEvents): Breakers {
  const states = new Map<string, State>()
  const newest = new Map<string, number>()
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
  /** Records that the version is used. Returns false if a newer one was used before. A newer version closes the breaker. */
  const recordVersion = ({ module, version }: Versioned) => {
    const known = newest.get(module) ?? version
    if (version > known) forget(module)
    newest.set(module, Math.max(known, version))
    return version >= known
  }
  const recordStop = (module: string, isTrial: boolean) => {
    const now = clock()
    const state = states.get(module) ?? { stops: [], openUntil: undefined, isTrying: false, timer: undefined }
    states.set(module, state)
    if (state.openUntil !== undefined) {
      // any other call was in flight when the breaker opened, so its end adds no information
      if (isTrial) open(module, state)
      return
    }
    state.stops = [...state.stops.filter((at) => now - at < minuteMs), now]
    if (state.stops.length >= stopsToOpen) open(module, state)
  }
  return {
    admit: (code) => {
      const { module } = code
      if (!recordVersion(code)) return 'free'
      const state = states.get(module)
      if (state?.openUntil === undefined) return 'free'
      if (clock() >= state.openUntil && !state.isTrying) {
        state.isTrying = true
        return 'trial'
      }
      return buildOpenProblem(module, Math.max(clock(), state.openUntil))
    },
    recordEnd: (code, { end, isTrial }) => {
      const { module } = code
      if (!recordVersion(code)) return
      if (end === 'stopped') recordStop(module, isTrial)
      else if (isTrial) recordTrial(module, end)
    },
    reset: (code) => {
      if (recordVersion(code)) forget(code.module)
    },
    close: () => {
      for (const module of states.keys()) forget(module)
    },
  }

  function recordTrial(module: string, end: Exclude<CallEnd, 'stopped'>): void {
    const state = states.get(module)
    // the code may have been saved while the call ran
    if (state?.isTrying !== true) return
    if (end === 'unrun') return open(module, state)
    forget(module)
    onRecovered(module)
  }
}

function buildOpenProblem(module: string, until: number): Problem {
  const label = toModuleLabel(module)
  const time = new Date(until).toTimeString().slice(0, 8)
  const detail = `${label} was stopped three times within a minute. Its deliveries are parked until ${time}, or until you save it.`
  return new Problem('transform-failed', detail)
}
