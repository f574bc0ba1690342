// A delivery in a list of the page. The row stays small, however large the payload and the actions of the delivery are.
import type { Job } from '../../../model/job.ts'
import type { SenderTable } from '../../proofs/senders.ts'
import type { DeliveryRecord } from '../../../store/records.ts'
import { describeContent, isFailing, toDeliverySummary } from '../../deliveries/records.ts'
import type { DeliveryRow } from '../../../model/api/answers.ts'
import { readWaits } from '../../deliveries/waits.ts'
import type { StoreReader } from '../../../store/store.ts'
import type { ApiParts } from './parts.ts'

/** The maximum number of actions that one row shows: `forEach` can make thousands. */
const shownActions = 3

export type WaitParts = Pick<ApiParts, 'generation' | 'clock'> & {
  readonly store: Pick<StoreReader, 'waits' | 'nodes'>
}
export type RowParts = WaitParts & Pick<ApiParts, 'others'>

/** The rows of deliveries, each with why it waits. From now on, changes of these deliveries by other gateways are noted. */
export async function readRows(records: readonly DeliveryRecord[], parts: RowParts): Promise<DeliveryRow[]> {
  parts.others.note(records)
  const first = records.map(({ jobs }) => jobs.find(({ state }) => state === 'queued'))
  const waits = await readJobWaits(
    first.flatMap((job) => job ?? []),
    parts,
  )
  const { senders, mappings } = parts.generation()
  const templates = new Map(
    mappings.map(({ id, mapping: { messageTemplate = '', textTemplate = '' } }) => [
      id,
      `${messageTemplate}\n${textTemplate}`,
    ]),
  )
  return records.map((record, index) => {
    const summary = describeContent(record, templates.get(record.mappingId ?? ''))
    return { ...toRowFields(record, waits.get(first[index]?.id ?? ''), senders), summary }
  })
}

/** Why each job waits, by its id. */
export function readJobWaits(jobs: readonly Job[], { store, generation, clock }: WaitParts) {
  return readWaits(jobs, { store, config: generation().config, now: clock() })
}

function toRowFields(record: DeliveryRecord, waits: string | undefined, senders: SenderTable) {
  const { problem, jobs } = record
  const count = (wanted: Job['state']) => jobs.filter((job) => job.state === wanted).length
  return {
    ...toDeliverySummary(record),
    sourceName: toSourceName(record, senders),
    code: problem?.code ?? null,
    place: findPlace(problem?.frame),
    became: jobs.slice(0, shownActions).map(({ planned: { kind, sessionKey } }) => ({ kind, sessionKey })),
    jobs: {
      queued: count('queued'),
      running: count('running'),
      done: count('done'),
      dead: count('dead'),
      dropped: count('dropped'),
      superseded: count('superseded'),
      cancelled: count('cancelled'),
      expired: count('expired'),
      skipped: count('skipped'),
      failing: jobs.filter(isFailing).length,
    },
    doneMs: findDoneMs(record),
    ...(waits === undefined ? {} : { waits }),
  }
}

/** See `DeliveryRow`. Null until all runs are done. */
export function findDoneMs({ receivedAt, settledAt = receivedAt, answer, jobs }: DeliveryRecord): number | null {
  const steps = jobs.flatMap((job) => job.steps.map(({ at }) => at))
  if (steps.length === 0 || jobs.some(({ state }) => state !== 'done')) return null
  // the delivery waited for a person: its sender keeps the answer that it is parked
  const wasParked = /"status":\s?"parked"/.test(answer.body)
  return Math.max(0, Math.max(...steps) - (wasParked ? settledAt : receivedAt))
}

/** `<file>:<line>` of a code frame. */
export function findPlace(frame: string | undefined): string | null {
  return /([^\s:]+:\d+):\d/.exec(frame ?? '')?.[1] ?? null
}

export function toSourceName({ source }: Pick<DeliveryRecord, 'source'>, senders: SenderTable): string | null {
  return senders.find(source)?.label ?? null
}
