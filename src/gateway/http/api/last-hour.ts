// The last hour by the minute, for the plots of the page. Deliveries are counted in the store. What the store does not have is counted here, in memory,
// since the start of this gateway. Prometheus keeps longer histories.
import type { Meter } from '../../../model/meter.ts'
import type { Tally } from '../../../store/counts.ts'
import type { Clock } from '../../../store/store.ts'
import { deliveryStates } from '../../../core/model/delivery.ts'
import { toIsoTime } from '../../deliveries/records.ts'
import type { HookCounts } from '../../../model/api/bench.ts'
import type { MinuteFields } from '../../../model/api/health.ts'
import type { HourOfStore } from './hour-of-store.ts'

const minuteMs = 60_000
const minutesKept = 60
/** The number of latencies that are kept for each minute. Later ones replace the oldest. */
const samples = 200

type Minute = {
  readonly at: number
  duplicates: number
  refused: number
  readonly runs: { done: number; retried: number; dead: number }
  readonly reloads: { live: number; refused: number }
  readonly latencies: number[]
  measured: number
  /** The counts of each hook, by its name in the metrics. */
  readonly hooks: Map<string, { -readonly [Name in keyof OwnCounts]: number }>
}

type OwnCounts = Pick<HookCounts, 'duplicates' | 'refused'>

export type LastHour = {
  readonly meter: Meter
  /** Since when duplicates, refusals, runs, reloads and latencies are counted: the start of the gateway, if it is less than an hour ago. */
  since(): number
  minutes(hour: HourOfStore): MinuteFields[]
  /** The counts of a hook. `names`: the hooks with their own counts; undefined asks for all other names together. */
  hookCounts(name: string | undefined, hour: HourOfStore, names: ReadonlySet<string>): HookCounts
}

export function createLastHour(clock: Clock): LastHour {
  let minutes: Minute[] = []
  const startedAt = clock()

  function findMinute(): Minute {
    const at = Math.floor(clock() / minuteMs) * minuteMs
    const last = minutes.at(-1)
    if (last?.at === at) return last
    const minute: Minute = {
      at,
      duplicates: 0,
      refused: 0,
      runs: { done: 0, retried: 0, dead: 0 },
      reloads: { live: 0, refused: 0 },
      latencies: [],
      measured: 0,
      hooks: new Map(),
    }
    // if the clock was set back, the minutes that seem to be later are dropped
    minutes = [...minutes.filter((each) => each.at < at), minute].slice(-minutesKept)
    return minute
  }

  function findHook({ hooks }: Minute, name: string) {
    const known = hooks.get(name)
    if (known !== undefined) return known
    const counts = { duplicates: 0, refused: 0 }
    hooks.set(name, counts)
    return counts
  }

  const readMinutes = () => minutes.filter(({ at }) => at > clock() - minutesKept * minuteMs)

  return {
    meter(name, labels, seconds) {
      const minute = findMinute()
      if ('hook' in labels && 'outcome' in labels) {
        if (labels.outcome === 'duplicate') {
          minute.duplicates += 1
          findHook(minute, labels.hook).duplicates += 1
        }
        if (seconds !== undefined) minute.latencies[minute.measured++ % samples] = seconds * 1_000
      } else if (name === 'refusals') {
        minute.refused += 1
        if ('hook' in labels) findHook(minute, labels.hook).refused += 1
      } else if ('step' in labels && labels.step === 'run') {
        const { outcome } = labels
        minute.runs[outcome === 'retried' || outcome === 'dead' ? outcome : 'done'] += 1
      } else if (name === 'reloads' && 'outcome' in labels) {
        minute.reloads[labels.outcome === 'live' ? 'live' : 'refused'] += 1
      }
    },
    since: () => Math.max(startedAt, clock() - minutesKept * minuteMs),
    minutes(hour) {
      const own = new Map(readMinutes().map((minute) => [minute.at, minute]))
      const times = [...new Set([...own.keys(), ...hour.tallies.map(({ at }) => at)])]
      return times
        .toSorted((one, other) => one - other)
        .map((at) => {
          const { duplicates = 0, refused = 0, runs = noRuns, reloads = noReloads, latencies = [] } = own.get(at) ?? {}
          const tallies = hour.tallies.filter((tally) => tally.at === at)
          const deliveries = { ...countStates(tallies), duplicate: duplicates }
          return { at: toIsoTime(at), deliveries, refused, runs, reloads, latencyMs: toPercentiles(latencies) }
        })
    },
    hookCounts(name, hour, names) {
      const ofHook = hour.tallies.filter(({ hook }) => (name === undefined ? !names.has(hook) : hook === name))
      const { parked, ...others } = countStates(ofHook)
      const own = readMinutes().flatMap(({ hooks }) => hooks.get(name ?? '*') ?? [])
      return {
        deliveries: parked + sum(Object.values(others)),
        parked,
        duplicates: sum(own.map(({ duplicates }) => duplicates)),
        refused: sum(own.map(({ refused }) => refused)),
      }
    },
  }
}

const noRuns = { done: 0, retried: 0, dead: 0 }
const noReloads = { live: 0, refused: 0 }

const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0)

function countStates(tallies: readonly Tally[]) {
  const count = (wanted: Tally['state']) => sum(tallies.map((tally) => (tally.state === wanted ? tally.count : 0)))
  // as: `deliveryStates` has every state once
  return Object.fromEntries(deliveryStates.map((state) => [state, count(state)])) as Record<Tally['state'], number>
}

function toPercentiles(latencies: readonly number[]): MinuteFields['latencyMs'] {
  const sorted = latencies.toSorted((one, other) => one - other)
  const at = (share: number) => Math.round((sorted[Math.floor((sorted.length - 1) * share)] ?? 0) * 10) / 10
  return sorted.length === 0 ? null : { p50: at(0.5), p95: at(0.95) }
}
