// The last hour by the minute, in memory, for the plots of the page. Prometheus keeps longer histories.
import type { MeterLabels, Meter } from '../../model/log.ts'
import type { Clock } from '../../store/store.ts'
import { toIsoTime } from '../../deliveries/records.ts'
import type { MinuteFields } from '../../model/api-types.ts'

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
}

export type LastHour = { readonly meter: Meter; minutes(): MinuteFields[] }

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
    }
    // a clock that was set back begins a new order
    minutes = [...minutes.filter((each) => each.at < at), minute].slice(-minutesKept)
    return minute
  }

  return {
    meter(name, labels, seconds) {
      const minute = findMinute()
      if ('hook' in labels && 'outcome' in labels) {
        minute.deliveries[labels.outcome] += 1
        if (seconds !== undefined) minute.latencies[minute.measured++ % samples] = seconds * 1_000
      } else if (name === 'refusals') minute.refused += 1
      else if ('step' in labels && labels.step === 'run') {
        const { outcome } = labels
        minute.runs[outcome === 'retried' || outcome === 'dead' ? outcome : 'done'] += 1
      } else if (name === 'reloads' && 'outcome' in labels) {
        minute.reloads[labels.outcome === 'live' ? 'live' : 'refused'] += 1
      }
    },
    minutes: () =>
      minutes
        .filter(({ at }) => at > clock() - minutesKept * minuteMs)
        .map(({ at, deliveries, refused, runs, reloads, latencies }) => ({
          at: toIsoTime(at),
          deliveries,
          refused,
          runs,
          reloads,
          latencyMs: toPercentiles(latencies),
        })),
  }
}

function toPercentiles(latencies: readonly number[]): MinuteFields['latencyMs'] {
  const sorted = latencies.toSorted((one, other) => one - other)
  const at = (share: number) => Math.round((sorted[Math.floor((sorted.length - 1) * share)] ?? 0) * 10) / 10
  return sorted.length === 0 ? null : { p50: at(0.5), p95: at(0.95) }
}
