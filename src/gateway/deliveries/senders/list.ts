// Lists the senders for commands and the admin API.
import type { SenderFields } from '../../../model/api/operations.ts'
import { problems } from '../../../core/model/problem.ts'
import type { SenderTable } from '../../proofs/senders.ts'
import type { StoreReader } from '../../../store/store.ts'
import { toIsoTime } from '../records.ts'
import { isLearnt } from './judge.ts'
import { readRecords, type SenderRecord } from './record.ts'

const hourMs = 3_600_000

/** The senders in the store, ordered by the time of their last accepted request. */
export async function listSenders(store: Pick<StoreReader, 'cursors'>, senders: SenderTable): Promise<SenderFields[]> {
  return toSenderList(await readRecords(store), senders)
}

/** As `listSenders`, from records that are read already. */
export function toSenderList(records: readonly SenderRecord[], senders: SenderTable): SenderFields[] {
  const own = records.filter(({ mapping }) => mapping === undefined)
  return own.toSorted((one, other) => one.last - other.last).map((record) => toSenderFields(record, senders))
}

function toSenderFields(record: SenderRecord, senders: SenderTable): SenderFields {
  const { hook, source, since, last, requests, silent, refused } = record
  const open = Object.values(refused).filter(({ count }) => count > 0)
  return {
    hook,
    source: source === '' ? null : source,
    sourceName: senders.find(source)?.label ?? null,
    since: toIsoTime(since),
    lastAt: toIsoTime(last),
    requests,
    usualMs: isLearnt(record) ? findUsualMs(record) : null,
    silentSince: silent === undefined ? null : toIsoTime(silent.since),
    refused: open.map(({ code, count, why, requestId, ...cause }) => ({
      code,
      status: problems[code].status,
      since: toIsoTime(cause.since),
      lastAt: toIsoTime(cause.last),
      acceptedAt: cause.acceptedAt === undefined ? null : toIsoTime(cause.acceptedAt),
      count,
      why,
      requestId,
    })),
  }
}

function findUsualMs({ hours: { counts } }: SenderRecord): number {
  const requests = counts.reduce((sum, count) => sum + count, 0)
  return Math.round((counts.length * hourMs) / Math.max(1, requests))
}
