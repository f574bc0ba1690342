// Formats times, durations and text from outside for the page.

/** Matches the same characters as `toPrintable` of the terminal. The page cannot import code of the gateway. */
const unseen =
  /(?![\t\n])(?!(?<=\p{Emoji})[\uFE0E\uFE0F])(?!(?<=[\p{Emoji}\uFE0F])\u200D\p{Emoji})(?!(?<=(?![\p{ASCII}\p{Script=Latin}])[\p{L}\p{M}])[\u200C\u200D](?![\p{ASCII}\p{Script=Latin}])[\p{L}\p{M}])[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2028\u2029\u2800]/gu

/**
 * Replaces characters that are invisible, or that change how a line reads: controls, ANSI escapes, direction marks, tags and fillers.
 * ASCII controls become their pictures (`\u001b` becomes ␛), and other characters their numbers. Line breaks and tabs stay.
 */
export function markUnseen(text: string): string {
  // most texts pass this check, which is a hundred times as fast as the replacement
  if (/^[\x20-\x7E\n\t]*$/.test(text)) return text
  return text.replace(unseen, (character) => {
    const code = character.codePointAt(0) ?? 0
    return code < 0x20 ? String.fromCodePoint(0x2400 + code) : `⟨${code.toString(16).padStart(4, '0')}⟩`
  })
}

export function formatCount(count: number): string {
  return count.toLocaleString('en')
}

/** The beginning of a day in the time zone of the browser. */
export function findMidnight(daysAgo: number): Date {
  const day = new Date()
  day.setHours(0, 0, 0, 0)
  day.setDate(day.getDate() - daysAgo)
  return day
}

export const addUp = (amounts: readonly number[]): number => amounts.reduce((total, amount) => total + amount, 0)

/** Dollars. An amount below a dollar has two significant digits, and at least cents. */
export function formatUsd(usd: number): string {
  if (usd >= 1 || usd <= 0) return `$${usd.toFixed(usd < 100 ? 2 : 0)}`
  return usd < 0.000001 ? '<$0.000001' : `$${usd.toFixed(Math.max(2, 1 - Math.floor(Math.log10(usd))))}`
}

export function formatTimes(count: number): string {
  return count === 1 ? 'once' : `${formatCount(count)} times`
}

export function formatDuration(ms: number | null): string {
  if (ms === null) return ''
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} min`
  return `${Math.round(ms / 3_600_000)} h`
}

const [minuteMs, hourMs, dayMs] = [60_000, 3_600_000, 86_400_000]
const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })
const shortClock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' })
const weekday = new Intl.DateTimeFormat('en-GB', { weekday: 'short' })
const longDay = new Intl.DateTimeFormat('en-GB', { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' })
const full = new Intl.DateTimeFormat('en-GB', { dateStyle: 'full', timeStyle: 'long' })

// Intl writes "Sept", which is wider than the other months
const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const formatDay = (at: Date) => `${at.getDate()} ${months[at.getMonth()]}`

/** The time of day, with the date unless it is today's. */
export function formatClock(at: number, now = Date.now()): string {
  return isSameDay(at, now) ? clock.format(at) : `${formatDay(new Date(at))} ${clock.format(at)}`
}

/** A UTC time in a sentence: `14:03:10Z`, `2026-11-23 14:03Z`, or ISO 8601. */
const utcTime = /(?:\b(\d{4}-\d\d-\d\d)[ T]|\b)(\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)Z\b/g

/**
 * Converts the UTC times in a sentence of the gateway to the time zone of the browser, in the form of all other times of the page. A time without a
 * date is a time of the present UTC day.
 */
export function toLocalTimes(sentence: string, now = Date.now()): string {
  return sentence.replace(utcTime, (written, day, time) => {
    const at = Date.parse(`${day ?? new Date(now).toISOString().slice(0, 10)}T${time}Z`)
    return Number.isNaN(at) ? written : formatClock(at, now)
  })
}

/** `since 12:04`, for counts of the last hour that began later; empty if they cover the hour. */
export function describeSince(since: string, now = Date.now()): string {
  const at = Date.parse(since)
  return now - at < hourMs - minuteMs ? `since ${shortClock.format(at)}` : ''
}

/** The time of day without seconds. */
export const formatMinute = (at: number) => shortClock.format(at)

/** The age of a moment: `12 s`, `3 h`, then `Sat 21:04`, `4 Nov 21:04`, `4 Nov 2025`. At most twelve characters. */
export function formatAge(at: number, now: number): string {
  const ms = Math.max(0, now - at)
  if (ms < minuteMs) return `${Math.floor(ms / 1_000)} s`
  if (ms < hourMs) return `${Math.floor(ms / minuteMs)} min`
  if (isRecent(at, now)) return `${Math.floor(ms / hourMs)} h`
  if (ms < 6 * dayMs) return `${weekday.format(at)} ${shortClock.format(at)}`
  const date = new Date(at)
  const isThisYear = date.getFullYear() === new Date(now).getFullYear()
  return `${formatDay(date)} ${isThisYear ? shortClock.format(at) : date.getFullYear()}`
}

/** Whether the age of a moment is shown as a duration. For an older moment, the page shows the moment itself. */
export const isRecent = (at: number, now: number) => now - at < 12 * hourMs

/** `today`, `yesterday`, or the date with its weekday. */
export function formatLongDay(at: number, now: number): string {
  if (isSameDay(at, now)) return 'today'
  return isSameDay(at, now - dayMs) ? 'yesterday' : longDay.format(at)
}

/** The date and the time with the time zone. */
export function formatFullTime(at: number): string {
  return full.format(at)
}

function isSameDay(one: number, other: number): boolean {
  return new Date(one).toDateString() === new Date(other).toDateString()
}
