// The catalog contains the data that only people need: lists, searches, transcripts, and when a session was updated. No answer waits for the
// catalog. Rows that it does not have yet are behind the catalog. They are read from their tables, and the writer adds them in bulk, in a commit
// that it makes anyway.
import type { Database, SqlValue } from './driver.ts'

/** When the catalog lacks more rows of a table than this, the next batch of the writer adds them, so that readers visit few of these rows. */
const maxBehind = 500
/** Less than every seq, even those of rows that were copied from another engine. */
export const firstSeq = -Number.MAX_SAFE_INTEGER

/**
 * `catalog`: for each table, the seq of the last row that the catalog has. The triggers keep the catalog correct when one of its rows changes or is
 * deleted. They also delete the rows that belong to a deleted delivery, in place of foreign keys, which would need an index in each child.
 *
 * `listed` has the columns by which lists filter, so that a filtered list of the whole store reads no wide row. Within a state, its rows are in the
 * order of arrival. No statement reads its columns event, mapping_id and id.
 */
export const catalogSchema = `
CREATE TABLE catalog (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  deliveries INTEGER NOT NULL,
  jobs INTEGER NOT NULL,
  events INTEGER NOT NULL,
  messages INTEGER NOT NULL
) STRICT;
INSERT INTO catalog VALUES (1, ${firstSeq}, ${firstSeq}, coalesce((SELECT max(seq) FROM events), ${firstSeq}), ${firstSeq});
CREATE TABLE listed (
  state TEXT NOT NULL,
  seq INTEGER NOT NULL,
  hook TEXT NOT NULL,
  source TEXT,
  event TEXT,
  mapping_id TEXT,
  id TEXT NOT NULL,
  PRIMARY KEY (state, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE wake_ids (id TEXT PRIMARY KEY, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE jobs_of (delivery_seq INTEGER NOT NULL, job_seq INTEGER NOT NULL, PRIMARY KEY (delivery_seq, job_seq)) STRICT, WITHOUT ROWID;
CREATE TABLE transcripts (
  agent_id TEXT NOT NULL,
  session_key TEXT NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (agent_id, session_key, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE run_messages (run_id TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (run_id, seq)) STRICT, WITHOUT ROWID;

CREATE TRIGGER deliveries_changed AFTER UPDATE OF state, mapping_id, wake_id ON deliveries
  WHEN new.seq <= (SELECT deliveries FROM catalog) BEGIN
  DELETE FROM listed WHERE state = old.state AND seq = old.seq;
  INSERT INTO listed VALUES (new.state, new.seq, new.hook, new.source, new.event, new.mapping_id, new.id);
  INSERT OR REPLACE INTO wake_ids SELECT new.wake_id, new.seq WHERE new.wake_id IS NOT NULL;
END;
CREATE TRIGGER deliveries_deleted AFTER DELETE ON deliveries BEGIN
  DELETE FROM listed WHERE state = old.state AND seq = old.seq;
  DELETE FROM wake_ids WHERE id = old.wake_id;
  DELETE FROM events WHERE seq = old.wake_event AND delivery_seq = old.seq;
  DELETE FROM jobs WHERE seq IN (SELECT job_seq FROM jobs_of WHERE delivery_seq = old.seq);
  DELETE FROM rings WHERE seq = old.seq;
  DELETE FROM repeats WHERE seq = old.seq;
END;
CREATE TRIGGER jobs_deleted AFTER DELETE ON jobs BEGIN
  DELETE FROM jobs_of WHERE delivery_seq = old.delivery_seq AND job_seq = old.seq;
END;
CREATE TRIGGER messages_deleted AFTER DELETE ON messages BEGIN
  DELETE FROM transcripts WHERE agent_id = old.agent_id AND session_key = old.session_key AND seq = old.seq;
  DELETE FROM run_messages WHERE run_id = old.run_id AND seq = old.seq;
END;
`

/** The events by the time at which they were stored, because a page of events begins before a moment. */
export const eventTimesSchema = `
CREATE TABLE event_times (at INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (at, seq)) STRICT, WITHOUT ROWID;
INSERT INTO event_times SELECT at, seq FROM events WHERE seq <= (SELECT events FROM catalog) ORDER BY at, seq;
CREATE TRIGGER events_deleted AFTER DELETE ON events BEGIN
  DELETE FROM event_times WHERE at = old.at AND seq = old.seq;
END;
`

/** A hook with few deliveries, in a store with many, is found without a visit of all others. */
export const listedByHook = 'CREATE INDEX listed_hook ON listed (hook, seq)'

const tables = ['deliveries', 'jobs', 'events', 'messages'] as const
const selectLast = (table: string) => `coalesce((SELECT max(seq) FROM ${table}), ${firstSeq})`

/** The condition for the rows of a table that are behind the catalog. */
export const whereBehind = (table: (typeof tables)[number]): string => `seq > (SELECT ${table} FROM catalog)`

/** The seqs of the jobs of a delivery, as SQL. */
export const jobsOf = (deliverySeq: string): string => `(SELECT job_seq FROM jobs_of WHERE delivery_seq = ${deliverySeq}
  UNION ALL SELECT seq FROM jobs WHERE ${whereBehind('jobs')} AND delivery_seq = ${deliverySeq})`

/** The sessions of the rows behind the catalog, each with the time of its newest row. */
export const selectTouchedSessions = `SELECT agent_id, session_key, max(at) AS updated_at FROM (
    SELECT agent_id, session_key, at FROM events WHERE ${whereBehind('events')}
    UNION ALL SELECT agent_id, session_key, at FROM messages WHERE ${whereBehind('messages')}) GROUP BY agent_id, session_key`

/** When the rows behind the catalog last updated one session; null if none of them belongs to it. Each run reads it, so it groups no rows. */
export const selectTouched = `SELECT max(at) AS updated_at FROM (
    SELECT at FROM events WHERE ${whereBehind('events')} AND agent_id = ?1 AND session_key = ?2
    UNION ALL SELECT at FROM messages WHERE ${whereBehind('messages')} AND agent_id = ?1 AND session_key = ?2)`

const addEventTimes = `INSERT INTO event_times SELECT at, seq FROM events WHERE ${whereBehind('events')}`
const additions = [
  addEventTimes,
  `INSERT INTO listed SELECT state, seq, hook, source, event, mapping_id, id FROM deliveries WHERE ${whereBehind('deliveries')}`,
  `INSERT INTO wake_ids SELECT wake_id, seq FROM deliveries WHERE ${whereBehind('deliveries')} AND wake_id IS NOT NULL`,
  `INSERT INTO jobs_of SELECT delivery_seq, seq FROM jobs WHERE ${whereBehind('jobs')} AND delivery_seq IS NOT NULL`,
  `INSERT INTO transcripts SELECT agent_id, session_key, seq FROM messages WHERE ${whereBehind('messages')}`,
  `INSERT INTO run_messages SELECT run_id, seq FROM messages WHERE ${whereBehind('messages')}`,
  `INSERT INTO sessions (agent_id, session_key, updated_at) SELECT * FROM (${selectTouchedSessions}) WHERE true
    ON CONFLICT DO UPDATE SET updated_at = excluded.updated_at WHERE excluded.updated_at > updated_at`,
  `UPDATE catalog SET ${tables.map((table) => `${table} = ${selectLast(table)}`).join(', ')}`,
] as const

/** Adds every row that is behind the catalog. */
export function completeCatalog(db: Database): void {
  for (const sql of additions) db.run(sql)
}

/** As `completeCatalog`, for the first catalog that a file had. */
export function completeFirstCatalog(db: Database): void {
  for (const sql of additions) if (sql !== addEventTimes) db.run(sql)
}

/** The difference is computed in SQL, because it may be too large for a JavaScript number. */
const selectIsBehind = `SELECT max(${tables.map((table) => `${selectLast(table)} - ${table}`).join(', ')}) > ${maxBehind} AS is_behind FROM catalog`

/** Adds the rows behind the catalog if there are enough of them to justify the extra pages. */
export function extendCatalog(db: Database): void {
  if (db.get(selectIsBehind)?.['is_behind'] === 1) completeCatalog(db)
}

/** Call it after rows were deleted: SQLite may give the seq of the last row to the next one. */
export function shortenCatalog(db: Database): void {
  db.run(`UPDATE catalog SET ${tables.map((table) => `${table} = min(${table}, ${selectLast(table)})`).join(', ')}`)
}

const selectWakeSeq = `SELECT coalesce((SELECT seq FROM wake_ids WHERE id = ?1),
  (SELECT seq FROM deliveries WHERE ${whereBehind('deliveries')} AND wake_id = ?1)) AS seq`

/** The seq of the delivery that has the wake with this id; null if none has. */
export function findWake(db: Database, id: string): SqlValue {
  return db.get(selectWakeSeq, id)?.['seq'] ?? null
}
