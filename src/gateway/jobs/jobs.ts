// Connects the worker, the heartbeats and the alerts with the live configuration.
import { randomBytes } from 'node:crypto'
import type { PlannedAction } from '../../core/model/action.ts'
import type { OwnParts } from '../../model/plugin.ts'
import { hasNoChannel, noChannelWarning } from '../../model/config/agents-rules.ts'
import type { Config } from '../../model/config/config.ts'
import type { Log } from '../../base/log.ts'
import type { Meter } from '../../model/meter.ts'
import type { Runner, Slots } from '../../model/runner.ts'
import type { ReadSourceFiles } from '../../model/source-files.ts'
import type { Duty } from '../../store/named-leases.ts'
import type { FlowCancel, NewJob } from '../../store/records.ts'
import type { Clock, Store } from '../../store/store.ts'
import { toAgent, listAgentIds } from './agents.ts'
import { createAlertHeartbeat } from './alert-heartbeat.ts'
import { type Alerts, createAlerts } from './alerts.ts'
import { createBudgetWatch } from './budget-watch.ts'
import { createHeartbeats, type Heartbeats } from './heartbeats.ts'
import { createRunnersAndChannels, type RunnerAndChannelParts } from './runners-and-channels.ts'
import { createWorkspaceReader } from '../../plugins/runners/shared/workspace.ts'
import { findTargets } from './targets.ts'
import { createWorker } from './worker.ts'
import { toErrorName } from '../../base/exceptions.ts'
import { sleepUntilAborted } from '../../base/time.ts'

/** The pause after the store failed to wake the turns that wait for a budget. */
const wakeRetryMs = 5_000

export type JobsOptions = RunnerAndChannelParts & {
  /** The config directory: relative workspaces start there. */
  readonly dir: string
  readonly config: () => Config
  /** The live channels that are written in code. */
  readonly ownParts: () => OwnParts
  readonly readSourceFiles: ReadSourceFiles
  readonly store: Store
  /** `heartbeats`: to queue the regular heartbeats. `senders`: to watch the senders and to ping the outside monitor. */
  readonly duties: Readonly<Record<'heartbeats' | 'senders', Duty>>
  readonly clock: Clock
  readonly newId: () => string
  readonly meter: Meter
  readonly log: Log
}

export type Jobs = {
  start(): void
  /** Looks for the jobs of a new delivery, or of one that waited before. `cancel`: whether the delivery ends the jobs of a key. */
  lookForNew(jobs: readonly NewJob[], cancel?: FlowCancel): void
  /** Called when the jobs of a delivery are stored. */
  onAccepted(jobs: readonly NewJob[]): void
  /** Called when a stored job may run again. */
  lookForJobs(): void
  /** The running jobs of this gateway, and their maximum number. */
  readonly slots: () => Slots
  /** The reply so far of a job that runs on this gateway. */
  readonly replySoFar: (jobId: string) => string | undefined
  /** Called when a delivery is parked. */
  readonly onParked: Alerts['reportParked']
  /** Called when a sender handed over a secret. */
  readonly reportSecret: Alerts['reportSecret']
  /** Queues a message about what the API of a sender says. */
  readonly reportRecovery: Alerts['reportRecovery']
  /** Queues a message about a sender or its payloads. */
  readonly alert: Alerts['alert']
  /** Queues a test message. */
  readonly testAlert: Alerts['sendTest']
  /** The runner of a section of the live configuration; undefined if there is no such section. */
  readonly findRunner: (name: string) => Runner | undefined
  /** Where the text of an action would go now. */
  findTargets(planned: PlannedAction): ReturnType<typeof findTargets>
  /** Called when the configuration has changed. */
  refresh(): void
  readonly reloadSchedules: Heartbeats['reloadSchedules']
  readonly lookForWakes: Heartbeats['lookForWakes']
  /** Starts nothing new, waits `graceMs` for running jobs, and releases the rest. */
  stop(options: { graceMs: number }): Promise<void>
}

export function createJobs(options: JobsOptions): Jobs {
  const { dir, config, ownParts, store, clock, newId, log } = options
  const findRunnersAndChannels = createRunnersAndChannels(options)
  const worker = createWorker({
    store,
    readWorkspaceFile: createWorkspaceReader(log),
    readSourceFiles: options.readSourceFiles,
    newBoundaryId: () => randomBytes(8).toString('hex'),
    settings() {
      const current = config()
      return {
        config: current,
        agent: (id) => toAgent(current, id, dir),
        ...findRunnersAndChannels(current, ownParts()),
      }
    },
    onWake: (agentId) => heartbeats.wake(agentId),
    onAlertAttempt: (attempt) => pings.noteAttempt(attempt),
    onDeath: (death) => alerts.reportDeadJob(death),
    onCrowded: (session) => alerts.reportCrowded(session),
    onSettled: (settled) => budgets.onSettled(settled.map(({ name }) => name)),
    onBudgetWait: (name) => budgets.onWait(name),
    clock,
    random: Math.random,
    meter: options.meter,
    log,
  })
  const alerts = createAlerts({
    store,
    config,
    clock,
    newId,
    onAdded: () => worker.lookForTasks(),
    meter: options.meter,
    log,
  })
  const budgets = createBudgetWatch({ store, config, clock, alert: alerts.reportBudget, log })
  const heartbeats = createHeartbeats({
    store,
    agents: () => listAgentIds(config()).map((id) => toAgent(config(), id, dir)),
    clock,
    newId,
    hasDuty: options.duties.heartbeats.isHeld,
    onAdded: () => worker.lookForTasks(),
    log,
  })

  const pings = createAlertHeartbeat({
    store,
    config,
    channels: () => findRunnersAndChannels(config(), ownParts()).channels,
    isPinging: options.duties.senders.isHeld,
    clock,
    log,
  })

  /** The budgets as JSON when waiting turns were last woken. Undefined at the start: the configuration may have changed while no gateway ran. */
  let knownBudgets: string | undefined
  const stopping = new AbortController()

  /** Wakes the turns that wait for a budget, because its limit may have been raised or removed. */
  async function wakeForNewBudgets(): Promise<void> {
    for (let failures = 0; !stopping.signal.aborted; failures += 1) {
      const next = JSON.stringify(config().budgets)
      if (next === knownBudgets) return
      try {
        if (await store.wakeBudgets()) worker.lookForJobs()
        knownBudgets = next
        return
      } catch (thrown) {
        const what = 'the turns that wait for a budget could not be woken; it is tried again'
        if (failures === 0) log.warn({ thrown: toErrorName(thrown) }, what)
      }
      await sleepUntilAborted(wakeRetryMs, stopping.signal)
    }
  }

  return {
    start() {
      if (hasNoChannel(config())) log.warn({}, noChannelWarning)
      worker.start()
      void heartbeats.start()
      void wakeForNewBudgets()
      pings.start()
    },
    lookForNew(jobs, cancel) {
      if (jobs.some(({ standsFor }) => standsFor !== undefined)) worker.lookForTasks()
      else if (cancel !== undefined || jobs.some(({ state }) => state === 'queued')) worker.lookForJobs()
    },
    onAccepted(jobs) {
      for (const { events } of jobs) for (const { agentId, wakes } of events) if (wakes) heartbeats.wake(agentId)
    },
    // when a run is queued again, its tasks begin again
    lookForJobs: worker.lookForTasks,
    slots: worker.slots,
    replySoFar: worker.replySoFar,
    onParked: alerts.reportParked,
    reportSecret: alerts.reportSecret,
    reportRecovery: alerts.reportRecovery,
    alert: alerts.alert,
    testAlert: alerts.sendTest,
    findRunner: (name) =>
      Object.hasOwn(config().runners, name) ? findRunnersAndChannels(config(), ownParts()).runner(name) : undefined,
    findTargets: (planned) =>
      findTargets(planned, { store, config: config(), ...findRunnersAndChannels(config(), ownParts()) }),
    refresh() {
      heartbeats.refresh()
      void wakeForNewBudgets()
    },
    reloadSchedules: heartbeats.reloadSchedules,
    lookForWakes: heartbeats.lookForWakes,
    async stop(grace) {
      stopping.abort()
      heartbeats.stop()
      await worker.stop(grace)
      await pings.stop()
    },
  }
}
