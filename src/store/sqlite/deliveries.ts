// The operations on deliveries. They run inside the writer's transaction.
import { jobsOf } from './catalog.ts'
import type { Database, Row, SqlValue } from './driver.ts'
import { readyColumns } from '../flow-script.ts'
import { dropJobs } from './endings.ts'
import { insertJobs } from './jobs.ts'
import { deliveryColumns, type OperationOf, type RingValues, settlementColumns } from './operations.ts'
import { insertWakeEvent } from './sessions.ts'
import { toAnswered } from '../delivery-rows.ts'
import { failedBySql } from '../rules.ts'
import type { Appended, DedupeKey, FlowCancel } from '../records.ts'
import { moveCursors, restoreCursors } from '../cursors.ts'
import { runScript } from './flow.ts'
import { buildDamage, computeSum, factColumns, factsSql, isFactsIntact, sums } from './sums.ts'

/** The seq that the event of a wake will get, because the event is inserted next. */
const wakeEvent = (wakeId: number) =>
  `CASE WHEN ?${wakeId} IS NOT NULL THEN (SELECT coalesce(max(seq), 0) + 1 FROM events) END`
const insertedColumns = [...deliveryColumns, 'sum', 'request_sum']
const insertDelivery = `INSERT INTO deliveries (${insertedColumns.join(', ')}, wake_event)
  VALUES (${insertedColumns.map((_, index) => `?${index + 1}`).join(', ')}, ${wakeEvent(deliveryColumns.indexOf('wake_id') + 1)})
  ON CONFLICT (hook, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING`

export const failedBy = failedBySql((text) => `substr(${text}, -4000)`)

const requestColumns = new Set(['head', 'body', 'request_sum'])
const settledColumns = [...settlementColumns, 'request_sum']
/** A delivery that stays pending or parked keeps its head and body unless new ones are given. */
const settleDelivery = `UPDATE deliveries SET ${settledColumns
  .map((column, index) =>
    requestColumns.has(column)
      ? `${column} = CASE WHEN ?1 IN ('pending', 'parked') THEN coalesce(?${index + 1}, ${column}) ELSE ?${index + 1} END`
      : `${column} = ?${index + 1}`,
  )
  .join(
    ', ',
  )}, wake_event = ${wakeEvent(settlementColumns.indexOf('wake_id') + 1)}, failed_by = ${failedBy} WHERE seq = ?${settledColumns.length + 1}`

const planAt = deliveryColumns.indexOf('plan')

const factPlaces = factColumns.map((name) => deliveryColumns.indexOf(name))
const sumFacts = (values: readonly SqlValue[]) => computeSum(factPlaces.map((place) => values[place]))
/** Head and body are the last values. */
const sumKept = (values: readonly SqlValue[]) =>
  sums.request({ head: values.at(-2) ?? null, body: values.at(-1) ?? null })

const waiting = `SELECT seq FROM deliveries WHERE id = ? AND state IN ('pending', 'parked')`

export function append(db: Database, operation: OperationOf<'append'>): Appended {
  const { key, id, at, jobs, wake, cancel } = operation
  // a row that takes its key needs no check: it conflicts in the unique index
  if (key && !key.isStored) {
    const first = findAnswered(db, key)
    if (first) return buildDuplicate(first)
  }
  const { changes, seq } = db.run(
    insertDelivery,
    ...operation.values,
    sumFacts(operation.values),
    sumKept(operation.values),
  )
  if (changes === 0 && key) return buildDuplicate(findAnswered(db, key))
  if (wake !== undefined) insertWakeEvent(db, { wake, deliverySeq: seq, at })
  insertJobs(db, { deliverySeq: seq, deliveryId: id, at, jobs, plan: operation.values[planAt] })
  if (cancel !== undefined) insertCancel(db, seq, cancel)
  if (operation.ring) keepNewest(db, seq, operation.ring)
  return { kind: 'stored' }
}

/** Adds a delivery to the ring of its mapping, and deletes the requests that it pushes out. */
function keepNewest(db: Database, seq: number, { ringOf, size }: RingValues): void {
  db.run('INSERT INTO rings (seq, mapping_id) VALUES (?, ?)', seq, ringOf)
  const older = 'SELECT seq FROM rings WHERE mapping_id = ? ORDER BY seq DESC LIMIT -1 OFFSET ?'
  for (const { seq: old = null } of db.all(older, ringOf, size)) {
    db.run('UPDATE deliveries SET head = NULL, body = NULL, request_sum = NULL WHERE seq = ?', old)
    db.run('DELETE FROM rings WHERE seq = ?', old)
  }
}

/** Stores the cancel. The next claim carries it out. */
function insertCancel(db: Database, deliverySeq: number, { ring, key, reason }: FlowCancel): void {
  db.run(
    'INSERT OR REPLACE INTO flow_cancels (delivery_seq, ring, key, reason) VALUES (?, ?, ?, ?)',
    deliverySeq,
    ring,
    key,
    reason,
  )
}

export function appendAll(db: Database, { at, appends, moves }: OperationOf<'appendAll'>): Appended[] | 'moved' {
  if (!runScript(db, moveCursors(moves), at)) return 'moved'
  const appended = appends.map((each) => append(db, each))
  if (appended.every(({ kind }) => kind !== 'stored'))
    runScript(db, restoreCursors(moves.filter(({ ifStored }) => ifStored)), at)
  return appended
}

const selectAnsweredRow = `SELECT state, ${factsSql} FROM deliveries WHERE hook = ? AND dedupe_key = ?`

/** Throws `row-damaged`: a sender must not get another answer than the first one. */
export function findAnswered(db: Database, { hook, key }: Pick<DedupeKey, 'hook' | 'key'>): Row | undefined {
  const row = db.get(selectAnsweredRow, hook, key)
  if (row !== undefined && !isFactsIntact(row)) throw buildDamage(row['id'], 'The answer to the delivery')
  return row
}

function buildDuplicate(first: Row | undefined): Appended {
  if (!first) throw new Error('an insert conflicted with a dedupe key that no row has')
  return { kind: 'duplicate', first: toAnswered(first) }
}

export function settle(db: Database, operation: OperationOf<'settle'>): boolean | 'moved' {
  const row = db.get(waiting, operation.id)
  if (!row) return false
  if (!runScript(db, moveCursors(operation.moves), operation.at)) return 'moved'
  db.run(settleDelivery, ...operation.values, sumKept(operation.values), row['seq'] ?? null)
  const { id, at, jobs, wake, cancel } = operation
  const deliverySeq = Number(row['seq'])
  if (wake !== undefined) insertWakeEvent(db, { wake, deliverySeq, at })
  insertJobs(db, { deliverySeq, deliveryId: id, at, jobs, plan: operation.values[settlementColumns.indexOf('plan')] })
  if (cancel !== undefined) insertCancel(db, deliverySeq, cancel)
  if (operation.ring) keepNewest(db, deliverySeq, operation.ring)
  return true
}

/** Drops a delivery with its queued and dead jobs. Returns false if there was nothing left to drop. */
export function drop(db: Database, { id, at }: OperationOf<'drop'>): boolean {
  const row = db.get('SELECT seq FROM deliveries WHERE id = ?', id)
  return row !== undefined && dropBySeq(db, Number(row['seq']), { at, jobs: `'queued', 'dead'` })
}

/** `jobs`: the states of the jobs that are dropped with the delivery. Returns false if there was nothing left to drop. */
export function dropBySeq(db: Database, seq: number, { at, jobs }: { at: number; jobs: string }): boolean {
  const left = db.all(
    `SELECT seq, lane, state, ${readyColumns} FROM jobs WHERE seq IN ${jobsOf('?1')} AND state IN (${jobs})`,
    seq,
  )
  dropJobs(db, left, at)
  if (left.length > 0) db.run(`UPDATE deliveries SET state = 'dropped' WHERE seq = ? AND state = 'accepted'`, seq)
  const dropped = db.run(
    `UPDATE deliveries SET state = 'dropped', settled_at = ?, waits_for = NULL, head = NULL, body = NULL, request_sum = NULL
      WHERE seq = ? AND state IN ('pending', 'parked')`,
    at,
    seq,
  )
  return left.length + dropped.changes > 0
}
