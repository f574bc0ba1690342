// Queues the turns of the main session of an agent: at its interval, and soon after a wake. Each turn is an ordinary job.
import type { Log } from '../../base/log.ts'
import type { Clock, Store } from '../../store/store.ts'
import { findActiveMoment, type HeartbeatSettings } from './agents.ts'
import { mainSessionKey } from '../../core/model/action.ts'
import { describeHeartbeatsOff, toLane } from './plan.ts'
import { toErrorName } from '../../base/exceptions.ts'

export type HeartbeatOptions = {
  readonly store: Pick<Store, 'addTask' | 'taskAgeMs' | 'wokenForMs'>
  /** The agents, read at each use, so that a new configuration applies at once. */
  readonly agents: () => readonly { readonly id: string; readonly heartbeat: HeartbeatSettings }[]
  readonly clock: Clock
  readonly newId: () => string
  /**
   * Whether this gateway queues the turns of the intervals. Turns for wakes of this gateway are queued here in any case. Default: true.
   */
  readonly hasDuty?: () => boolean
  /** Called when a turn is queued. */
  readonly onAdded: () => void
  readonly log: Log
}

export type Heartbeats = {
  start(): Promise<void>
  /** Asks for a turn now, or at the first moment that the configuration allows. */
  wake(agentId: string): void
  /** Called when the configuration has changed. */
  refresh(): void
  /** Called when this gateway gets or loses the duty to queue the turns of the intervals. */
  reloadSchedules(): void
  /**
   * Queues the turn of an event that asks for one: the gateway that stored the event may have died before it queued the turn. Does nothing
   * unless this gateway queues the turns of the intervals.
   */
  lookForWakes(): Promise<void>
  stop(): void
}

/** Wakes within this time cause one turn. */
const coalesceMs = 250
const storeRetryMs = 5_000
/** The gateway that stored an event usually queues its turn within `coalesceMs`. After this longer time, it may be dead. */
const orphanedMs = 2_000
/** The longest sleep. A timer cannot wait for more than 24 days, and somebody may set the clock of the machine. */
const maxSleepMs = 900_000

/**
 * Whether a wake waits for a turn. `at`: the time of the first wake. `overtaken`: since then another gateway has queued a turn, which may have
 * shown the events of the wake.
 *
 * ```
 *           wake            another gateway queued a turn
 * asleep ─────────▶ woken ─────────────────────────────────▶ overtaken
 *   ▲                 │ the turn is queued                      │
 *   └─────────────────┴─────────────────────────────────────────┘ no event asks for a turn any more, or the turn is queued
 * ```
 */
type WakeState = { readonly kind: 'asleep' } | { readonly kind: 'woken' | 'overtaken'; readonly at: number }

const asleep: WakeState = { kind: 'asleep' }

type Schedule = {
  /** The time at which the newest turn was queued; undefined if no turn is known. */
  turnAt: number | undefined
  /** Until there is a turn, the interval begins at this moment. */
  addedAt: number
  wake: WakeState
  timer: NodeJS.Timeout | undefined
  /** Whether the store failed when the last turn was queued. */
  isFailing?: boolean
  loadTimer?: NodeJS.Timeout
}

export function createHeartbeats(options: HeartbeatOptions): Heartbeats {
  const { store, agents, clock, newId, onAdded, log, hasDuty = () => true } = options
  const schedules = new Map<string, Schedule>()
  let isStopped = false
  let isLooking = false

  function findConfig(agentId: string): HeartbeatSettings | undefined {
    return agents().find(({ id }) => id === agentId)?.heartbeat
  }

  function setTimer(agentId: string): void {
    const schedule = schedules.get(agentId)
    const config = findConfig(agentId)
    if (schedule === undefined || isStopped) return
    clearTimeout(schedule.timer)
    if (config === undefined || config.every === 0) return
    if (schedule.wake.kind === 'asleep' && !hasDuty()) return
    const now = clock()
    // a clock that was set back must not delay the next turn
    schedule.addedAt = Math.min(schedule.addedAt, now)
    if (schedule.turnAt !== undefined) schedule.turnAt = Math.min(schedule.turnAt, now)
    if (schedule.wake.kind !== 'asleep' && schedule.wake.at > now) schedule.wake = { ...schedule.wake, at: now }
    const wait = Math.max(0, findDueMoment(schedule, config, now) - now)
    schedule.timer = setTimeout(() => void queueTurn(agentId), Math.min(wait, maxSleepMs))
  }

  async function queueTurn(agentId: string): Promise<void> {
    const schedule = schedules.get(agentId)
    const config = findConfig(agentId)
    if (schedule === undefined || config === undefined || isStopped) return
    const now = clock()
    // the clock was set, or the active hours ended, while the timer slept
    if (findDueMoment(schedule, config, now) > now) return setTimer(agentId)
    const { wake: asked } = schedule
    if (asked.kind === 'asleep' && !hasDuty()) return
    const reason = asked.kind === 'asleep' ? 'interval' : 'wake'
    try {
      if (asked.kind === 'overtaken' && !(await hasWakes(agentId))) {
        schedule.wake = asleep
        return setTimer(agentId)
      }
      const gapMs = findMinGapMs(config, reason)
      const isAdded = await store.addTask({
        id: newId(),
        planned: { kind: 'heartbeat', agentId, sessionKey: mainSessionKey, reason },
        lane: toLane(agentId, mainSessionKey),
        standsFor: toHeartbeatName(agentId),
        // a pause of the agent, or of all, also keeps its heartbeats back
        labels: [`agent:${agentId}`, 'all'],
        unlessWithinMs: gapMs,
      })
      if (!isAdded && (await adoptNewerTurn(agentId, { schedule, gapMs, askedAt: now }))) {
        if (schedule.wake.kind === 'woken') schedule.wake = { ...schedule.wake, kind: 'overtaken' }
        return setTimer(agentId)
      }
      schedule.isFailing = false
      // the turn is queued now, or a queued one will show the events
      schedule.turnAt = now
      // a wake that arrived while a turn of the interval was queued waits for the next turn
      if (schedule.wake === asked) schedule.wake = asleep
      onAdded()
      setTimer(agentId)
    } catch (thrown) {
      // logged once, and not every few seconds, while the store is down
      if (schedule.isFailing !== true)
        log.warn({ agentId, thrown: toErrorName(thrown) }, 'a heartbeat could not be queued; it is tried again')
      schedule.isFailing = true
      if (!isStopped) schedule.timer = setTimeout(() => void queueTurn(agentId), storeRetryMs)
    }
  }

  async function hasWakes(agentId: string): Promise<boolean> {
    return (await store.wokenForMs({ agentId, sessionKey: mainSessionKey })) !== undefined
  }

  type RefusedTurn = { readonly schedule: Schedule; readonly gapMs: number; readonly askedAt: number }

  /** Whether the newest turn, of this or another gateway, was queued less than the gap ago. If so, the next interval begins with it. */
  async function adoptNewerTurn(agentId: string, { schedule, gapMs, askedAt }: RefusedTurn): Promise<boolean> {
    const ageMs = await store.taskAgeMs(toHeartbeatName(agentId))
    const now = clock()
    // the store refused the turn at `askedAt`, so the age of the newest turn at that time counts
    if (ageMs === undefined || ageMs - (now - askedAt) >= gapMs) return false
    schedule.turnAt = now - ageMs
    return true
  }

  async function addSchedule(agentId: string): Promise<void> {
    const schedule: Schedule = { turnAt: undefined, addedAt: clock(), wake: asleep, timer: undefined }
    schedules.set(agentId, schedule)
    setTimer(agentId)
    await loadState(agentId, schedule)
  }

  /** Reads from the store when the newest turn was queued, and whether a wake still waits for a turn. */
  async function loadState(agentId: string, schedule: Schedule): Promise<void> {
    try {
      const ageMs = await store.taskAgeMs(toHeartbeatName(agentId))
      if (ageMs !== undefined) schedule.turnAt = clock() - ageMs
      if (hasDuty() && (await hasUnseenWake(agentId, ageMs))) markWoken(schedule)
    } catch (thrown) {
      log.warn(
        { agentId, thrown: toErrorName(thrown) },
        'the waiting events of an agent could not be read; the read is tried again',
      )
      if (!isStopped) schedule.loadTimer = setTimeout(() => void loadState(agentId, schedule), storeRetryMs)
    }
    setTimer(agentId)
  }

  /**
   * Whether an event that asks for a turn is newer than the newest turn, and at least `minMs` old. The newest turn has shown the older events,
   * or will show them.
   */
  async function hasUnseenWake(agentId: string, turnAgeMs: number | undefined, minMs = 0): Promise<boolean> {
    const wokenForMs = await store.wokenForMs({ agentId, sessionKey: mainSessionKey })
    return wokenForMs !== undefined && wokenForMs >= minMs && (turnAgeMs === undefined || wokenForMs <= turnAgeMs)
  }

  async function checkForWake(agentId: string): Promise<void> {
    if (await hasUnseenWake(agentId, await store.taskAgeMs(toHeartbeatName(agentId)), orphanedMs)) wake(agentId)
  }

  function wake(agentId: string): void {
    const schedule = schedules.get(agentId)
    if (schedule === undefined) return
    if (findConfig(agentId)?.every === 0) log.info({ agentId }, describeHeartbeatsOff(agentId))
    if (schedule.wake.kind !== 'asleep') return
    markWoken(schedule)
    setTimer(agentId)
  }

  function markWoken(schedule: Schedule): void {
    if (schedule.wake.kind === 'asleep') schedule.wake = { kind: 'woken', at: clock() }
  }

  return {
    async start() {
      await Promise.all(agents().map(({ id }) => addSchedule(id)))
    },
    wake,
    refresh() {
      for (const { id } of agents()) {
        if (schedules.has(id)) setTimer(id)
        else void addSchedule(id)
      }
    },
    reloadSchedules() {
      for (const [agentId, schedule] of schedules) void loadState(agentId, schedule)
    },
    async lookForWakes() {
      if (!hasDuty() || isLooking) return
      isLooking = true
      await Promise.all([...schedules.keys()].map(checkForWake)).catch(() => undefined)
      isLooking = false
    },
    stop() {
      isStopped = true
      for (const { timer, loadTimer } of schedules.values()) {
        clearTimeout(timer)
        clearTimeout(loadTimer)
      }
    },
  }
}

/** The moment of the next turn. */
function findDueMoment(
  { turnAt, addedAt, wake }: Schedule,
  { every, minIntervalSeconds, activeHours }: HeartbeatSettings,
  now: number,
) {
  const earliest = turnAt === undefined ? now : turnAt + minIntervalSeconds * 1_000
  const byInterval = Math.max((turnAt ?? addedAt) + every, earliest)
  const byWake = wake.kind === 'asleep' ? byInterval : Math.max(wake.at + coalesceMs, earliest)
  return findActiveMoment(activeHours, Math.max(now, Math.min(byInterval, byWake)))
}

/** Turns of an agent with a shorter gap count as one turn, no matter which gateway queues them. */
function findMinGapMs({ every, minIntervalSeconds }: HeartbeatSettings, reason: 'interval' | 'wake'): number {
  const minMs = minIntervalSeconds * 1_000
  return reason === 'interval' ? Math.max(every, minMs) : minMs
}

/** The name of the task that is the heartbeat of an agent. */
export function toHeartbeatName(agentId: string): string {
  return `heartbeat/${agentId}`
}
