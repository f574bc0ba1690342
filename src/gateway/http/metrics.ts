// /metrics for Prometheus: counters since the start, and gauges read from the store on each request. No label comes from a request.
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { readBudgets } from '../deliveries/budgets.ts'
import type { Config } from '../../model/config/config.ts'
import type { MeterLabels, Meter } from '../../model/meter.ts'
import type { BudgetFields } from '../../model/api/operations.ts'
import type { Hold } from '../../store/records.ts'
import type { Clock, StoreReader } from '../../store/store.ts'
import type { WaitCounts } from '../../store/waits.ts'
import { addProcessMetrics } from './process-metrics.ts'
import { createLastHour, type LastHour } from './api/last-hour.ts'

export type Metrics = {
  readonly meter: Meter
  readonly contentType: string
  /** What is counted in memory, for the admin API. */
  readonly lastHour: Omit<LastHour, 'meter'>
  /** The page in Prometheus' text format. Rejects if the store cannot be read. */
  renderPage(): Promise<string>
}

export function createMetrics({
  store,
  config,
  clock,
  version = 'unknown',
}: {
  store: Pick<StoreReader, 'accounts' | 'counts' | 'dueForMs' | 'holds' | 'waitCounts' | 'waitingBytes'>
  config: () => Pick<Config, 'budgets'>
  clock: Clock
  /** The version of the program. */
  version?: string | undefined
}): Metrics {
  const registry = new Registry()
  addProcessMetrics(registry, version)
  const registers = [registry]
  const counter = <Label extends string>(name: keyof MeterLabels, help: string, labelNames: Label[]) =>
    new Counter({ name: `hookloom_${name}_total`, help, labelNames, registers })
  const counters: { [Name in keyof MeterLabels]: { inc(labels: MeterLabels[Name], value?: number): void } } = {
    deliveries: counter(
      'deliveries',
      'Accepted requests, by outcome and hook. The outcome duplicate: it repeats a delivery.',
      ['outcome', 'hook'],
    ),
    refusals: counter('refusals', 'Refused requests, by problem code and hook.', ['code', 'hook']),
    steps: counter('steps', 'Steps of jobs, by outcome.', ['step', 'outcome']),
    turns: counter('turns', 'Turns of agents, by outcome. The agent * is one that the configuration does not list.', [
      'agent',
      'outcome',
    ]),
    flow_ends: counter(
      'flow_ends',
      'Runs that their flow ended while they waited to start or for a retry, by the value of onNew or the key that ended them.',
      ['by'],
    ),
    failures: counter('failures', 'Jobs that died, deliveries that were parked, and alerts that died.', ['what']),
    tokens: counter('tokens', 'Tokens of turns, as their runners reported.', ['agent', 'model', 'direction']),
    cost_usd: counter('cost_usd', 'Cost of turns in US dollars, by the prices of the configuration.', [
      'agent',
      'model',
    ]),
    shadow: counter('shadow', 'Runs of shadows, by hook and by how their outcome differs; dropped: it did not run.', [
      'hook',
      'class',
    ]),
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
    'Bytes of parked and pending deliveries and of unfinished jobs. The limit is store.maxWaitingBytes.',
  )
  const age = gauge('queue_age_seconds', 'Seconds that the oldest due job has waited.')

  const waits = gauge(
    'waits',
    'What waits, by reason: keys of flows that are quiet, blocked by another turn, or ready for a limit or a slot; runs that are paused or wait for a budget.',
    ['reason'],
  )
  const pauses = gauge(
    'pauses',
    'Pauses, by kind: pause of an operator, turns (too many of a session), provider (asked to wait).',
    ['kind'],
  )

  const budgetParts = ['budget', 'unit']
  const budgetGauges = {
    limit: gauge(
      'budget_limit',
      'Limit of a budget in its present period, by unit: usd, tokens or turns.',
      budgetParts,
    ),
    spent: gauge('budget_spent', 'What the turns of the period have used of a budget, by unit.', budgetParts),
    reserved: gauge('budget_reserved', 'What the turns that run now may use of a budget, by unit.', budgetParts),
  }
  const budgetWaiting = gauge('budget_waiting', 'Runs that wait for a budget.', ['budget'])

  function setBudgets(budgets: readonly BudgetFields[]): void {
    for (const each of [...Object.values(budgetGauges), budgetWaiting]) each.reset()
    for (const budget of budgets) {
      budgetWaiting.set({ budget: budget.name }, budget.waiting)
      for (const unit of ['usd', 'tokens', 'turns'] as const) {
        const { limit, spent, reserved } = budget[unit]
        const labels = { budget: budget.name, unit }
        if (limit !== null) budgetGauges.limit.set(labels, limit)
        budgetGauges.spent.set(labels, spent)
        budgetGauges.reserved.set(labels, reserved)
      }
    }
  }

  function setWaits(counts: WaitCounts, holds: readonly Hold[]): void {
    for (const [reason, count] of Object.entries(counts)) waits.set({ reason }, count)
    for (const kind of ['pause', 'turns', 'provider'] as const)
      pauses.set({ kind }, holds.filter((hold) => hold.kind === kind).length)
  }

  const lastHour = createLastHour(clock)

  return {
    meter(name, labels, value) {
      lastHour.meter(name, labels, value)
      if (name === 'tokens' || name === 'cost_usd') return counters[name].inc(labels, value)
      counters[name].inc(labels)
      if (value === undefined) return
      if ('hook' in labels) deliverySeconds.observe({ hook: labels.hook }, value)
      else if ('step' in labels) stepSeconds.observe({ step: labels.step }, value)
    },
    lastHour,
    contentType: registry.contentType,
    async renderPage() {
      const [counts, dueForMs = 0, waiting, budgets, waitCounts, holds] = await Promise.all([
        store.counts(),
        store.dueForMs(),
        store.waitingBytes(),
        readBudgets(store, config(), clock()),
        store.waitCounts(),
        store.holds(),
      ])
      // no await from here until `metrics` has read the gauges: two calls at the same time share them
      setBudgets(budgets)
      setWaits(waitCounts, holds)
      bytes.set(waiting)
      for (const [state, count] of Object.entries(counts.deliveries)) kept.set({ state }, count)
      for (const [state, count] of Object.entries(counts.jobs)) jobs.set({ state }, count)
      age.set(dueForMs / 1_000)
      return registry.metrics()
    },
  }
}
