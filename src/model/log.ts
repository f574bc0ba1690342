import { toLoggedError } from '../base/exceptions.ts'
import type { ReplayClass } from './api/replay.ts'
import type { FlowEnd } from './config/flow.ts'
import type { DeliveryState } from './delivery.ts'
import type { Step, StepKind } from './job.ts'
import type { ProblemCode } from './problem.ts'

/** The methods of pino that are used. Fields never contain a token, a signature or a payload. */
export type Log = {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} }

export const logLevels = ['debug', 'info', 'warn', 'error'] as const

/** Drops the lines below a level. The level is read for each line, because a reload may change it. */
export function withLevel(log: Log, level: () => (typeof logLevels)[number]): Log {
  const isLogged = (name: keyof Log) => logLevels.indexOf(name) >= logLevels.indexOf(level())
  const from =
    (name: keyof Log) =>
    (fields: object, message: string): void => {
      if (isLogged(name)) log[name](fields, message)
    }
  return { debug: from('debug'), info: from('info'), warn: from('warn'), error: from('error') }
}

/**
 * A log without texts that may quote a payload: the message of an exception (`err`), and the `frame` of a problem, which has the values of
 * a fixture or of an exception in the code. `hookloom check` shows frames.
 */
export function withoutQuotes(log: Log): Log {
  const from =
    (name: keyof Log) =>
    (fields: object, message: string): void => {
      const isQuoting = 'err' in fields || 'frame' in fields
      log[name](isQuoting ? removeQuotes(fields) : fields, message)
    }
  return { debug: from('debug'), info: from('info'), warn: from('warn'), error: from('error') }
}

function removeQuotes(fields: object): object {
  const kept = Object.entries(fields).filter(([name]) => name !== 'frame')
  return Object.fromEntries(kept.map(([name, value]) => [name, name === 'err' ? toLoggedError(value) : value]))
}

/** The counters and their labels. `hook` is a configured name (`toHookLabel`): names from requests would have no limit. */
export type MeterLabels = {
  /** Requests that were not refused, by outcome. `duplicate`: the request repeats a delivery. */
  readonly deliveries: { readonly outcome: DeliveryState | 'duplicate'; readonly hook: string }
  /** Refused requests, by problem code. */
  readonly refusals: { readonly code: ProblemCode; readonly hook: string }
  /** Steps of jobs, by outcome. */
  readonly steps: { readonly step: StepKind; readonly outcome: Step['state'] | 'retried' | 'dead' }
  /** Turns, by the id of the agent; `*` for an id that the configuration does not list. */
  readonly turns: { readonly agent: string; readonly outcome: Step['state'] | 'retried' | 'dead' }
  /** Runs that their flow ended while they waited to start or for a retry. */
  readonly flow_ends: { readonly by: FlowEnd }
  /** Jobs that died, deliveries that were parked, and alerts that died. */
  readonly failures: { readonly what: 'job' | 'delivery' | 'alert' }
  /** Tokens of turns, as their runners reported. An agent or a model that the configuration does not name is `*`. */
  readonly tokens: { readonly agent: string; readonly model: string; readonly direction: 'input' | 'output' }
  /** The cost of turns, in US dollars. */
  readonly cost_usd: { readonly agent: string; readonly model: string }
  /** Runs of shadows, by how their outcome differs. `dropped`: the shadow did not run. */
  readonly shadow: { readonly hook: string; readonly class: ReplayClass | 'dropped' }
  /** Saved files, by whether they went live or were refused. */
  readonly reloads: { readonly outcome: 'live' | 'refused' }
}

/** Counts one event, or `value` tokens or dollars. For a delivery or a step, `value` is its duration in seconds, for the histograms. */
export type Meter = <Name extends keyof MeterLabels>(name: Name, labels: MeterLabels[Name], value?: number) => void
