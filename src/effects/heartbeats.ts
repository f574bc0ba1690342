// When the main session of an agent has a turn of its own: at its intervals, and soon after somebody asked for one. Each turn is a job like any other.
import type { HeartbeatConfig } from '../model/agents-config.ts'
import type { Log } from '../model/log.ts'
import type { Clock, Store } from '../store/store.ts'
import { toActiveMoment } from './hours.ts'
import { toLane } from './plan.ts'
import { mainSessionKey } from './summary.ts'
import { toThrownName } from './thrown.ts'

export type HeartbeatOptions = {
  readonly store: Pick<Store, 'addTask' | 'lastTaskAt' | 'waiting'>
  /** Read anew each time, so that a new config counts at once. */
  readonly agents: () => readonly { readonly id: string; readonly heartbeat: HeartbeatConfig }[]
  readonly clock: Clock
  readonly newId: () => string
  /** Called when a turn is queued. */
  readonly added: () => void
  readonly log: Log
}

export type Heartbeats = {
  start(): Promise<void>
  /** Somebody asked for a turn now. What cannot be now waits for the first moment that can. */
  wake(agentId: string): void
  /** The configuration has changed. */
  refresh(): void
  stop(): void
}

/** Wakes so close together are one turn. */
const coalesceMs = 250
const storeRetryMs = 5_000
/** Longest sleep: a timer cannot wait longer than 24 days, and the clock of a machine may be set. */
const longestSleepMs = 900_000

type Pulse = {
  /** When the last turn was queued. */
  lastAt: number
  /** Since when somebody waits for a turn. */
  wokenAt: number | undefined
  timer: NodeJS.Timeout | undefined
  recalling?: NodeJS.Timeout
}

export function createHeartbeats(options: HeartbeatOptions): Heartbeats {
  const { store, agents, clock, newId, added, log } = options
  const pulses = new Map<string, Pulse>()
  let isStopped = false

  function configOf(agentId: string): HeartbeatConfig | undefined {
    return agents().find(({ id }) => id === agentId)?.heartbeat
  }

  function plan(agentId: string): void {
    const pulse = pulses.get(agentId)
    const config = configOf(agentId)
    if (pulse === undefined || isStopped) return
    clearTimeout(pulse.timer)
    if (config === undefined || config.every === 0) return
    const now = clock()
    // a clock that was set back must not keep every turn away until it has caught up
    pulse.lastAt = Math.min(pulse.lastAt, now)
    if (pulse.wokenAt !== undefined) pulse.wokenAt = Math.min(pulse.wokenAt, now)
    const wait = Math.max(0, toDue(pulse, config, now) - now)
    pulse.timer = setTimeout(() => void beat(agentId), Math.min(wait, longestSleepMs))
  }

  async function beat(agentId: string): Promise<void> {
    const pulse = pulses.get(agentId)
    const config = configOf(agentId)
    if (pulse === undefined || config === undefined || isStopped) return
    const now = clock()
    // the clock was set, or the hours ended while the timer slept
    if (toDue(pulse, config, now) > now) return plan(agentId)
    const { wokenAt } = pulse
    const reason = wokenAt === undefined ? 'interval' : 'wake'
    try {
      await store.addTask({
        id: newId(),
        planned: { kind: 'heartbeat', agentId, sessionKey: mainSessionKey, reason },
        lane: toLane(agentId, mainSessionKey),
        standsFor: toTaskName(agentId),
      })
      pulse.lastAt = now
      // whoever came while it was written waits for the next one
      if (pulse.wokenAt === wokenAt) pulse.wokenAt = undefined
      added()
      plan(agentId)
    } catch (thrown) {
      log.warn({ agentId, thrown: toThrownName(thrown) }, 'a heartbeat could not be queued; it is tried again')
      if (!isStopped) pulse.timer = setTimeout(() => void beat(agentId), storeRetryMs)
    }
  }

  async function open(agentId: string): Promise<void> {
    const pulse: Pulse = { lastAt: clock(), wokenAt: undefined, timer: undefined }
    pulses.set(agentId, pulse)
    plan(agentId)
    await recall(agentId, pulse)
  }

  /** What the process before this one left behind. */
  async function recall(agentId: string, pulse: Pulse): Promise<void> {
    try {
      pulse.lastAt = (await store.lastTaskAt(toTaskName(agentId))) ?? pulse.lastAt
      const { wakes } = await store.waiting({ agentId, sessionKey: mainSessionKey, limit: 1 })
      if (wakes) pulse.wokenAt ??= clock()
    } catch (thrown) {
      log.warn(
        { agentId, thrown: toThrownName(thrown) },
        'what waits for an agent could not be read; it is tried again',
      )
      if (!isStopped) pulse.recalling = setTimeout(() => void recall(agentId, pulse), storeRetryMs)
    }
    plan(agentId)
  }

  return {
    async start() {
      await Promise.all(agents().map(({ id }) => open(id)))
    },
    wake(agentId) {
      const pulse = pulses.get(agentId)
      if (pulse === undefined || pulse.wokenAt !== undefined) return
      pulse.wokenAt = clock()
      plan(agentId)
    },
    refresh() {
      for (const { id } of agents()) {
        if (pulses.has(id)) plan(id)
        else void open(id)
      }
    },
    stop() {
      isStopped = true
      for (const { timer, recalling } of pulses.values()) {
        clearTimeout(timer)
        clearTimeout(recalling)
      }
    },
  }
}

/** The moment of the next turn. */
function toDue({ lastAt, wokenAt }: Pulse, { every, minIntervalSeconds, activeHours }: HeartbeatConfig, now: number) {
  const earliest = lastAt + minIntervalSeconds * 1_000
  const byInterval = Math.max(lastAt + every, earliest)
  const byWake = wokenAt === undefined ? byInterval : Math.max(wokenAt + coalesceMs, earliest)
  return toActiveMoment(activeHours, Math.max(now, Math.min(byInterval, byWake)))
}

function toTaskName(agentId: string): string {
  return `heartbeat/${agentId}`
}
