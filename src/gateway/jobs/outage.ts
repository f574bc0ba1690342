// What the main session reads while the model of a run does not answer.
import { formatQuantity } from '../../base/text.ts'
import { type ClaimedJob, listPresentFailures } from '../../model/job.ts'
import type { NewEvent } from '../../store/records.ts'
import { maxFailures } from '../../store/rules.ts'
import { toSummaryEvent } from './plan.ts'

/** Shorter outages are not worth an event. */
const longOutageMs = 600_000

type FailedTurn = {
  readonly detail: string
  /** When it failed, when the next attempt is, and for how long attempts are made, in milliseconds. */
  readonly at: number
  readonly runAt: number
  readonly forMs: number
  /** For how long the turn has been failing. */
  readonly failsForMs: number
}

/** One event for each run whose model has not answered for ten minutes. It asks for no turn: most agents ask the same model. */
export function listOutageEvents(
  job: Pick<ClaimedJob, 'planned' | 'failures' | 'failingSince'>,
  { detail, at, runAt, forMs, failsForMs }: FailedTurn,
): NewEvent[] {
  const { planned, failingSince } = job
  if (planned.kind !== 'agent' || failingSince === undefined || failsForMs < longOutageMs) return []
  const earlier = listPresentFailures(job)
  const last = earlier.at(-1)
  if (last === undefined || last.at - failingSince >= longOutageMs) return []
  const attempts = formatQuantity(earlier.length + 1, 'attempt')
  const count = earlier.length < maxFailures ? attempts : `at least ${attempts}`
  const since = at - failsForMs
  const text =
    `No answer since ${formatTime(since)}, after ${count}. The next attempt is at ${formatTime(runAt)}, ` +
    `and the last one at ${formatTime(since + forMs)}. ${detail}`
  return [{ ...toSummaryEvent(planned, { status: 'waiting', text }), wakes: false }]
}

function formatTime(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')}Z`
}
