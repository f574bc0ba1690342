// The times of the steps of a run on one time line: how long each waited, and how long it ran.
import type { JobFields, ShownDelivery } from '../model/api/answers.ts'

/** Milliseconds since the epoch. */
export type Span = { readonly from: number; readonly until: number }

/** From the arrival until the last step, or until now while something runs. */
export function findSpan({ receivedAt, jobs }: Pick<ShownDelivery, 'receivedAt' | 'jobs'>, now: number): Span {
  const from = Date.parse(receivedAt)
  const ends = jobs.flatMap(({ steps }) => steps.map(({ at }) => Date.parse(at)))
  const isActive = jobs.some(({ state }) => state === 'running' || state === 'queued')
  return { from, until: Math.max(from + 1, ...ends, isActive ? now : from) }
}

/** The times of the steps of a job, in order. A step waits from the end of the one before it. */
export function listTimes({ steps, state }: JobFields, { from, until }: Span) {
  let before = from
  const times = steps.map(({ name, startedAt, at }) => {
    const end = Date.parse(at)
    const start = startedAt === undefined ? end : Date.parse(startedAt)
    const waitedFrom = Math.min(before, start)
    before = end
    return { name, waitedFrom, start, end }
  })
  return { times, running: state === 'running' ? { waitedFrom: before, start: before, end: until } : undefined }
}
