import type { ReplayClass } from './api/replay.ts'
import type { FlowEnd } from '../core/model/flow.ts'
import type { DeliveryState } from '../core/model/delivery.ts'
import type { Step, StepKind } from './job.ts'
import type { ProblemCode } from '../core/model/problem.ts'

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
