// Checksums of rows. SQLite checks the structure of its pages, but not what is in them: a bit of a text that the disk changed would be read as if it were
// right. A row has the CRC-32 of the columns that an agent is told or that decide what is sent. A row that is older than its checksum has none (NULL).
import { crc32 } from 'node:zlib'
import { Problem } from '../../core/model/problem.ts'
import { rowDamagedReason, toStoredText } from '../rules.ts'
import type { Row, SqlValue } from './driver.ts'
import type { EventValues } from './operations.ts'

/**
 * `deliveries.sum`: what never changes, with the answer to the sender. `request_sum`: head and body, which are deleted before the row. `jobs.sum`: the
 * plan, wherever it is stored. `work_sum`: steps and posts.
 */
export const sumsSchema = `
ALTER TABLE deliveries ADD COLUMN sum INTEGER;
ALTER TABLE deliveries ADD COLUMN request_sum INTEGER;
ALTER TABLE jobs ADD COLUMN sum INTEGER;
ALTER TABLE jobs ADD COLUMN work_sum INTEGER;
ALTER TABLE events ADD COLUMN sum INTEGER;
ALTER TABLE messages ADD COLUMN sum INTEGER;
ALTER TABLE sessions ADD COLUMN recipient_sum INTEGER;
ALTER TABLE sessions ADD COLUMN state_sum INTEGER;
`

type Value = SqlValue | undefined

/** 32 bits with a sign: SQLite needs 4 bytes for them. */
export function computeSum(values: readonly Value[]): number {
  return crc32(toStoredText(values.join('\n'))) | 0
}

/** The sum of a job that has done nothing. */
export const unworked = computeSum(['[]', '[]'])

function sumRequest(head: string, body: SqlValue): number {
  // a body is bytes; a damaged one may be anything
  const start = crc32(head)
  return (body instanceof Uint8Array ? crc32(body, start) : crc32(String(body), start)) | 0
}

/** The sums of a row, from its columns. Null if there must be none; undefined if it does not matter: a state is deleted without its sum. */
export const sums = {
  facts: (row: Row) => computeSum(factColumns.map((name) => row[name])),
  request: ({ head = null, body = null }: Row) =>
    head === null || body === null ? null : sumRequest(String(head), body),
  job: ({ id, delivery_seq: deliverySeq, stands_for: standsFor, planned }: Row) =>
    computeSum([id, deliverySeq, standsFor, planned]),
  work: ({ steps, posts }: Row) => (steps === '[]' && posts === '[]' ? unworked : computeSum([steps, posts])),
  event: (row: Row) => computeSum(eventColumns.map((name) => row[name])),
  message: (row: Row) =>
    computeSum([row['agent_id'], row['session_key'], row['at'], row['role'], row['run_id'], row['text']]),
  recipient: ({ agent_id: agentId, session_key: key, recipient_channel: channel = null, recipient_to: to }: Row) =>
    channel === null ? null : computeSum([agentId, key, channel, to]),
  state: ({ agent_id: agentId, session_key: key, runner_state: state = null }: Row) =>
    state === null ? undefined : computeSum([agentId, key, state]),
}

const eventColumns = 'agent_id session_key text source trusted wakes delivery_id at'.split(' ')
/** The sum of a new event. */
export const sumEvent = (event: EventValues, deliveryId: SqlValue, at: number) => computeSum([...event, deliveryId, at])

export const factColumns = 'id received_at hook source event body_hash answer_status answer_body'.split(' ')
/** The columns that `isFactsIntact` reads. */
export const factsSql = [...factColumns, 'sum'].join(', ')

type Sum = (row: Row) => number | null | undefined

/** The columns with the sums of each table. */
export const sumColumns: Readonly<Record<string, Readonly<Record<string, Sum>>>> = {
  deliveries: { sum: sums.facts, request_sum: sums.request },
  jobs: { sum: sums.job, work_sum: sums.work },
  events: { sum: sums.event },
  messages: { sum: sums.message },
  sessions: { recipient_sum: sums.recipient, state_sum: sums.state },
}

function isIntact(stored: Value, sum: Sum, row: Row): boolean {
  if (stored === null || stored === undefined) return true
  const found = sum(row)
  return found === undefined || found === stored
}

export const isFactsIntact = (row: Row) => isIntact(row['sum'], sums.facts, row)
export const isRequestIntact = (row: Row) => isIntact(row['request_sum'], sums.request, row)
export const isWorkIntact = (row: Row) => isIntact(row['work_sum'], sums.work, row)
export const isJobIntact = (row: Row) => isIntact(row['sum'], sums.job, row) && isWorkIntact(row)
const isRecipientIntact = (row: Row) => isIntact(row['recipient_sum'], sums.recipient, row)
const isStateIntact = (row: Row) => isIntact(row['state_sum'], sums.state, row)

/** Whether a row of a table, with its sums, is what was stored. */
export const isRowIntact = (table: string, row: Row) =>
  Object.entries(sumColumns[table] ?? {}).every(([column, sum]) => isIntact(row[column], sum, row))

const nextMove = 'Run "hookloom doctor". If it finds more damage, restore the store from a backup.'

/** What an agent and an operator read instead of the text. */
export const damagedText = `(This text cannot be shown: its row in the store is damaged, and does not have its checksum. ${nextMove})`

/** An event whose row is damaged keeps its place, so that it is consumed once, and says so. Nothing in it is trusted. */
export function maskEvent(row: Row): Row {
  return isRowIntact('events', row) ? row : { ...row, text: damagedText, source: 'store', trusted: 0 }
}

export function maskMessage(row: Row): Row {
  return isRowIntact('messages', row) ? row : { ...row, text: damagedText, role: 'user' }
}

/** Without a recipient or a state that may be wrong: a reply must not reach a stranger, and no run goes on in another conversation. */
export function maskSession(row: Row): Row {
  const recipient = isRecipientIntact(row) ? {} : { recipient_channel: null, recipient_to: null }
  const state = isStateIntact(row) ? {} : { runner_state: null }
  return { ...row, ...recipient, ...state }
}

/** A job whose row is damaged says so where it is listed. */
export function maskJob(row: Row): Row {
  return isJobIntact(row) ? row : { ...row, last_error: rowDamagedReason }
}

/** The row as a copy keeps it. Throws `row-damaged` if a gateway on the copy would do what nobody sent. */
export function readCopied(table: string, row: Row): Row {
  if (table === 'events') return maskEvent(row)
  if (table === 'messages') return maskMessage(row)
  if (table === 'sessions') return maskSession(row)
  if (isRowIntact(table, row)) return row
  const isOver = table === 'jobs' ? row['state'] === 'done' : !['pending', 'parked'].includes(String(row['state']))
  if (table === 'jobs' && isOver) return maskJob(row)
  if (table === 'deliveries' && isOver && isFactsIntact(row)) return { ...row, head: null, body: null }
  throw buildDamage(row['id'], table === 'jobs' ? 'The plan of the run' : 'The delivery')
}

export function buildDamage(id: Value, what: string): Problem {
  return new Problem(
    'row-damaged',
    `${what} ${String(id)} is damaged in the store: it does not have its checksum. ${nextMove}`,
  )
}
