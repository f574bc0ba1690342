// /metrics for Prometheus: counters since the start, and gauges that are read from the store on each request. No label comes from a request.
import { Counter, Gauge, Registry } from 'prom-client'
import type { Counted, Meter } from '../model/log.ts'
import type { Clock, StoreReader } from '../store/store.ts'

export type Metrics = {
  readonly meter: Meter
  readonly contentType: string
  /** The page in Prometheus' text format. Rejects if the store cannot be read. */
  page(): Promise<string>
}

export function createMetrics({
  store,
  clock,
}: {
  store: Pick<StoreReader, 'counts' | 'dueSince' | 'waitingBytes'>
  clock: Clock
}): Metrics {
  const registry = new Registry()
  const registers = [registry]
  const counter = <Label extends string>(name: keyof Counted, help: string, labelNames: Label[]) =>
    new Counter({ name: `hookloom_${name}_total`, help, labelNames, registers })
  const counters: { [Name in keyof Counted]: { inc(labels: Counted[Name]): void } } = {
    deliveries: counter('deliveries', 'Accepted requests, by outcome.', ['outcome']),
    refusals: counter('refusals', 'Refused requests, by problem code.', ['code']),
    steps: counter('steps', 'Steps of jobs, by outcome.', ['step', 'outcome']),
    reloads: counter('reloads', 'Saved configurations and modules, by outcome: live or refused.', ['outcome']),
  }
  const gauge = (name: string, help: string, labelNames: string[] = []) =>
    new Gauge({ name: `hookloom_${name}`, help, labelNames, registers })
  const kept = gauge('kept_deliveries', 'Deliveries in the store, by state.', ['state'])
  const jobs = gauge('jobs', 'Jobs in the store, by state.', ['state'])
  const bytes = gauge(
    'waiting_bytes',
    'Bytes of parked deliveries and unfinished jobs. The limit is store.maxWaitingBytes.',
  )
  const age = gauge('queue_age_seconds', 'Seconds that the oldest due job has waited.')

  return {
    meter: (name, labels) => counters[name].inc(labels),
    contentType: registry.contentType,
    async page() {
      const [counts, dueSince, waiting] = await Promise.all([store.counts(), store.dueSince(), store.waitingBytes()])
      bytes.set(waiting)
      for (const [state, count] of Object.entries(counts.deliveries)) kept.set({ state }, count)
      for (const [state, count] of Object.entries(counts.jobs)) jobs.set({ state }, count)
      age.set(dueSince === undefined ? 0 : Math.max(0, clock() - dueSince) / 1_000)
      return registry.metrics()
    },
  }
}
