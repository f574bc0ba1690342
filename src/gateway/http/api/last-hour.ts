// The last hour by the minute, in memory, for the plots of the page. Prometheus keeps longer histories.
import type { MeterLabels, Meter } from '../../../model/meter.ts'
import type { Clock } from '../../../store/store.ts'
import { toIsoTime } from '../../deliveries/records.ts'
import type { HookCounts } from '../../../model/api/bench.ts'
import type { MinuteFields } from '../../../model/api/health.ts'

const minuteMs = 60_000
const minutesKept = 60
/** The number of latencies that are kept for each minute. Later ones replace the oldest. */
const samples = 200

type Minute = {
  readonly at: number
  readonly deliveries: Record<MeterLabels['deliveries']['outcome'], number>
  refused: number
  readonly runs: { done: number; retried: number; dead: number }
  readonly reloads: { live: number; refused: number }
  readonly latencies: number[]
  measured: number
  /** The counts of each hook, by its name in the metrics. */
  readonly hooks: Map<string, { -readonly [Name in keyof HookCounts]: number }>
}

export type LastHour = {
  readonly meter: Meter
  minutes(): MinuteFields[]
  /** The counts of a hook, by its name in the metrics. */
  hookCounts(name: string): HookCounts
}

export function createLastHour(clock: Clock): LastHour {
  let minutes: Minute[] = []

  function findMinute(): Minute {
    const at = Math.floor(clock() / minuteMs) * minuteMs
    const last = minutes.at(-1)
    if (last?.at === at) return last
    const minute: Minute = {
      at,
      deliveries: { pending: 0, parked: 0, accepted: 0, skipped: 0, dropped: 0, duplicate: 0 },
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
    const counts = { deliveries: 0, parked: 0, duplicates: 0, refused: 0 }
    hooks.set(name, counts)
    return counts
  }

  const readMinutes = () => minutes.filter(({ at }) => at > clock() - minutesKept * minuteMs)

  return {
    meter(name, labels, seconds) {
      const minute = findMinute()
      if ('hook' in labels && 'outcome' in labels) {
        minute.deliveries[labels.outcome] += 1
        const counts = findHook(minute, labels.hook)
        if (labels.outcome === 'duplicate') counts.duplicates += 1
        else counts.deliveries += 1
        if (labels.outcome === 'parked') counts.parked += 1
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
    minutes: () =>
      readMinutes().map(({ at, deliveries, refused, runs, reloads, latencies }) => ({
        at: toIsoTime(at),
        deliveries,
        refused,
        runs,
        reloads,
        latencyMs: toPercentiles(latencies),
      })),
    hookCounts(name) {
      const total = { deliveries: 0, parked: 0, duplicates: 0, refused: 0 }
      for (const { hooks } of readMinutes()) {
        const counts = hooks.get(name)
        if (counts === undefined) continue
        total.deliveries += counts.deliveries
        total.parked += counts.parked
        total.duplicates += counts.duplicates
        total.refused += counts.refused
      }
      return total
    },
  }
}

function toPercentiles(latencies: readonly number[]): MinuteFields['latencyMs'] {
  const sorted = latencies.toSorted((one, other) => one - other)
  const at = (share: number) => Math.round((sorted[Math.floor((sorted.length - 1) * share)] ?? 0) * 10) / 10
  return sorted.length === 0 ? null : { p50: at(0.5), p95: at(0.95) }
}
