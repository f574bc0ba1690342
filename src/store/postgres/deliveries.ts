// Changes of stored deliveries, appends that move cursors, and the deletion of old rows. Each function runs in a transaction of its caller.
import { type Appended, type NewDelivery, type Settlement } from '../records.ts'
import { type CursorMoves, listMoves, expiringPrefixes, moveCursors, restoreCursors } from '../cursors.ts'
import {
  appendBatch,
  type AppendOptions,
  insertChildren,
  keepNewest,
  toBody,
  measureRequestBytes,
  toChildParams,
  toHeadText,
  insertCancel,
} from './append.ts'
import type { Row } from '../rows.ts'
import { pruneRows } from '../prune.ts'
import { failedBySql } from '../rules.ts'
import { readyColumns } from '../flow-script.ts'
import { dialect, lockFlows, runScript } from './flow.ts'
import { reviewFlows } from './holds.ts'
import type { Query } from './pool.ts'

/** Deletes the rows that belong to a deleted row. It names the schema, because other clients may have another search path. */
const afterDelete = (table: string, children: readonly (readonly [table: string, column: string])[]) => `
CREATE FUNCTION hookloom_${table}_deleted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  ${children
    .map(
      ([child, column]) =>
        `EXECUTE format('DELETE FROM %I.${child} WHERE ${column} = $1', TG_TABLE_SCHEMA) USING OLD.seq;`,
    )
    .join('\n  ')}
  RETURN NULL;
END $$;
CREATE TRIGGER ${table}_deleted AFTER DELETE ON ${table} FOR EACH ROW EXECUTE FUNCTION hookloom_${table}_deleted();`

/**
 * These triggers replace foreign keys, which would lock the rows of the delivery and of the job again for each child that is inserted. Children
 * are inserted with their parent or under its lock, and only rows that have ended are deleted.
 */
export const deletionSchema = `
ALTER TABLE requests DROP CONSTRAINT requests_delivery_seq_fkey;
ALTER TABLE rings DROP CONSTRAINT rings_seq_fkey;
ALTER TABLE jobs DROP CONSTRAINT jobs_delivery_seq_fkey;
ALTER TABLE job_parts DROP CONSTRAINT job_parts_job_seq_fkey;
ALTER TABLE job_flow DROP CONSTRAINT job_flow_job_seq_fkey;
${afterDelete('deliveries', [
  ['requests', 'delivery_seq'],
  ['rings', 'seq'],
  ['jobs', 'delivery_seq'],
])}
${afterDelete('jobs', [
  ['job_parts', 'job_seq'],
  ['job_flow', 'job_seq'],
])}
`

export async function appendAll(
  query: Query,
  {
    deliveries,
    moves,
    ...how
  }: { deliveries: readonly NewDelivery[]; moves: CursorMoves } & Omit<AppendOptions, 'payload'>,
): Promise<Appended[] | 'moved'> {
  const listed = listMoves(moves)
  if (!(await runScript(query, moveCursors(listed), how.now))) return 'moved'
  const appended: Appended[] = []
  // one by one: a row of a batch would not see its duplicate in the batch
  for (const delivery of deliveries) appended.push(...(await appendBatch(query, [delivery], { ...how, payload: '' })))
  if (appended.every(({ kind }) => kind !== 'stored')) {
    const unmoved = listed.filter(({ ifStored }) => ifStored)
    await runScript(query, restoreCursors(unmoved), how.now)
  }
  return appended
}

const settleDelivery = (
  now: string,
) => `UPDATE deliveries SET failed_by = ${failedBySql((text) => `right(${text}, 4000)`)}, state = $2, mapping_id = $3, generation = $4,
    transform_hash = $5, waits_for = $6, problem = $7, trace = $8, log = $9, bytes = coalesce($10, bytes),
    settled_at = CASE WHEN $2 IN ('pending', 'parked') THEN NULL ELSE ${now} END
  WHERE id = $1 AND state IN ('pending', 'parked') RETURNING seq`

const selectOpen = `SELECT seq FROM deliveries WHERE id = $1 AND state IN ('pending', 'parked') FOR UPDATE`

/** A delivery that stays pending or parked keeps its request unless a new one is given. */
export async function settle(
  query: Query,
  {
    id,
    settlement,
    moves = [],
    now,
  }: { id: string; settlement: Settlement; moves?: CursorMoves | undefined; now: string },
): Promise<boolean | 'moved'> {
  if (listMoves(moves).length > 0) {
    const [open] = await query(selectOpen, id)
    if (open === undefined) return false
    if (!(await runScript(query, moveCursors(listMoves(moves)), now))) return 'moved'
  }
  const { state, problem, request, jobs, mappingId } = settlement
  const waits = state === 'pending' || state === 'parked'
  const [row] = await query(
    settleDelivery(now),
    id,
    state,
    mappingId,
    settlement.generation,
    settlement.transformHash,
    settlement.waitsFor,
    problem && JSON.stringify(problem),
    JSON.stringify(settlement.trace),
    JSON.stringify(settlement.log),
    waits ? request && measureRequestBytes(request) : 0,
  )
  if (row === undefined) return false
  const seq = Number(row['seq'])
  if (request !== undefined) {
    await query(
      `INSERT INTO requests (delivery_seq, head, body) VALUES ($1, $2, $3)
        ON CONFLICT (delivery_seq) DO UPDATE SET head = excluded.head, body = excluded.body`,
      seq,
      toHeadText(request),
      toBody(request),
    )
  } else if (!waits) await query('DELETE FROM requests WHERE delivery_seq = $1', seq)
  if (jobs.length > 0) await query(insertChildren(now), seq, id, ...toChildParams([{ id, jobs }]))
  await insertCancel(query, id, settlement.cancel)
  await keepNewest(query, id, settlement)
  return true
}

/** Drops a delivery with its queued and dead jobs. Returns false if there was nothing left to drop. */
export async function drop(query: Query, id: string, now: string): Promise<boolean> {
  const [row] = await query('SELECT seq FROM deliveries WHERE id = $1', id)
  return row !== undefined && (await dropBySeq(query, Number(row['seq']), { now, jobs: `'queued', 'dead'` }))
}

/** `jobs`: the states of the jobs that are dropped with the delivery. */
async function dropBySeq(query: Query, seq: number, { now, jobs }: { now: string; jobs: string }): Promise<boolean> {
  await lockFlows(query, 'delivery_seq = $1', seq)
  const dropped = await query(
    `UPDATE deliveries SET state = 'dropped', settled_at = ${now}, waits_for = NULL, bytes = 0
      WHERE seq = $1 AND state IN ('pending', 'parked') RETURNING seq`,
    seq,
  )
  if (dropped.length > 0) await query('DELETE FROM requests WHERE delivery_seq = $1', seq)
  const left = await query(
    `UPDATE jobs SET state = 'dropped', ended_at = ${now} WHERE delivery_seq = $1 AND state IN (${jobs}) RETURNING ${readyColumns}`,
    seq,
  )
  await reviewFlows(query, left, now)
  if (left.length > 0) await query(`UPDATE deliveries SET state = 'dropped' WHERE seq = $1 AND state = 'accepted'`, seq)
  return dropped.length + left.length > 0
}

/** The number of rows that one step visits: locks are held briefly, and vacuum keeps up. */
const sweepRows = 500

/**
 * One step of a sweep. It visits the deliveries that follow `after`, deletes the deliveries that ended before `before`, and drops those that
 * were stored before `before` and still wait.
 */
export async function sweepStep(
  query: Query,
  { before, after, now }: { before: number; after: number; now: string },
): Promise<{ count: number; after: number | undefined }> {
  const rows = await query(
    `SELECT d.seq, d.received_at, ${now} AS now, coalesce(d.settled_at < $1, false)::int AS settled,
        EXISTS (SELECT 1 FROM jobs j WHERE j.delivery_seq = d.seq AND coalesce(j.ended_at >= $1, true))::int AS busy
      FROM deliveries d WHERE d.seq > $2 ORDER BY d.seq LIMIT $3`,
    before,
    after,
    sweepRows,
  )
  const end = rows.findIndex(({ received_at: at, now: moment }) => Number(at) >= before && Number(at) <= Number(moment))
  const old = (end < 0 ? rows : rows.slice(0, end)).filter(({ received_at: at }) => Number(at) < before)
  const ended = old.filter(({ settled, busy }) => settled === 1 && busy === 0).map(({ seq }) => Number(seq))
  const deleted = await query(
    'DELETE FROM deliveries WHERE seq = ANY ($1::bigint[]) RETURNING seq',
    await lockEnded(query, ended, before),
  )
  let count = deleted.length
  for (const { seq, settled, busy } of old) {
    if ((settled !== 1 || busy !== 0) && (await dropBySeq(query, Number(seq), { now, jobs: `'queued'` }))) count += 1
  }
  const last = rows.at(-1)
  return { count, after: end >= 0 || rows.length < sweepRows || !last ? undefined : Number(last['seq']) }
}

/**
 * Locks the jobs of deliveries, and returns the deliveries whose jobs all ended before `before`. A dead job may have been queued again
 * before the lock; while the lock is held, no job can be.
 */
async function lockEnded(query: Query, seqs: readonly number[], before: number): Promise<number[]> {
  const sql = 'SELECT delivery_seq, ended_at FROM jobs WHERE delivery_seq = ANY ($1::bigint[]) ORDER BY seq FOR UPDATE'
  const jobs = await query(sql, seqs)
  const isBusy = ({ ended_at: at }: Row) => at === null || Number(at) >= before
  const busy = new Set(jobs.filter(isBusy).map(({ delivery_seq: seq }) => Number(seq)))
  return seqs.filter((seq) => !busy.has(seq))
}

/** Deletes old rows that belong to no delivery, such as events, sessions and tasks. Returns how many rows it changed; call it until it returns 0. */
export async function pruneStep(query: Query, before: number, now: string): Promise<number> {
  const statements = [
    `UPDATE jobs SET state = 'dropped', ended_at = ${now} WHERE seq IN
      (SELECT seq FROM jobs WHERE stands_for IS NOT NULL AND state = 'queued' AND created_at < $1 LIMIT $2) RETURNING seq`,
    `DELETE FROM jobs WHERE seq IN (SELECT seq FROM jobs
      WHERE stands_for IS NOT NULL AND created_at < $1 AND ended_at < $1 LIMIT $2) RETURNING seq`,
    `DELETE FROM events WHERE seq IN (SELECT seq FROM events WHERE at < $1 LIMIT $2) RETURNING seq`,
    `DELETE FROM messages WHERE seq IN (SELECT seq FROM messages WHERE at < $1 LIMIT $2) RETURNING seq`,
    `DELETE FROM cursors WHERE name IN (SELECT name FROM cursors
      WHERE CASE WHEN ${expiringPrefixes.map((prefix) => `starts_with(name, '${prefix}')`).join(' OR ')}
        THEN split_part(value, ' ', 1)::bigint < ${now} ELSE false END LIMIT $2) AND $1::bigint > 0 RETURNING name`,
    `DELETE FROM leases WHERE name IN (SELECT name FROM leases WHERE until < $1 LIMIT $2) RETURNING name`,
    `DELETE FROM nodes WHERE id IN (SELECT id FROM nodes WHERE seen_at < $1 LIMIT $2) RETURNING id`,
    `DELETE FROM task_names WHERE stands_for IN (SELECT stands_for FROM task_names t
      WHERE NOT EXISTS (SELECT 1 FROM jobs j WHERE j.stands_for = t.stands_for) LIMIT $2) AND $1::bigint > 0 RETURNING stands_for`,
  ]
  let changed = await runScript(query, pruneRows({ before, limit: sweepRows }, dialect), now)
  for (const sql of statements) changed += (await query(sql, before, sweepRows)).length
  return changed
}
