// Turns rows of deliveries into records.
import type { DeliveryHead, DeliveryState } from '../core/model/delivery.ts'
import type { Job } from '../model/job.ts'
import { readAnswerText } from './answer-text.ts'
import type {
  DeliveryAnswer,
  DeliveryRecord,
  KeptDelivery,
  KeptRequest,
  NewDelivery,
  OpenDelivery,
  StoredAnswer,
} from './records.ts'
import { column, json, optional, optionalJson, type Row } from './rows.ts'

function toStoredAnswer(row: Row): StoredAnswer {
  return { status: column(row, 'answer_status'), ...readAnswerText(column(row, 'answer_body')) }
}

/** The delivery of the hook `$1` that has the dedupe key `$2`. */
export const selectAnswered = `SELECT id, state, answer_status, answer_body, body_hash FROM deliveries WHERE hook = $1 AND dedupe_key = $2`

export function toAnswered(row: Row): DeliveryAnswer {
  return {
    deliveryId: column(row, 'id'),
    state: column<DeliveryState>(row, 'state'),
    ...toStoredAnswer(row),
    bodyHash: column(row, 'body_hash'),
  }
}

export function toDeliveryRecord(row: Row, jobs: readonly Job[], node = optional<string>(row, 'node')): DeliveryRecord {
  return {
    deliveryId: column(row, 'id'),
    receivedAt: column(row, 'received_at'),
    hook: column(row, 'hook'),
    source: optional<string>(row, 'source'),
    event: optional<string>(row, 'event'),
    mappingId: optional<string>(row, 'mapping_id'),
    generation: column(row, 'generation'),
    transformHash: optional<string>(row, 'transform_hash'),
    state: column<DeliveryState>(row, 'state'),
    node,
    repeats: optional<number>(row, 'repeats') ?? 0,
    repeatedAt: optional<number>(row, 'repeated_at'),
    bodyDiffered: row['body_differed'] === 1,
    recovered: row['recovered'] === 1,
    edited: row['recovered'] === 2,
    settledAt: optional<number>(row, 'settled_at'),
    answer: toStoredAnswer(row),
    problem: optionalJson(row, 'problem'),
    trace: json(row, 'trace'),
    log: json(row, 'log'),
    jobs,
  }
}

export function toOpenDelivery(row: Row, request: KeptRequest | undefined): OpenDelivery {
  return {
    deliveryId: column(row, 'id'),
    receivedAt: column(row, 'received_at'),
    state: column<'pending' | 'parked'>(row, 'state'),
    hook: column(row, 'hook'),
    waitsFor: optional<string>(row, 'waits_for'),
    generation: column(row, 'generation'),
    request,
  }
}

export function toKeptDelivery(record: DeliveryRecord, row: Row | undefined): KeptDelivery {
  return { ...record, request: row === undefined || row['body'] === null ? undefined : toKeptRequest(row) }
}

export function toKeptRequest(row: Row): KeptRequest {
  return { head: toHead(json(row, 'head')), body: column<Uint8Array>(row, 'body') }
}

function toHead(head: DeliveryHead): DeliveryHead {
  // no prototype: an attacker chooses the names
  const withoutPrototype = (names: Readonly<Record<string, string>>) => Object.assign(Object.create(null), names)
  return {
    ...head,
    headers: withoutPrototype(head.headers),
    query: withoutPrototype(head.query),
    verifiedBy: head.verifiedBy,
  }
}

/** The column `recovered` says where a delivery came from, if it was no request: 1 from its sender, 2 from an operator who edited it. */
export function toOriginValue({ recovered, edited }: Pick<NewDelivery, 'recovered' | 'edited'>): number | null {
  if (edited === true) return 2
  return recovered === true ? 1 : null
}
