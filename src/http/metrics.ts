// /metrics for Prometheus: counters since the start, and gauges read from the store on each request. No label comes from a request.
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { MeterLabels, Meter } from '../model/log.ts'
import type { Clock, StoreReader } from '../store/store.ts'
import { createLastHour, type LastHour } from './api/last-hour.ts'

export type Metrics = {
  readonly meter: Meter
  readonly contentType: string
  /** The last hour, for the admin API. */
  minutes: LastHour['minutes']
  /** The page in Prometheus' text format. Rejects if the store cannot be read. */
  page(): Promise<string>
}

export function createMetrics({
  store,
  clock,
}: {
  store: Pick<StoreReader, 'counts' | 'dueForMs' | 'waitingBytes'>
  clock: Clock
}): Metrics {
  const registry = new Registry()
  const registers = [registry]
  const counter = <Label extends string>(name: keyof MeterLabels, help: string, labelNames: Label[]) =>
    new Counter({ name: `hookloom_${name}_total`, help, labelNames, registers })
  const counters: { [Name in keyof MeterLabels]: { inc(labels: MeterLabels[Name]): void } } = {
    deliveries: counter(
      'deliveries',
      'Accepted requests, by outcome and hook. The outcome duplicate: it repeats a delivery.',
      ['outcome', 'hook'],
    ),
    refusals: counter('refusals', 'Refused requests, by problem code and hook.', ['code', 'hook']),
    steps: counter('steps', 'Steps of jobs, by outcome.', ['step', 'outcome']),
    failures: counter('failures', 'Jobs that died, deliveries that were parked, and alerts that died.', ['what']),
    reloads: counter('reloads', 'Saved configurations and modules, by outcome: live or refused.', ['outcome']),
  }
  const deliverySeconds = new Histogram({
    name: 'hookloom_delivery_seconds',
    help: 'Seconds from the complete body of a delivery until it is stored, by hook.',
    labelNames: ['hook'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  })
  const stepSeconds = new Histogram({
    name: 'hookloom_step_seconds',
    help: 'Seconds of a step that was done, by step.',
    labelNames: ['step'],
    buckets: [0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600],
    registers,
  })
  const gauge = (name: string, help: string, labelNames: string[] = []) =>
    new Gauge({ name: `hookloom_${name}`, help, labelNames, registers })
  const kept = gauge('kept_deliveries', 'Deliveries in the store, by state.', ['state'])
  const jobs = gauge('jobs', 'Jobs in the store, by state.', ['state'])
  const bytes = gauge(
    'waiting_bytes',
    'Bytes of parked deliveries and unfinished jobs. The limit is store.maxWaitingBytes.',
  )
  const age = gauge('queue_age_seconds', 'Seconds that the oldest due job has waited.')

  const lastHour = createLastHour(clock)

  return {
    meter(name, labels, seconds) {
      lastHour.meter(name, labels, seconds)
      counters[name].inc(labels)
      if (seconds === undefined) return
      if ('hook' in labels) deliverySeconds.observe({ hook: labels.hook }, seconds)
      else if ('step' in labels) stepSeconds.observe({ step: labels.step }, seconds)
    },
    minutes: lastHour.minutes,
    contentType: registry.contentType,
    async page() {
      const [counts, dueForMs = 0, waiting] = await Promise.all([
        store.counts(),
        store.dueForMs(),
        store.waitingBytes(),
      ])
      bytes.set(waiting)
      for (const [state, count] of Object.entries(counts.deliveries)) kept.set({ state }, count)
      for (const [state, count] of Object.entries(counts.jobs)) jobs.set({ state }, count)
      age.set(dueForMs / 1_000)
      return registry.metrics()
    },
  }
}
