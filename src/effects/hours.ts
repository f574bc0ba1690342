// When an agent may be woken. Hours are those of a wall clock in a time zone, so that they follow summer time.
import type { HeartbeatConfig } from '../model/agents-config.ts'

type ActiveHours = NonNullable<HeartbeatConfig['activeHours']>

const minuteMs = 60_000
const dayMinutes = 1_440

/** The first moment from `now` on that lies inside the hours, in milliseconds since the epoch; near a change of the clocks it may be asked again. */
export function toActiveMoment(hours: ActiveHours | undefined, now: number): number {
  if (hours === undefined) return now
  const start = toMinutes(hours.start)
  const end = toMinutes(hours.end)
  const minute = minuteOfDay(now, hours.timezone)
  const isActive = start < end ? minute >= start && minute < end : minute >= start || minute < end
  if (isActive) return now
  const wait = (start - minute + dayMinutes) % dayMinutes
  return now - (now % minuteMs) + wait * minuteMs
}

function toMinutes(clock: string): number {
  const [hours = 0, minutes = 0] = clock.split(':').map(Number)
  return hours * 60 + minutes
}

function minuteOfDay(now: number, timeZone: string | undefined): number {
  const zone = timeZone === undefined ? {} : { timeZone }
  const format = new Intl.DateTimeFormat('en-GB', { ...zone, hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
  return toMinutes(format.format(now))
}
