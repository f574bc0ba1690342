// A delivery in a list of the page. It stays small, however large its payload and its actions are.
import type { Job } from '../../model/job.ts'
import { findSender } from '../../pipeline/sources.ts'
import type { DeliveryRecord } from '../../store/records.ts'
import { describeContent, isFailing, toDeliverySummary } from '../../deliveries/records.ts'
import type { DeliveryRow } from '../../model/api-types.ts'

/** The most actions in a row: `forEach` can make two hundred. */
const shownActions = 3

export function toRowFields(record: DeliveryRecord): DeliveryRow {
  const { receivedAt, problem, jobs } = record
  const count = (wanted: Job['state']) => jobs.filter((job) => job.state === wanted).length
  const steps = jobs.flatMap((job) => job.steps.map(({ at }) => at))
  const isDone = steps.length > 0 && jobs.every((job) => job.state === 'done')
  return {
    ...toDeliverySummary(record),
    summary: describeContent(record),
    sourceName: toSourceName(record),
    code: problem?.code ?? null,
    place: findPlace(problem?.frame),
    became: jobs.slice(0, shownActions).map(({ planned: { kind, sessionKey } }) => ({ kind, sessionKey })),
    jobs: {
      queued: count('queued'),
      running: count('running'),
      done: count('done'),
      dead: count('dead'),
      dropped: count('dropped'),
      failing: jobs.filter(isFailing).length,
    },
    doneMs: isDone ? Math.max(0, Math.max(...steps) - receivedAt) : null,
  }
}

/** `<file>:<line>` of a code frame. */
export function findPlace(frame: string | undefined): string | null {
  return /([^\s:]+:\d+):\d/.exec(frame ?? '')?.[1] ?? null
}

export function toSourceName({ source }: Pick<DeliveryRecord, 'source'>): string | null {
  return (source === undefined ? undefined : findSender(source)?.label) ?? null
}
