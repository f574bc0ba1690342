// Turns rows into records. All engines use the same names of columns. A column has a text, a number (0 and 1 for false and true), bytes, or JSON as text.
import type { JobState } from '../model/api/answers.ts'
import { jobStates } from '../model/api/job-states.ts'
import { deliveryStates, type DeliveryState } from '../core/model/delivery.ts'
import {
  type ClaimedJob,
  type Job,
  type Message,
  type Recipient,
  type Session,
  type Step,
  toPosts,
  type SystemEvent,
} from '../model/job.ts'
import type { JsonValue } from '../base/json.ts'
import type { NodeRecord } from './owners.ts'
import type { Hold, LaneLoad, WaitingEvents } from './records.ts'
import { storeUnavailable } from './rules.ts'

export type SqlValue = string | number | Uint8Array | null
export type Row = Readonly<Record<string, SqlValue>>

export function column<T extends SqlValue>(row: Row, name: string): T {
  // as: the columns have types, and only the engines write them
  return row[name] as T
}

export function optional<T extends SqlValue>(row: Row, name: string): T | undefined {
  return column<T | null>(row, name) ?? undefined
}

export function json<T>(row: Row, name: string): T {
  try {
    // as: the engine wrote this text from the same type
    return JSON.parse(column<string>(row, name)) as T
  } catch {
    // no cause: its message quotes the text
    throw storeUnavailable('The store cannot be read: one of its rows is damaged.', 5)
  }
}

export function optionalJson<T>(row: Row, name: string): T | undefined {
  return row[name] === null ? undefined : json<T>(row, name)
}

export function toJob(row: Row): Job {
  const steps: readonly Step[] = json(row, 'steps')
  return {
    id: column(row, 'id'),
    deliveryId: optional<string>(row, 'delivery_id'),
    planned: json(row, 'planned'),
    state: column<JobState>(row, 'state'),
    attempts: column(row, 'attempts'),
    createdAt: column(row, 'created_at'),
    runAt: column(row, 'run_at'),
    lockedUntil: optional<number>(row, 'locked_until'),
    lastError: optional<string>(row, 'last_error'),
    endedBy: optional<string>(row, 'ended_by'),
    failingSince: optional<number>(row, 'failing_since'),
    failures: optionalJson(row, 'failures') ?? [],
    steps,
    posts: toPosts(json(row, 'posts'), steps),
  }
}

export function toClaimedJob(row: Row, now: number): ClaimedJob {
  const job = toJob(row)
  const failingForMs = job.failingSince === undefined ? undefined : Math.max(0, now - job.failingSince)
  return {
    ...job,
    hasFlow: optional(row, 'flow') !== undefined,
    fence: column(row, 'fence'),
    lapsedFence: optional<number>(row, 'lapsed'),
    failingForMs,
    overdueForMs: Math.max(0, now - job.runAt),
  }
}

export function toHold(row: Row, now: number): Hold {
  const until = optional<number>(row, 'until')
  return {
    label: column(row, 'label'),
    kind: column<Hold['kind']>(row, 'kind'),
    reason: column(row, 'reason'),
    author: optional<string>(row, 'author'),
    at: column(row, 'at'),
    forMs: until === undefined ? undefined : Math.max(0, until - now),
  }
}

export function toSystemEvent(row: Row): SystemEvent {
  return {
    agentId: column(row, 'agent_id'),
    sessionKey: column(row, 'session_key'),
    text: column(row, 'text'),
    source: column(row, 'source'),
    trusted: row['trusted'] === 1,
    wakes: row['wakes'] === 1,
    at: column(row, 'at'),
    deliveryId: optional<string>(row, 'delivery_id'),
    consumedAt: optional<number>(row, 'consumed_at'),
  }
}

export function toSession(row: Row): Session {
  return {
    agentId: column(row, 'agent_id'),
    sessionKey: column(row, 'session_key'),
    updatedAt: column(row, 'updated_at'),
    recipient: toRecipient(row),
  }
}

function toRecipient(row: Row): Recipient | undefined {
  const channel = optional<Recipient['channel']>(row, 'recipient_channel')
  return channel === undefined ? undefined : { channel, to: optional<string>(row, 'recipient_to') }
}

export function toSessionWithState(row: Row): Session & { runnerState: JsonValue | undefined } {
  return { ...toSession(row), runnerState: optionalJson(row, 'runner_state') }
}

/** Each row contains the totals. A session without events has one row, without an event. */
export function toWaitingEvents(rows: readonly Row[]): WaitingEvents {
  const [sums] = rows
  if (!sums) return { events: [], count: 0, wakes: false }
  return {
    events: rows.filter(({ seq }) => seq !== null).map((row) => ({ ...toSystemEvent(row), id: column(row, 'seq') })),
    count: column(sums, 'count'),
    wakes: sums['any_wakes'] === 1,
  }
}

export function toMessage(row: Row): Message {
  return {
    role: column<Message['role']>(row, 'role'),
    text: column(row, 'text'),
    runId: column(row, 'run_id'),
    at: column(row, 'at'),
  }
}

export function toLaneLoad(row: Row): LaneLoad {
  return {
    lane: column(row, 'lane'),
    jobs: column(row, 'jobs'),
    since: column(row, 'since'),
    running: row['running'] === 1,
  }
}

export function toNodeRecord(row: Row): NodeRecord {
  return {
    id: column(row, 'id'),
    version: column(row, 'version'),
    generation: column(row, 'generation'),
    address: column(row, 'address'),
    seenAt: column(row, 'seen_at'),
  }
}

export function toCursor(row: Row): { name: string; value: string } {
  return { name: column(row, 'name'), value: column(row, 'value') }
}

/** Turns `{state, count}` rows into a record with every state. */
export function toDeliveryCounts(rows: readonly Row[]): Record<DeliveryState, number> {
  return toCounts(deliveryStates, rows)
}

export function toJobCounts(rows: readonly Row[]): Record<JobState, number> {
  return toCounts(jobStates, rows)
}

function toCounts<State extends string>(states: readonly State[], rows: readonly Row[]): Record<State, number> {
  const counts = new Map(rows.map((row) => [row['state'], row['count']]))
  // as: fromEntries loses the type of the keys
  return Object.fromEntries(states.map((state) => [state, counts.get(state) ?? 0])) as Record<State, number>
}
