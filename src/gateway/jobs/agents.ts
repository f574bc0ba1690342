// The settings of an agent: the defaults, overridden by the agent's own settings. Its active hours follow the wall clock of a time zone.
import { resolve } from 'node:path'
import type { Thinking } from '../../core/model/action.ts'
import type { HeartbeatConfig, HistoryConfig } from '../../model/config/agents.ts'
import type { Config } from '../../model/config/config.ts'
import { resolveModelName } from '../../model/config/permission.ts'
import { chooseRunner, findDefaultAgentId } from '../../model/config/plan-settings.ts'

export type Agent = {
  readonly id: string
  /** The name of the runner of its turns. */
  readonly runner: string
  /** `<provider>/<model>`; undefined if none is configured. */
  readonly model: string | undefined
  /** Models to try, in order, while the model of a turn is not available. */
  readonly modelFallbacks: readonly string[]
  readonly system: string | undefined
  readonly thinking: Thinking | undefined
  /** The time limit of a turn that sets none. */
  readonly timeoutSeconds: number
  /** An absolute path; undefined if none is configured and the id cannot be the name of a folder. */
  readonly workspace: string | undefined
  /** The maximum number of turns an hour with one session key; 0: no limit. */
  readonly maxTurnsPerHour: number
  /** Which earlier messages go with a turn of a persistent session; `heartbeat.history` with a heartbeat. */
  readonly history: HistoryConfig
  readonly heartbeat: HeartbeatSettings
  /** The names of the budgets of its turns. */
  readonly budgets: readonly string[]
}

/** An agent that the list lacks has the settings of `agents.defaults`. It keeps its id, so that its sessions stay separate. */
export function toAgent(config: Config, id: string, dir: string): Agent {
  const { defaults, list } = config.agents
  const own = list.find((agent) => agent.id === id)
  const model = own?.model ?? defaults.model
  const workspace = own?.workspace ?? defaults.workspace ?? toFolderName(id)
  return {
    id,
    model: model === undefined ? undefined : resolveModelName(model, config.models.aliases),
    modelFallbacks: (own?.modelFallbacks ?? defaults.modelFallbacks ?? []).map((name) =>
      resolveModelName(name, config.models.aliases),
    ),
    runner: chooseRunner(config, id),
    system: own?.system ?? defaults.system,
    thinking: own?.thinking ?? defaults.thinking,
    timeoutSeconds: own?.timeoutSeconds ?? defaults.timeoutSeconds,
    workspace: workspace === undefined ? undefined : resolve(dir, workspace),
    maxTurnsPerHour: own?.maxTurnsPerHour ?? defaults.maxTurnsPerHour,
    history: own?.history ?? defaults.history,
    heartbeat: findHeartbeatConfig(config, id),
    budgets: own?.budgets ?? defaults.budgets ?? [],
  }
}

/** `every`: in milliseconds; 0: no heartbeats. */
export type HeartbeatSettings = HeartbeatConfig & { readonly every: number }

const defaultEveryMs = 1_800_000

/**
 * A command without a profile may be a script with one purpose, such as a review. A heartbeat would run it again, so the configuration must ask for
 * heartbeats.
 */
export function findHeartbeatConfig(config: Config, id: string): HeartbeatSettings {
  const { agents, runners } = config
  const heartbeat = agents.list.find((agent) => agent.id === id)?.heartbeat ?? agents.defaults.heartbeat
  const name = chooseRunner(config, id)
  const runner = Object.hasOwn(runners, name) ? runners[name] : undefined
  const isScript = runner?.kind === 'command' && runner['profile'] === undefined
  return { ...heartbeat, every: heartbeat.every ?? (isScript ? 0 : defaultEveryMs) }
}

/** The ids of the agents in the list; without a list, the id of the default agent. */
export function listAgentIds(config: Config): readonly string[] {
  const { list } = config.agents
  return list.length === 0 ? [findDefaultAgentId(config)] : list.map(({ id }) => id)
}

function toFolderName(id: string): string | undefined {
  return /^[\w-][\w.-]*$/.test(id) ? `agents/${id}` : undefined
}

type ActiveHours = NonNullable<HeartbeatConfig['activeHours']>

const minuteMs = 60_000
const dayMinutes = 1_440
/** Every time zone changes its clocks at a full quarter of an hour. Within a quarter, a wall clock runs evenly. */
const quarterMs = 15 * minuteMs

export function isActive(hours: ActiveHours | undefined, now: number): boolean {
  return hours === undefined || isWithin(hours, createWallClock(hours)(now))
}

/**
 * The first moment from `now` on that is inside the active hours, in milliseconds since the epoch. If a change of the clocks skips all active
 * hours of a day, the moment is on the next day. Hours that occur twice are active twice.
 */
export function findActiveMoment(hours: ActiveHours | undefined, now: number): number {
  if (hours === undefined) return now
  const minuteOfDay = createWallClock(hours)
  const start = toMinutes(hours.start)
  for (let at = now - (now % minuteMs); ; at += quarterMs - (at % quarterMs)) {
    const minute = minuteOfDay(at)
    if (isWithin(hours, minute)) return Math.max(now, at)
    const opening = at + ((start - minute + dayMinutes) % dayMinutes) * minuteMs
    if (opening < at + quarterMs - (at % quarterMs)) return opening
  }
}

function isWithin({ start, end }: ActiveHours, minute: number): boolean {
  const [first, after] = [toMinutes(start), toMinutes(end)]
  return first < after ? minute >= first && minute < after : minute >= first || minute < after
}

function toMinutes(clock: string): number {
  const [hours = 0, minutes = 0] = clock.split(':').map(Number)
  return hours * 60 + minutes
}

/** Makes a function that returns the minute of the day at a moment. */
function createWallClock({ timezone: timeZone }: ActiveHours): (at: number) => number {
  const zone = timeZone === undefined ? {} : { timeZone }
  const format = new Intl.DateTimeFormat('en-GB', { ...zone, hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
  return (at) => toMinutes(format.format(at))
}
