// Connects the worker, the heartbeats and the alerts with the live configuration.
import { randomBytes } from 'node:crypto'
import type { OwnChannel } from '../model/channel.ts'
import { hasNoChannel, noChannelWarning } from '../model/agents-rules.ts'
import type { Config } from '../model/config.ts'
import type { Log, Meter } from '../model/log.ts'
import type { NewJob } from '../store/records.ts'
import type { Clock, Store } from '../store/store.ts'
import { toAgent, listAgentIds } from './agents.ts'
import { type Alerts, createAlerts } from './alerts.ts'
import { createHeartbeats, type Heartbeats } from './heartbeats.ts'
import { createRunnersAndChannels, type RunnerAndChannelParts } from './runners-and-channels.ts'
import { createWorkspaceReader } from '../runners/workspace.ts'
import { createWorker } from './worker.ts'

export type EffectsOptions = RunnerAndChannelParts & {
  /** The config directory: relative workspaces start there. */
  readonly dir: string
  readonly config: () => Config
  /** Channels in code, as they are live with the configuration. */
  readonly ownChannels: () => readonly OwnChannel[]
  readonly store: Store
  /** False: another gateway queues the heartbeats of the intervals. Default: true. */
  readonly keepsTime?: () => boolean
  readonly clock: Clock
  readonly newId: () => string
  readonly meter: Meter
  readonly log: Log
}

export type Effects = {
  start(): void
  /** Called when jobs are stored, of a new delivery or of one that waited. */
  accepted(jobs: readonly NewJob[]): void
  /** Called when a job that is stored already may run again. */
  lookForJobs(): void
  /** Called when a delivery is parked. */
  readonly parked: Alerts['parked']
  /** Called when a sender handed over a secret. */
  readonly handedOver: Alerts['handedOver']
  /** Called when the configuration has changed. */
  refresh(): void
  readonly timekeeperChanged: Heartbeats['timekeeperChanged']
  readonly lookForWakes: Heartbeats['lookForWakes']
  /** Starts nothing new, waits `graceMs` for running jobs, and releases the rest. */
  stop(options: { graceMs: number }): Promise<void>
}

export function createEffects(options: EffectsOptions): Effects {
  const { dir, config, ownChannels, store, clock, newId, log } = options
  const runnersAndChannelsOf = createRunnersAndChannels(options)
  const worker = createWorker({
    store,
    readWorkspaceFile: createWorkspaceReader(log),
    newBoundaryId: () => randomBytes(8).toString('hex'),
    settings() {
      const now = config()
      return { config: now, agent: (id) => toAgent(now, id, dir), ...runnersAndChannelsOf(now, ownChannels()) }
    },
    woken: (agentId) => heartbeats.wake(agentId),
    died: (death) => alerts.died(death),
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
    added: () => worker.lookForJobs(),
    meter: options.meter,
    log,
  })
  const heartbeats = createHeartbeats({
    store,
    agents: () => listAgentIds(config()).map((id) => toAgent(config(), id, dir)),
    clock,
    newId,
    ...(options.keepsTime && { keepsTime: options.keepsTime }),
    added: () => worker.lookForJobs(),
    log,
  })

  return {
    start() {
      if (hasNoChannel(config())) log.warn({}, noChannelWarning)
      worker.start()
      void heartbeats.start()
    },
    accepted(jobs) {
      if (jobs.some(({ state }) => state === 'queued')) worker.lookForJobs()
      for (const { agentId, wakes } of jobs.flatMap(({ events }) => events)) if (wakes) heartbeats.wake(agentId)
    },
    lookForJobs: worker.lookForJobs,
    parked: alerts.parked,
    handedOver: alerts.handedOver,
    refresh: heartbeats.refresh,
    timekeeperChanged: heartbeats.timekeeperChanged,
    lookForWakes: heartbeats.lookForWakes,
    async stop(grace) {
      heartbeats.stop()
      await worker.stop(grace)
    },
  }
}
