// The times of the steps of a run: how long each step waited, how long it ran, and when its attempts failed.
import type { JobFields, ShownDelivery } from '../model/api/answers.ts'

/** In milliseconds since the epoch. */
export type Span = { readonly from: number; readonly until: number }

/** `failed`: the moments at which attempts failed. */
export type StepTime = {
  readonly waitedFrom: number
  readonly start: number
  readonly end: number
  readonly failed: readonly number[]
}

/** The span from the arrival to the last step or failure, or to now while a job is active. */
export function findSpan({ receivedAt, jobs }: Pick<ShownDelivery, 'receivedAt' | 'jobs'>, now: number): Span {
  const from = Date.parse(receivedAt)
  const ends = jobs.flatMap(({ steps, failures }) => [...steps, ...failures].map(({ at }) => Date.parse(at)))
  const isActive = jobs.some(({ state }) => state === 'running' || state === 'queued')
  return { from, until: Math.max(from + 1, ...ends, isActive ? now : from) }
}

const units = [1, 2, 5].flatMap((digit) => Array.from({ length: 9 }, (_, zeros) => digit * 10 ** zeros))

/** The marks of a scale from the beginning of a span: at most five, at round times, in milliseconds after the beginning. */
export function listMarks({ from, until }: Span): number[] {
  const length = until - from
  const unit = units.toSorted((one, other) => one - other).find((each) => length / each <= 5) ?? length
  return Array.from({ length: Math.floor(length / unit) + 1 }, (_, at) => at * unit)
}

/**
 * The times of the recorded steps of a job, in order. A step waits from the end of the previous step. `rest`: the step that is not recorded
 * yet, if the job runs or if attempts of this step failed.
 */
export function listTimes(
  { steps, state, failures }: Pick<JobFields, 'steps' | 'state' | 'failures'>,
  { from, until }: Span,
): { readonly times: readonly StepTime[]; readonly rest: StepTime | undefined } {
  const moments = failures.map(({ at }) => Date.parse(at))
  let before = from
  const times = steps.map(({ startedAt, at }) => {
    const end = Date.parse(at)
    const start = startedAt === undefined ? end : Date.parse(startedAt)
    const waitedFrom = Math.min(before, start)
    const failed = moments.filter((moment) => moment > before && moment <= end)
    before = end
    return { waitedFrom, start, end, failed }
  })
  const failed = moments.filter((moment) => moment > before)
  const last = failed.at(-1)
  if (state !== 'running' && last === undefined) return { times, rest: undefined }
  const end = state === 'running' || state === 'queued' ? until : (last ?? until)
  const start = state === 'running' ? (last ?? before) : end
  return { times, rest: { waitedFrom: before, start, end, failed } }
}
