// How often a sender usually sends: predicts the number of requests in a time from its history, by hour of the day and day of the week.

const hourMs = 3_600_000
const dayHours = 24
const weekHours = 168
/** The history covers four weeks. */
const keptHours = 4 * weekHours
/** If the gateway did not listen for more than this part of an hour, the hour says nothing about the sender. */
const maxDownMs = 600_000

/** The accepted requests of each hour. `from`: the first hour, in hours since the epoch. */
export type Hours = { readonly from: number; readonly counts: readonly number[] }

/** A time in milliseconds since the epoch. */
export type Period = { readonly from: number; readonly to: number }

export const noHours: Hours = { from: 0, counts: [] }

/** The history after more requests, the last of which came at `at`. Hours older than four weeks are dropped. */
export function addToHour({ from, counts }: Hours, at: number, requests: number): Hours {
  const hour = Math.floor(at / hourMs)
  if (counts.length === 0) return { from: hour, counts: [requests] }
  const place = hour - from
  // the clock was set back
  if (place < 0) return { from, counts }
  if (place >= 2 * keptHours) return { from: hour, counts: [requests] }
  const longer = [...counts, ...Array.from({ length: Math.max(0, place + 1 - counts.length) }, () => 0)]
  longer[place] = (longer[place] ?? 0) + requests
  const dropped = Math.max(0, longer.length - keptHours)
  return { from: from + dropped, counts: longer.slice(dropped) }
}

/** The history without the hours after `now`. */
export function cutHours({ from, counts }: Hours, now: number): Hours {
  const kept = Math.floor(now / hourMs) + 1 - from
  return kept <= 0 ? noHours : { from, counts: counts.slice(0, kept) }
}

/** The number of days, in UTC, with at least one request. */
export function countDays({ from, counts }: Hours): number {
  return new Set(counts.flatMap((count, index) => (count > 0 ? [Math.floor((from + index) / dayHours)] : []))).size
}

/** The number of milliseconds of a time in which the gateway did not listen. */
export function sumDownMs({ from, to }: Period, downs: readonly Period[]): number {
  return downs.reduce((sum, down) => sum + Math.max(0, Math.min(to, down.to) - Math.max(from, down.from)), 0)
}

/**
 * The number of requests that the history predicts for a time. The prediction for an hour comes from the same hour of earlier weeks; if there
 * are none yet, from the same hour of earlier working days. Without a weekend in the history, no request is expected on a weekend. Time in which
 * the gateway did not listen does not count.
 */
export function countExpected(hours: Hours, { from, to }: Period, downs: readonly Period[]): number {
  let sum = 0
  for (let hour = Math.floor(from / hourMs); hour * hourMs < to; hour += 1) {
    const part = { from: Math.max(from, hour * hourMs), to: Math.min(to, (hour + 1) * hourMs) }
    const listenedMs = part.to - part.from - sumDownMs(part, downs)
    if (listenedMs > 0) sum += (predict(hours, hour, { downs, isPast: false }) * listenedMs) / hourMs
  }
  return sum
}

/** The longest silence in the history, as the number of requests that were expected in it. The prediction for an hour also uses later hours. */
export function findLongestSilence(hours: Hours, downs: readonly Period[]): number {
  let longest = 0
  let sum = 0
  for (const [index, count] of hours.counts.entries()) {
    sum = count > 0 ? 0 : sum + predict(hours, hours.from + index, { downs, isPast: true })
    longest = Math.max(longest, sum)
  }
  return longest
}

const earlierWeeks = [-4, -3, -2, -1].map((week) => week * weekHours)
const otherWeeks = [-3, -2, -1, 1, 2, 3].map((week) => week * weekHours)
const earlierDays = [-6, -5, -4, -3, -2, -1].map((day) => day * dayHours)
const otherDays = [-4, -3, -2, -1, 1, 2, 3, 4].map((day) => day * dayHours)

/** `isPast`: whether the hour is past, so that later weeks and days also count. */
function predict(hours: Hours, hour: number, { downs, isPast }: { downs: readonly Period[]; isPast: boolean }): number {
  const before = isPast ? hours.from + hours.counts.length : hour
  const ofWeeks = computeMean(isPast ? otherWeeks : earlierWeeks, (away) =>
    hour + away < before ? readSmoothed(hours, hour + away, downs) : undefined,
  )
  if (ofWeeks !== undefined) return ofWeeks
  if (isNearWeekend(hour)) return 0
  const ofDays = computeMean(isPast ? otherDays : earlierDays, (away) =>
    hour + away < before && !isNearWeekend(hour + away) ? readSmoothed(hours, hour + away, downs) : undefined,
  )
  return ofDays ?? 0
}

const neighbours = [-1, 0, 1]

/**
 * The mean of an hour and its two neighbours, because a sender that is an hour early or late is not silent. Undefined if the hour was not
 * observed.
 */
function readSmoothed(hours: Hours, hour: number, downs: readonly Period[]): number | undefined {
  if (!isObserved(hours, hour, downs)) return undefined
  return computeMean(neighbours, (away) =>
    isObserved(hours, hour + away, downs) ? (hours.counts[hour + away - hours.from] ?? 0) : undefined,
  )
}

/** Whether an hour was observed. Hours after the last request count as observed and silent. */
function isObserved({ from, counts }: Hours, hour: number, downs: readonly Period[]): boolean {
  if (counts.length === 0 || hour < from) return false
  return downs.length === 0 || sumDownMs({ from: hour * hourMs, to: (hour + 1) * hourMs }, downs) <= maxDownMs
}

/** Whether the hour is in a weekend somewhere on earth: from Friday 10:00 to Monday 12:00 UTC. */
function isNearWeekend(hour: number): boolean {
  // the epoch began on a Thursday
  const ofWeek = (hour + 3 * dayHours) % weekHours
  return ofWeek >= 4 * dayHours + 10 || ofWeek < 12
}

/** The mean of the values that are known; undefined if none is. */
function computeMean(places: readonly number[], read: (place: number) => number | undefined): number | undefined {
  let sum = 0
  let known = 0
  for (const place of places) {
    const value = read(place)
    if (value === undefined) continue
    sum += value
    known += 1
  }
  return known === 0 ? undefined : sum / known
}
