// When an agent may be woken. Hours are those of a wall clock in a time zone, so that they follow summer time.
import type { HeartbeatConfig } from '../model/agents-config.ts'

type ActiveHours = NonNullable<HeartbeatConfig['activeHours']>

const minuteMs = 60_000
const dayMinutes = 1_440
/** Clocks are changed at full quarters of an hour, everywhere: within one, a wall clock runs evenly. */
const quarterMs = 15 * minuteMs

export function isActive(hours: ActiveHours | undefined, now: number): boolean {
  return hours === undefined || isWithin(hours, createWallClock(hours)(now))
}

/**
 * The first moment from `now` on that lies inside the hours, in milliseconds since the epoch. Hours that a change of the
 * clocks skips altogether are the next day's; those that come twice are active twice.
 */
export function toActiveMoment(hours: ActiveHours | undefined, now: number): number {
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

/** The minute of the day at a moment. */
function createWallClock({ timezone: timeZone }: ActiveHours): (at: number) => number {
  const zone = timeZone === undefined ? {} : { timeZone }
  const format = new Intl.DateTimeFormat('en-GB', { ...zone, hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
  return (at) => toMinutes(format.format(at))
}
